#include "app/loam/completion.hpp"

#include <set>

#include "app/loam/command.hpp"

namespace loam::cli {
namespace {

// What lists the present names of a kind; the column is that of the table that people see.
std::string lister(const std::string& kind) {
  const auto first_column = [](const std::string& list) {
    return "loam " + list + " --quiet 2>/dev/null | awk 'NR>1{print $1}'";
  };
  if (kind == "@task") return first_column("ps");
  if (kind == "@any_task") return first_column("ps --all");
  for (const char* noun : {"budget", "invoice", "commit", "reservation", "endpoint"}) {
    if (kind == "@" + std::string(noun)) return first_column(noun + std::string(" list"));
  }
  if (kind == "@device") return "loam device list --quiet 2>/dev/null | awk 'NR>1{print $2}'";
  if (kind == "@tenant") return first_column("tenant list");
  return {};
}

std::vector<std::string> names_of(const Option& option) {
  std::vector<std::string> names(1);
  for (const char* c = option.names; *c != '\0'; ++c) {
    if (*c == ',') {
      names.emplace_back();
    } else {
      names.back() += *c;
    }
  }
  return names;
}

// The shell words that offer `choices` to bash.
std::string offer(const std::string& choices) {
  if (choices == "@path") return "COMPREPLY=($(compgen -f -- \"$cur\"))";
  const std::string command = lister(choices);
  if (!command.empty()) return "COMPREPLY=($(compgen -W \"$(" + command + ")\" -- \"$cur\"))";
  if (choices.empty() || choices.front() == '@') return "COMPREPLY=()";
  return "COMPREPLY=($(compgen -W '" + choices + "' -- \"$cur\"))";
}

std::string first_words() {
  std::set<std::string> words;
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      const std::string name = command.name;
      words.insert(name.substr(0, name.find(' ')));
    }
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::set<std::string> nouns() {
  std::set<std::string> nouns;
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) {
      const std::string name = command.name;
      if (name.find(' ') != std::string::npos) nouns.insert(name.substr(0, name.find(' ')));
    }
  }
  return nouns;
}

std::string bash_command(const Command& command) {
  std::string options;
  std::string values;
  for (const Option& option : options_of(command)) {
    std::string pattern;
    for (const std::string& name : names_of(option)) {
      options += (options.empty() ? "" : " ") + name;
      pattern += (pattern.empty() ? "" : "|") + name;
    }
    if (option.kind != Option::Kind::flag)
      values += "        " + pattern + ") " + offer(option.choices) + "; return ;;\n";
  }
  std::string rest = "COMPREPLY=()";
  if (!command.operands.empty()) {
    const Operand& operand = command.operands.front();
    rest = offer(operand.kind == Operand::Kind::program ? "@path" : operand.choices);
  }
  return "    '" + std::string(command.name) + "')\n      case \"$prev\" in\n" + values +
         "      esac\n      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '" + options +
         "' -- \"$cur\"))\n      else " + rest + "\n      fi ;;\n";
}

std::string bash_text() {
  std::string verbs;
  for (const std::string& noun : nouns()) {
    std::string words;
    for (const Command* verb : verbs_of(noun))
      words += (words.empty() ? "" : " ") + std::string(verb->name).substr(noun.size() + 1);
    verbs +=
        "      " + noun + ") COMPREPLY=($(compgen -W '" + words + "' -- \"$cur\")); return ;;\n";
  }
  std::string noun_pattern;
  for (const std::string& noun : nouns()) noun_pattern += (noun_pattern.empty() ? "" : "|") + noun;
  std::string text =
      "# Completion of loam. Use it with: source <(loam completion bash)\n"
      "_loam() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} name\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      first_words() +
      "' -- \"$cur\")); return\n"
      "  fi\n"
      "  if ((COMP_CWORD == 2)); then\n"
      "    case ${COMP_WORDS[1]} in\n" +
      verbs +
      "    esac\n"
      "  fi\n"
      "  name=${COMP_WORDS[1]}\n"
      "  case $name in " +
      noun_pattern +
      ") name+=\" ${COMP_WORDS[2]}\" ;; esac\n"
      "  case $name in\n";
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) text += bash_command(command);
  }
  return text + "  esac\n}\ncomplete -o filenames -o bashdefault -F _loam loam\n";
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_command(const Command& command) {
  const std::string name = command.name;
  const std::size_t blank = name.find(' ');
  std::string when = "__fish_seen_subcommand_from " + name.substr(0, blank);
  std::string text;
  if (blank == std::string::npos) {
    text = "complete -c loam -n __fish_use_subcommand -a " + name + " -d " +
           fish_quoted(command.summary) + "\n";
  } else {
    text = "complete -c loam -n " + fish_quoted(when) + " -a " + name.substr(blank + 1) + " -d " +
           fish_quoted(command.summary) + "\n";
    when += "; and __fish_seen_subcommand_from " + name.substr(blank + 1);
  }
  for (const Option& option : options_of(command)) {
    text += "complete -c loam -n " + fish_quoted(when);
    for (const std::string& each : names_of(option))
      text += each.starts_with("--") ? " -l " + each.substr(2) : " -s " + each.substr(1);
    const std::string choices = option.choices;
    const std::string command_line = lister(choices);
    if (option.kind != Option::Kind::flag) text += choices == "@path" ? " -r -F" : " -x";
    if (!command_line.empty()) {
      text += " -a " + fish_quoted("(" + command_line + ")");
    } else if (!choices.empty() && choices.front() != '@') {
      text += " -a " + fish_quoted(choices);
    }
    text += " -d " + fish_quoted(option.help) + "\n";
  }
  if (!command.operands.empty()) {
    const std::string command_line = lister(command.operands.front().choices);
    if (!command_line.empty())
      text += "complete -c loam -n " + fish_quoted(when) + " -a " +
              fish_quoted("(" + command_line + ")") + "\n";
  }
  return text;
}

std::string fish_text() {
  std::string text =
      "# Completion of loam. Use it with: loam completion fish | source\n"
      "complete -c loam -f\n";
  for (const std::string& noun : nouns())
    text += "complete -c loam -n __fish_use_subcommand -a " + noun + "\n";
  for (const Section& section : sections()) {
    for (const Command& command : section.commands) text += fish_command(command);
  }
  return text;
}

}  // namespace

std::string completion_text(const std::string& shell) {
  if (shell == "fish") return fish_text();
  if (shell == "bash") return bash_text();
  return "#compdef loam\n# Completion of loam. Use it with: source <(loam completion zsh)\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_text();
}

}  // namespace loam::cli
