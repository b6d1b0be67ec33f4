// What a command is: data for the parser, the help and the completions, and a function. Adding a
// command is adding an entry to a table. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loam::cli {

class Session;

struct Option {
  enum class Kind { flag, value, list };  // list: may be given several times

  const char* names;  // "--follow,-f"; the first long one is its key
  const char* value;  // what help shows for the value; "" for a flag
  const char* help;
  Kind kind = Kind::value;
  const char* choices = "";  // "strict burstable": nothing else is taken; "@path", "@device",
                             // "@tenant", "@task": what a shell completes

  std::string_view key() const;  // "follow"
};

struct OptionGroup {
  const char* title;
  std::vector<Option> options;
};

struct Operand {
  enum class Kind {
    one,
    maybe,
    many,
    any,
    program
  };                 // many: at least one; any: none is fine;
                     // program: all words to the end
  const char* name;  // "ID"
  const char* help;
  Kind kind = Kind::one;
  const char* choices = "";  // as for options
};

// What was typed, by option key. Values are text; their command reads them.
class Arguments {
 public:
  bool has(std::string_view key) const { return options.find(key) != options.end(); }
  std::string text(std::string_view key, std::string_view otherwise = {}) const {
    const auto found = options.find(key);
    return found == options.end() ? std::string(otherwise) : found->second.front();
  }
  std::vector<std::string> list(std::string_view key) const {
    const auto found = options.find(key);
    return found == options.end() ? std::vector<std::string>{} : found->second;
  }
  std::string operand(std::size_t at) const {
    return at < operands.size() ? operands[at] : std::string();
  }

  std::map<std::string, std::vector<std::string>, std::less<>> options;
  std::vector<std::string> operands;
};

struct Command {
  const char* name;     // "device list"
  const char* summary;  // one line
  const char* about;    // more, where there is more to say
  const char* example;  // lines of a shell
  std::vector<Operand> operands;
  std::vector<OptionGroup> groups;
  Result<int> (*run)(Session&, const Arguments&);  // gives the exit status
  bool writes = false;                             // through the journal: takes an idempotency key
};

// Sections of `loam help`, in reading order.
struct Section {
  const char* title;
  std::vector<Command> commands;
};
const std::vector<Section>& sections();

// Options that every command takes.
const OptionGroup& global_options();

// The groups of a command, then the global options. A command's own option takes the place of a
// global one of the same name.
std::vector<OptionGroup> groups_of(const Command& command);
// All options of those groups.
std::vector<Option> options_of(const Command& command);

// Nullptr where there is none of that name.
const Command* find_command(std::string_view name);
// The names that begin with `noun ` ("device list", …).
std::vector<const Command*> verbs_of(std::string_view noun);

}  // namespace loam::cli
