// model import, model list: model files and what is known of them. The work is loam-model's, which
// lies beside this program where the model library was there when it was built.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using Kind = Option::Kind;

Result<std::string> model_program() {
  std::error_code fault;
  const fs::path beside = fs::read_symlink("/proc/self/exe", fault).parent_path() / "loam-model";
  if (::access(beside.c_str(), X_OK) == 0) return beside.string();
  return Error{ErrorKind::not_found, "there is no " + beside.string(),
               "build where npm can fetch the model library: loam-model is built with it"};
}

// Runs it with this program's own streams; its exit status.
Result<int> start_and_wait(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int fault = ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  if (fault != 0) {
    return Error{ErrorKind::unavailable, "cannot start " + command[0] + ": " + std::strerror(fault),
                 "look at the file"};
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int signal_base = 128;
  return WIFSIGNALED(status) ? signal_base + WTERMSIG(status) : WEXITSTATUS(status);
}

Result<int> run_model_import(Session&, const Arguments& arguments) {
  LOAM_TRY(program, model_program());
  std::vector<std::string> command{program, "import", arguments.operand(0), arguments.operand(1)};
  for (const char* name : {"precision", "text", "threads"}) {
    if (arguments.has(name))
      command.insert(command.end(), {"--" + std::string(name), arguments.text(name)});
  }
  for (const std::string& pattern : arguments.list("keep"))
    command.insert(command.end(), {"--keep", pattern});
  return start_and_wait(command);
}

// What import left beside the file; an empty object where it is no JSON or not there.
json::object record_of(const fs::path& file) {
  std::ifstream in(file.string() + ".json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  boost::system::error_code fault;
  const json::value value = json::parse(text, fault);
  return fault || !value.is_object() ? json::object{} : value.get_object();
}

std::string cell(const json::object& record, std::string_view name) {
  const json::value* value = record.if_contains(name);
  if (value == nullptr || value->is_null()) return "-";
  return value->is_string() ? std::string(value->get_string()) : json::serialize(*value);
}

Result<int> run_model_list(Session& session, const Arguments& arguments) {
  const fs::path folder = arguments.operand(0);
  std::error_code fault;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault)) {
    if (at->path().extension() == ".gguf") files.push_back(at->path());
  }
  if (fault) {
    return Error{ErrorKind::not_found, "cannot read " + folder.string() + ": " + fault.message(),
                 "name a folder with model files"};
  }
  std::sort(files.begin(), files.end());
  json::array all;
  Table table({{"FILE"},
               {"MIB", Align::right},
               {"PRECISION"},
               {"TOKENS/S", Align::right},
               {"PERPLEXITY", Align::right},
               {"KL (NATS)", Align::right}});
  for (const fs::path& file : files) {
    constexpr std::uintmax_t bytes_per_mib = 1U << 20U;
    const std::uintmax_t bytes = fs::file_size(file, fault);
    json::object record = record_of(file);
    table.add({file.filename().string(), std::to_string(bytes / bytes_per_mib),
               cell(record, "precision"), cell(record, "decode_tokens_per_second"),
               cell(record, "perplexity"), cell(record, "divergence_nats")});
    record["file"] = file.string();
    record["bytes"] = bytes;
    all.push_back(std::move(record));
  }
  if (session.json()) {
    session.out() << json::serialize(json::object{{"models", std::move(all)}}) << "\n";
  } else {
    session.out() << session.text_of(table);
  }
  return exit_ok;
}

}  // namespace

std::vector<Command> model_commands() {
  return {
      {"model import",
       "Quantise a GGUF file, and record its size, speed and loss",
       "The record is printed as JSON and kept in TO.json. Loss is measured against FROM, on a "
       "text "
       "that you give.",
       "loam model import llama.f16.gguf llama.mixed.gguf --text held_back.txt",
       {{"FROM", "a GGUF file at 16 or 32 bits"}, {"TO", "the file to write"}},
       {{"How",
         {{"--precision", "P", "f16, q8_0, q4_K_M or mixed (default)", Kind::value,
           "f16 q8_0 q4_K_M mixed"},
          {"--keep", "REGEX", "tensors kept at 8 bits with mixed; repeatable", Kind::list},
          {"--text", "FILE", "measures perplexity and divergence on it", Kind::value, "@path"},
          {"--threads", "N", "for the model's maths (default 1)"}}}},
       run_model_import},
      {"model list",
       "The model files of a folder, and what their import recorded",
       "",
       "loam model list /models",
       {{"FOLDER", "with GGUF files"}},
       {},
       run_model_list},
  };
}

}  // namespace loam::cli
