#include "app/loam/help.hpp"

#include <algorithm>

#include "app/loam/arguments.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/table.hpp"

namespace loam::cli {
namespace {

constexpr const char* indent = "  ";

// Two columns: what is typed, and what it means.
std::string list_text(const std::vector<std::pair<std::string, std::string>>& rows) {
  constexpr std::size_t left_max = 26;
  std::size_t width = 0;
  for (const auto& [left, right] : rows) {
    if (display_width(left) <= left_max) width = std::max(width, display_width(left));
  }
  std::string text;
  for (const auto& [left, right] : rows) {
    const std::size_t used = display_width(left);
    text += indent + left;
    text += used > width ? "\n" + std::string(width + 4, ' ') : std::string(width - used + 2, ' ');
    text += right + "\n";
  }
  return text;
}

std::string lines_of(std::string_view text) {
  std::string out = indent;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out + "\n";
}

std::string title(const std::string& text, bool colour) {
  return styled(text, Style::bold, colour) + "\n";
}

std::pair<std::string, std::string> row_of(const Option& option) {
  std::string left = option.names;
  const std::size_t comma = left.find(',');
  if (comma != std::string::npos) left = left.substr(comma + 1) + ", " + left.substr(0, comma);
  if (*option.value != '\0') left += " " + std::string(option.value);
  std::string right = option.help;
  if (*option.choices != '\0' && *option.choices != '@') {
    std::string choices = option.choices;
    for (std::size_t at = 0; (at = choices.find(' ', at)) != std::string::npos; at += 2)
      choices.replace(at, 1, ", ");
    right += " (" + choices + ")";
  }
  return {left, right};
}

}  // namespace

std::string usage_text(const Command& command) {
  std::string usage = "loam " + std::string(command.name);
  if (!command.groups.empty()) usage += " [options]";
  for (const Operand& operand : command.operands) {
    const std::string name = operand.name;
    switch (operand.kind) {
      case Operand::Kind::one:
        usage += " " + name;
        break;
      case Operand::Kind::maybe:
        usage += " [" + name + "]";
        break;
      case Operand::Kind::many:
        usage += " " + name + "…";
        break;
      case Operand::Kind::any:
        usage += " [" + name + "…]";
        break;
      case Operand::Kind::program:
        usage += " -- " + name;
        break;
    }
  }
  return usage;
}

std::string overview_text(bool colour) {
  std::string text = "loam: shares of accelerators, metered and billed to the second.\n\n" +
                     title("Usage", colour) + indent + "loam COMMAND [options]\n\n" +
                     title("First steps", colour) +
                     lines_of(
                         "loam device list                        what there is\n"
                         "loam quote --share 0.3                  what it would cost\n"
                         "loam run --share 0.3 -- ./train         run it here and now\n"
                         "loam bill acme                          what it has cost") +
                     "\n";
  for (const Section& section : sections()) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Command& command : section.commands)
      rows.emplace_back(command.name, command.summary);
    text += title(section.title, colour) + list_text(rows) + "\n";
  }
  std::vector<std::pair<std::string, std::string>> rows;
  for (const Option& option : global_options().options) rows.push_back(row_of(option));
  text += title(global_options().title, colour) + list_text(rows) + "\n";
  text += title("Environment", colour) +
          list_text({{"LOAM_HOST", "where loamd listens"},
                     {"LOAM_TOKEN", "who asks"},
                     {"LOAM_TENANT", "for which tenant, where --tenant is left out"},
                     {"NO_COLOR", "where set to anything: no colours"}});
  return text + "\nOne command: loam help COMMAND   Exit codes: loam help exit-codes\n";
}

std::string help_text(const Command& command, bool colour) {
  std::string text = std::string(command.summary) + "\n\n" + title("Usage", colour) + indent +
                     usage_text(command) + "\n\n";
  if (*command.about != '\0') text += std::string(command.about) + "\n\n";
  text += title("Example", colour) + lines_of(command.example) + "\n";
  if (!command.operands.empty()) {
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Operand& operand : command.operands) rows.emplace_back(operand.name, operand.help);
    text += title("Arguments", colour) + list_text(rows) + "\n";
  }
  for (const OptionGroup& group : groups_of(command)) {
    if (group.options.empty()) continue;
    std::vector<std::pair<std::string, std::string>> rows;
    for (const Option& option : group.options) rows.push_back(row_of(option));
    text += title(group.title, colour) + list_text(rows) + "\n";
  }
  text.pop_back();
  return text;
}

Result<std::string> topic_text(const std::string& topic, bool colour) {
  if (topic.empty()) return overview_text(colour);
  if (topic == "exit-codes") return exit_codes_text();
  if (const Command* command = find_command(topic)) return help_text(*command, colour);
  const auto verbs = verbs_of(topic);
  if (verbs.empty()) {
    const auto parsed = parse_words({topic, "--help"});
    return parsed ? invalid("there is no help on '" + topic + "'", "see: loam help")
                  : parsed.error();
  }
  std::vector<std::pair<std::string, std::string>> rows;
  std::string examples;
  for (const Command* verb : verbs) {
    rows.emplace_back(usage_text(*verb).substr(5), verb->summary);
    examples += (examples.empty() ? "" : "\n") + std::string(verb->example);
  }
  return title("loam " + topic, colour) + list_text(rows) + "\n" + title("Examples", colour) +
         lines_of(examples) + "\nOne of them: loam help " + topic + " VERB\n";
}

}  // namespace loam::cli
