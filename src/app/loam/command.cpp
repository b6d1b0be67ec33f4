#include "app/loam/command.hpp"

#include <algorithm>

#include "app/loam/commands.hpp"

namespace loam::cli {
namespace {

std::vector<Section> made() {
  std::vector<Command> tasks = request_commands();
  for (Command& command : trial_commands()) tasks.push_back(std::move(command));
  for (Command& command : task_commands()) tasks.push_back(std::move(command));
  std::vector<Command> models = serving_commands();
  for (Command& command : model_commands()) models.push_back(std::move(command));
  std::vector<Command> money = money_commands();
  for (Command& command : rate_commands()) money.push_back(std::move(command));
  for (Command& command : budget_commands()) money.push_back(std::move(command));
  for (Command& command : commit_commands()) money.push_back(std::move(command));
  for (Command& command : reservation_commands()) money.push_back(std::move(command));
  for (Command& command : spending_commands()) money.push_back(std::move(command));
  for (Command& command : efficiency_commands()) money.push_back(std::move(command));
  for (Command& command : split_commands()) money.push_back(std::move(command));
  for (Command& command : cost_commands()) money.push_back(std::move(command));
  return {{"Tasks", std::move(tasks)},         {"Money", std::move(money)},
          {"Tenants", tenant_commands()},      {"Devices", device_commands()},
          {"Models", std::move(models)},       {"Access", access_commands()},
          {"The journal", journal_commands()}, {"Simulation", simulation_commands()},
          {"This program", self_commands()}};
}

}  // namespace

std::string_view Option::key() const {
  std::string_view all = names;
  while (!all.starts_with("--")) all.remove_prefix(all.find(',') + 1);
  return all.substr(2, all.find(',') == std::string_view::npos ? all.npos : all.find(',') - 2);
}

const std::vector<Section>& sections() {
  static const std::vector<Section> all = made();
  return all;
}

const OptionGroup& global_options() {
  static const OptionGroup group{
      "Everywhere",
      {{"--json", "", "print the answer as one JSON document", Option::Kind::flag},
       {"--host", "ADDRESS", "where loamd listens: a socket's path or host:port; else LOAM_HOST"},
       {"--token", "TOKEN", "who asks, over TCP; better: LOAM_TOKEN"},
       {"--quiet,-q", "", "no remarks on the error stream", Option::Kind::flag},
       {"--help,-h", "", "this help", Option::Kind::flag}}};
  return group;
}

std::vector<OptionGroup> groups_of(const Command& command) {
  std::vector<OptionGroup> groups = command.groups;
  OptionGroup everywhere = global_options();
  if (command.writes) {
    everywhere.options.insert(
        everywhere.options.begin(),
        {"--key", "TEXT", "idempotency key: the same key again has no second effect"});
  }
  std::erase_if(everywhere.options, [&](const Option& global) {
    return std::any_of(groups.begin(), groups.end(), [&](const OptionGroup& group) {
      return std::any_of(group.options.begin(), group.options.end(),
                         [&](const Option& own) { return own.key() == global.key(); });
    });
  });
  groups.push_back(std::move(everywhere));
  return groups;
}

std::vector<Option> options_of(const Command& command) {
  std::vector<Option> options;
  for (const OptionGroup& group : groups_of(command))
    options.insert(options.end(), group.options.begin(), group.options.end());
  return options;
}

const Command* find_command(std::string_view name) {
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      if (name == command.name) return &command;
    }
  }
  return nullptr;
}

std::vector<const Command*> verbs_of(std::string_view noun) {
  std::vector<const Command*> verbs;
  const std::string prefix = std::string(noun) + " ";
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      if (std::string_view(command.name).starts_with(prefix)) verbs.push_back(&command);
    }
  }
  return verbs;
}

}  // namespace loam::cli
