#include "node/launch/control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "node/launch/attempt_files.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/json_fields.hpp"

namespace loam::node {

namespace json = boost::json;

namespace {

using Action = ControlRequest::Action;

constexpr Action actions[] = {Action::stop,   Action::kill,   Action::pause,
                              Action::resume, Action::status, Action::memory};
constexpr std::size_t line_bytes_max = 65536;  // far above any request
constexpr std::size_t clients_max = 64;        // one is the rule

const char* name_of_action(Action action) noexcept {
  switch (action) {
    case Action::stop:
      return "stop";
    case Action::kill:
      return "kill";
    case Action::pause:
      return "pause";
    case Action::resume:
      return "resume";
    case Action::status:
      return "status";
    case Action::memory:
      return "memory";
  }
  return "status";
}

// The address of NAME below an open directory: short whatever the directory's path is.
sockaddr_un address_below(int directory, const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", directory, name);
  return address;
}

}  // namespace

std::string to_json(const ControlRequest& request) {
  json::object root{{"action", name_of_action(request.action)}};
  if (request.grace_ms >= 0) root["grace_ms"] = request.grace_ms;
  if (!request.reason.empty()) root["reason"] = request.reason;
  if (request.bytes > 0) root["bytes"] = request.bytes;
  return json::serialize(root) + "\n";
}

Result<ControlRequest> parse_control_request(std::string_view line) {
  LOAM_TRY(fields, JsonFields::parse(line, "request"));
  ControlRequest request;
  fields.require("action");
  fields.read_enum("action", request.action, actions, &name_of_action);
  constexpr std::int64_t grace_ms_max = std::int64_t{86'400'000} * 365;  // a year
  fields.read("grace_ms", request.grace_ms, 0, grace_ms_max);
  fields.read("reason", request.reason);
  fields.read("bytes", request.bytes, 0, std::numeric_limits<std::int64_t>::max());
  LOAM_CHECK(fields.finish());
  return request;
}

std::string control_answer_ok(std::string_view status_json) {
  json::object root{{"ok", true}};
  if (!status_json.empty()) root["status"] = json::string(status_json.data(), status_json.size());
  return json::serialize(root) + "\n";
}

std::string control_answer_error(const Error& error) {
  return json::serialize(json::object{{"ok", false}, {"error", to_text(error)}}) + "\n";
}

namespace {

// The answer line, without its end.
Result<std::string> read_line(int socket, std::int64_t deadline_ns) {
  std::string line;
  char buffer[65536];
  while (line.find('\n') == std::string::npos) {
    const std::int64_t left_ms = (deadline_ns - boottime_ns()) / 1'000'000;
    pollfd wait{socket, POLLIN, 0};
    const int ready = left_ms > 0 ? ::poll(&wait, 1, static_cast<int>(left_ms)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return Error{ErrorKind::unavailable, "the launcher does not answer", "try again"};
    }
    const ssize_t n = ::read(socket, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error{ErrorKind::not_found, "the launcher went without an answer", ""};
    line.append(buffer, static_cast<std::size_t>(n));
  }
  return line.substr(0, line.find('\n'));
}

}  // namespace

Result<std::string> ask_launcher(const std::string& directory, const ControlRequest& request,
                                 int timeout_ms) {
  const std::int64_t deadline_ns = boottime_ns() + std::int64_t{timeout_ms} * 1'000'000;
  LOAM_TRY(opened, open_directory(directory));
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return os_error("making a socket", errno);
  const sockaddr_un address = address_below(opened.get(), attempt_files::control);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) {
      return Error{ErrorKind::not_found, "no launcher listens in " + directory, ""};
    }
    return os_error("connecting to the launcher in " + directory, errno);
  }
  const std::string line = to_json(request);
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return os_error("asking the launcher in " + directory, errno);
  }
  LOAM_TRY(answer, read_line(socket.get(), deadline_ns));
  LOAM_TRY(fields, JsonFields::parse(answer, "the launcher's answer"));
  bool ok = false;
  std::string error;
  std::string status;
  fields.read("ok", ok);
  fields.read("error", error);
  fields.read("status", status);
  LOAM_CHECK(fields.finish());
  if (!ok) return Error{ErrorKind::conflict, error, ""};
  return status;
}

Result<ControlServer> ControlServer::listen(int directory, const char* name) {
  ControlServer server;
  server.listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server.listener_.valid()) return os_error("making the control socket", errno);
  ::unlinkat(directory, name, 0);
  const sockaddr_un address = address_below(directory, name);
  const int fd = server.listener_.get();
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return os_error("binding the control socket", errno);
  }
  ::fchmodat(directory, name, 0600, 0);
  constexpr int backlog = 16;
  if (::listen(fd, backlog) != 0) return os_error("listening on the control socket", errno);
  return server;
}

void ControlServer::add_waits(std::vector<pollfd>& waits) const {
  if (clients_.size() < clients_max) waits.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) waits.push_back({client.socket.get(), POLLIN, 0});
}

void ControlServer::serve(const std::function<std::string(std::string_view)>& answer) {
  while (clients_.size() < clients_max) {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) break;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        (peer.uid != 0 && peer.uid != ::geteuid())) {
      continue;
    }
    clients_.push_back({std::move(socket), {}});
  }
  for (auto client = clients_.begin(); client != clients_.end();) {
    char buffer[4096];
    ssize_t n = 0;
    bool open = true;
    while ((n = ::read(client->socket.get(), buffer, sizeof buffer)) > 0) {
      client->input.append(buffer, static_cast<std::size_t>(n));
      if (client->input.size() > line_bytes_max) break;
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) open = false;
    for (auto end = client->input.find('\n'); end != std::string::npos;
         end = client->input.find('\n')) {
      const std::string reply = answer(std::string_view(client->input).substr(0, end));
      client->input.erase(0, end + 1);
      // An answer is far below the socket's buffer; who does not read it, loses it.
      (void)!::send(client->socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    if (client->input.size() > line_bytes_max) open = false;
    client = open ? std::next(client) : clients_.erase(client);
  }
}

}  // namespace loam::node
