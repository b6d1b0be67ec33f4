#include "node/device/probe.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

namespace loam::node {
namespace {

namespace bj = boost::json;

constexpr int exit_failed = 1;

// Runs the program and hands each line of its standard output to `line`; its standard error stays
// ours. The exit status, or the error that kept it from running.
Result<int> run_lines(const std::vector<std::string>& arguments,
                      const std::function<void(std::string_view)>& line) {
  std::array<int, 2> pipe_ends{};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return Error{
        ErrorKind::unavailable, std::string("no pipe for a probe: ") + std::strerror(errno), {}};
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(pipe_ends[1]);
  if (child < 0) {
    ::close(pipe_ends[0]);
    return Error{
        ErrorKind::unavailable, std::string("cannot fork a probe: ") + std::strerror(errno), {}};
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(pipe_ends[0], buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      line(std::string_view(text).substr(0, end));
      text.erase(0, end + 1);
    }
  }
  ::close(pipe_ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Error probe_failed(const std::string& what, int status) {
  const std::string how = WIFSIGNALED(status)
                              ? "was ended by signal " + std::to_string(WTERMSIG(status))
                              : "ended with status " + std::to_string(WEXITSTATUS(status));
  return Error{ErrorKind::unavailable, "the probe that should " + what + " " + how,
               "look at the driver: clinfo -l, nvidia-smi"};
}

std::string line_of(const char* key, bj::value value) {
  bj::object object;
  object.emplace(key, std::move(value));
  return bj::serialize(object);
}

void print(const std::string& line) {
  std::fprintf(stdout, "%s\n", line.c_str());
  std::fflush(stdout);
}

int fail(const Error& error) {
  bj::object object;
  object.emplace("kind", static_cast<std::int64_t>(error.kind));
  object.emplace("message", error.message);
  object.emplace("next_step", error.next_step);
  print(line_of("error", object));
  return exit_failed;
}

int serve_find() {
  print(line_of("finding", bj::value(to_json(discover_apart(default_sources())))));
  return 0;
}

int serve_calibrate(const std::string& uuid) {
  const Finding finding = discover(default_sources());
  const auto device = std::find_if(finding.devices.begin(), finding.devices.end(),
                                   [&](const FoundDevice& found) { return found.uuid == uuid; });
  if (device == finding.devices.end()) {
    return fail(Error{ErrorKind::not_found, "no device '" + uuid + "' on this node",
                      "see the devices with: loam device list"});
  }
  const auto result =
      calibrate(*device, {}, [](std::string_view step, std::int32_t done, std::int32_t of) {
        bj::object object;
        object.emplace("step", step);
        object.emplace("done", done);
        object.emplace("of", of);
        print(line_of("progress", object));
      });
  if (!result) return fail(result.error());
  print(line_of("calibration", bj::value(to_json(*result))));
  return 0;
}

Error error_from(const bj::object& object) {
  Error error{ErrorKind::unavailable, "the probe failed", {}};
  if (const auto* kind = object.if_contains("kind"); kind != nullptr && kind->is_int64()) {
    const std::int64_t number = kind->get_int64();
    if (number >= 0 && number <= static_cast<std::int64_t>(ErrorKind::internal)) {
      error.kind = static_cast<ErrorKind>(number);
    }
  }
  const auto text = [&](const char* key, std::string& out) {
    if (const auto* value = object.if_contains(key); value != nullptr && value->is_string()) {
      out.assign(value->get_string().data(), value->get_string().size());
    }
  };
  text("message", error.message);
  text("next_step", error.next_step);
  return error;
}

// Runs a probe and gives the text under `key` of its last such line.
Result<std::string> run_probe(const std::vector<std::string>& arguments, const std::string& key,
                              const std::string& what, const CalibrationProgress& progress) {
  std::optional<std::string> answer;
  std::optional<Error> error;
  const auto status = run_lines(arguments, [&](std::string_view line) {
    boost::system::error_code fault;
    const bj::value json = bj::parse(line, fault);
    if (fault || !json.is_object()) return;  // a driver's own chatter
    const bj::object& object = json.get_object();
    if (const auto* value = object.if_contains(key); value != nullptr && value->is_string()) {
      answer = std::string(value->get_string().data(), value->get_string().size());
    } else if (const auto* failed = object.if_contains("error");
               failed != nullptr && failed->is_object()) {
      error = error_from(failed->get_object());
    } else if (const auto* step = object.if_contains("progress");
               step != nullptr && step->is_object() && progress) {
      const bj::object& at = step->get_object();
      const auto* name = at.if_contains("step");
      const auto* done = at.if_contains("done");
      const auto* of = at.if_contains("of");
      if (name && name->is_string() && done && done->is_int64() && of && of->is_int64()) {
        progress(std::string_view(name->get_string().data(), name->get_string().size()),
                 static_cast<std::int32_t>(done->get_int64()),
                 static_cast<std::int32_t>(of->get_int64()));
      }
    }
  });
  if (!status) return status.error();
  if (error) return *error;
  if (*status != 0 || !answer) return probe_failed(what, *status);
  return std::move(*answer);
}

}  // namespace

Result<Finding> probe_find(const std::string& program) {
  LOAM_TRY(text, run_probe({program, "probe", "find"}, "finding", "find devices", {}));
  return parse_finding(text);
}

Result<Calibration> probe_calibrate(const std::string& program, const std::string& uuid,
                                    const CalibrationProgress& progress) {
  LOAM_TRY(text, run_probe({program, "probe", "calibrate", uuid}, "calibration",
                           "calibrate " + uuid, progress));
  return parse_calibration(text);
}

std::optional<int> serve_probe(int argc, char** argv) {
  if (argc < 3 || std::strcmp(argv[1], "probe") != 0) return std::nullopt;
  if (std::strcmp(argv[2], "find") == 0) return serve_find();
  if (std::strcmp(argv[2], "calibrate") == 0 && argc == 4) return serve_calibrate(argv[3]);
  return fail(invalid("unknown probe", "use: probe find, or: probe calibrate UUID"));
}

}  // namespace loam::node
