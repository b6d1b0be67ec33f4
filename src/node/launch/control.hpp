// The conversation with a running launcher: one JSON object a line over the Unix socket in the
// attempt's directory. Described in docs/formats/attempt.md. Shell.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "node/launch/file.hpp"

struct pollfd;

namespace loam::node {

struct ControlRequest {
  enum class Action { stop, kill, pause, resume, status, memory };
  Action action = Action::status;
  std::int64_t grace_ms = -1;  // of stop, negative: the order's own; of memory
  std::string reason;
  std::int64_t bytes = 0;  // of memory: to be given back
};

std::string to_json(const ControlRequest& request);
Result<ControlRequest> parse_control_request(std::string_view line);

// The launcher's answers: {"ok":true,...} or {"ok":false,"error":"..."}, one line.
std::string control_answer_ok(std::string_view status_json = {});
std::string control_answer_error(const Error& error);

// Sends one request to the launcher of the attempt in `directory` and waits for its answer.
// Returns the status that came with it, as JSON, or "" where none came. not_found: no launcher
// listens there (any more).
Result<std::string> ask_launcher(const std::string& directory, const ControlRequest& request,
                                 int timeout_ms = 5000);

// The listening end, to be driven by the caller's poll loop.
class ControlServer {
 public:
  // A path longer than a socket address holds is no trouble.
  static Result<ControlServer> listen(int directory, const char* name);

  // Adds what to wait for.
  void add_waits(std::vector<pollfd>& waits) const;
  // Handles what is ready; `answer` gives the answer to each request line. Only root and the
  // launcher's own user are heard.
  void serve(const std::function<std::string(std::string_view line)>& answer);

 private:
  struct Client {
    Fd socket;
    std::string input;
  };
  Fd listener_;
  std::list<Client> clients_;
};

}  // namespace loam::node
