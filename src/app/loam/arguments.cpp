#include "app/loam/arguments.hpp"

#include <CLI/CLI.hpp>  // the one file of the program that sees it
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>

#include "app/loam/help.hpp"

namespace loam::cli {
namespace {

using Strings = std::vector<std::string>;

bool names(const Option& option, std::string_view word) {
  const std::string all = "," + std::string(option.names) + ",";
  return all.find("," + std::string(word) + ",") != std::string::npos;
}

// Takes the command's name out of `words`, which keep everything else.
std::string take_name(Strings& words) {
  std::size_t at = 0;
  while (at < words.size() && words[at].starts_with('-')) {
    const auto& globals = global_options().options;
    const auto known = std::find_if(globals.begin(), globals.end(),
                                    [&](const Option& option) { return names(option, words[at]); });
    at += known != globals.end() && known->kind != Option::Kind::flag ? 2 : 1;
  }
  if (at >= words.size()) return {};
  const auto take = [&] {
    std::string word = words[at];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    return word;
  };
  std::string name = take();
  // A noun may be a command of its own, beside its verbs: `cost` and `cost export`.
  if (at < words.size() && find_command(name + " " + words[at]) != nullptr)
    return name + " " + take();
  if (find_command(name) != nullptr || verbs_of(name).empty()) return name;
  if (at < words.size() && !words[at].starts_with('-')) name += " " + take();
  return name;
}

Error unknown_command(const std::string& name) {
  Strings candidates;
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) candidates.push_back(command.name);
  }
  const std::size_t blank = name.find(' ');
  const std::string noun = name.substr(0, blank);
  std::string near = nearest(name, candidates);
  // A verb alone, or what people call it elsewhere: "topup", "wallet".
  if (near.empty()) {
    for (const std::string& candidate : candidates) {
      if (candidate.ends_with(" " + name)) near = candidate;
    }
  }
  if (name == "wallet" || name == "balance") near = "tenant show";
  if (name == "pay") near = "tenant topup";
  if (name == "usage" || name == "costs") near = "cost";
  if (noun == "quota")
    return invalid("there is no command '" + name + "'",
                   "a tenant's quota is shown by 'loam tenant show', and set by 'loam tenant set "
                   "NAME --quota-ce CE' and its like");
  if (noun == "pool")
    return invalid("there is no command '" + name + "'",
                   "what can be had is shown by 'loam device list'; the pool's rules are loamd's "
                   "settings: loamd --print-config");
  const auto verbs = verbs_of(noun);
  std::string all;
  for (const Command* verb : verbs)
    all += (all.empty() ? "" : ", ") + std::string(verb->name).substr(noun.size() + 1);
  if (blank == std::string::npos && !verbs.empty())
    return invalid("'" + noun + "' needs a verb", "add one of: " + all);
  if (near.empty() && !verbs.empty())
    return invalid("there is no command '" + name + "'", "the verbs of '" + noun + "' are: " + all);
  return invalid("there is no command '" + name + "'",
                 near.empty() ? "see them all with: loam help"
                              : "did you mean '" + near + "'? see them all with: loam help");
}

Error wrong_option(const Command& command, const std::string& word) {
  Strings candidates;
  for (const Option& option : options_of(command))
    candidates.push_back("--" + std::string(option.key()));
  const std::string near = nearest(word.substr(0, word.find('=')), candidates);
  const std::string help = "see: loam " + std::string(command.name) + " --help";
  // "-5": a number where an amount stands.
  const bool number =
      word.size() > 1 && word.find_first_not_of("0123456789.", 1) == std::string::npos;
  if (number && !command.operands.empty())
    return invalid(word + " is below zero", "give 0 or more; " + help);
  return invalid("'loam " + std::string(command.name) + "' has no option '" + word + "'",
                 near.empty() ? help : "did you mean '" + near + "'? " + help);
}

Result<void> check_count(const Command& command, const Strings& operands) {
  std::size_t least = 0;
  std::size_t most = 0;
  std::string missing;
  for (const Operand& operand : command.operands) {
    const bool needed = operand.kind == Operand::Kind::one || operand.kind == Operand::Kind::many;
    const bool endless = operand.kind != Operand::Kind::one && operand.kind != Operand::Kind::maybe;
    if (needed && operands.size() <= least && missing.empty()) missing = operand.name;
    least += needed ? 1 : 0;
    most = endless ? operands.max_size() : most + (most == operands.max_size() ? 0 : 1);
  }
  const std::string usage = "type: " + usage_text(command);
  if (!missing.empty())
    return invalid("'loam " + std::string(command.name) + "' needs " + missing, usage);
  if (operands.size() > most)
    return invalid("'" + operands[most] + "' is more than 'loam " + command.name + "' takes",
                   usage);
  return {};
}

Result<void> check_choice(const std::string& name, const char* choices, const std::string& value) {
  if (*choices == '\0' || *choices == '@') return {};
  if ((" " + std::string(choices) + " ").find(" " + value + " ") != std::string::npos &&
      !value.empty())
    return {};
  return invalid(name + ": '" + value + "' is not known", "use one of: " + std::string(choices));
}

// The first word that is neither an option nor an option's value; `words` from there are a
// program and its own arguments. "--" goes away.
Strings cut_program(const Command& command, Strings& words) {
  const auto options = options_of(command);
  std::size_t at = 0;
  bool marked = false;
  while (at < words.size()) {
    const std::string& word = words[at];
    marked = word == "--";
    if (marked || !word.starts_with('-') || word == "-") break;
    const auto known = std::find_if(options.begin(), options.end(),
                                    [&](const Option& option) { return names(option, word); });
    at += known != options.end() && known->kind != Option::Kind::flag ? 2 : 1;
  }
  at = std::min(at, words.size());
  Strings program(words.begin() + static_cast<std::ptrdiff_t>(at) + (marked ? 1 : 0), words.end());
  words.resize(at);
  return program;
}

// "share 1": who forgets the two dashes has no program of that name in mind.
Result<void> check_program(const Command& command, const Strings& program) {
  if (program.size() < 2) return {};
  for (const Option& option : options_of(command)) {
    if (option.kind == Option::Kind::flag || option.key() != program.front()) continue;
    return invalid("'" + program.front() + "' is taken for the program to run",
                   "did you mean --" + program.front() + " " + program[1] +
                       "? A program of that name goes after --");
  }
  return {};
}

Result<Arguments> read(const Command& command, Strings words) {
  const bool program =
      !command.operands.empty() && command.operands.back().kind == Operand::Kind::program;
  Arguments arguments;
  if (program) {
    const bool marked = std::find(words.begin(), words.end(), "--") != words.end();
    arguments.operands = cut_program(command, words);
    if (!marked) LOAM_CHECK(check_program(command, arguments.operands));
  }

  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::deque<Strings> values;
  const std::vector<Option> options = options_of(command);
  std::vector<std::pair<const Option*, CLI::Option*>> known;
  for (const Option& option : options) {
    CLI::Option* made = nullptr;
    if (option.kind == Option::Kind::flag) {
      made = app.add_flag(option.names);
    } else {
      made = app.add_option(option.names, values.emplace_back());
      made->expected(1)->allow_extra_args(false);
      made->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    known.emplace_back(&option, made);
  }
  for (const std::string& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      return invalid("'" + word + "' has no value", "write the value after the '='");
  }
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& fault) {
    return invalid(fault.what(), "see: loam " + std::string(command.name) + " --help");
  }
  bool only_operands = false;
  for (const std::string& word : app.remaining()) {
    if (!only_operands && word == "--") {
      only_operands = true;
    } else if (!only_operands && word.size() > 1 && word.front() == '-') {
      return wrong_option(command, word);
    } else {
      arguments.operands.push_back(word);
    }
  }
  for (const auto& [option, made] : known) {
    if (made->count() == 0) continue;
    Strings& out = arguments.options[std::string(option->key())];
    out = made->results();  // as typed: converted, "{}" would be an empty list
    const std::string shown = "--" + std::string(option->key());
    if (option->kind == Option::Kind::value && out.size() > 1)
      return invalid(shown + " is given " + std::to_string(out.size()) + " times", "give it once");
    if (option->kind == Option::Kind::flag) continue;
    for (const std::string& value : out) LOAM_CHECK(check_choice(shown, option->choices, value));
  }
  return arguments;
}

std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

bool asks_help(const std::string& word) {
  return word == "--help" || word == "-h";
}

}  // namespace

std::string nearest(std::string_view word, const Strings& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;  // beyond it nothing is near
  for (const std::string& candidate : candidates) {
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= least) continue;
    least = edits;
    best = candidate;
  }
  return best;
}

Result<Parsed> parse_words(const Strings& given) {
  Strings words = given;
  Parsed parsed;
  if (words == Strings{"--version"}) words = {"version"};
  const std::string name = take_name(words);
  if (name.empty()) {
    for (const std::string& word : words) {
      if (word.starts_with("-") && !asks_help(word)) {
        const auto& globals = global_options().options;
        if (std::none_of(globals.begin(), globals.end(), [&](const Option& option) {
              return names(option, word.substr(0, word.find('=')));
            }))
          return invalid("there is no option '" + word + "'", "see: loam help");
      }
    }
    parsed.help = true;
    return parsed;
  }
  const Command* command = find_command(name);
  Strings own = words;
  if (command != nullptr && !command->operands.empty() &&
      command->operands.back().kind == Operand::Kind::program)
    cut_program(*command, own);
  if (std::any_of(own.begin(), own.end(), asks_help)) {
    if (command == nullptr && verbs_of(name).empty()) return unknown_command(name);
    parsed.help = true;
    parsed.topic = name;
    return parsed;
  }
  if (command == nullptr) return unknown_command(name);
  LOAM_TRY(arguments, read(*command, std::move(words)));
  LOAM_CHECK(check_count(*command, arguments.operands));
  parsed.command = command;
  parsed.arguments = std::move(arguments);
  return parsed;
}

}  // namespace loam::cli
