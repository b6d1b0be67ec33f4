// bench_clients SOCKET CLIENTS TASKS: so many clients at once submit tasks to a running loamd, each
// over its own connection, each request with an idempotency key of its own, until TASKS are
// durable. The device should be taken, so that none of them starts: what is measured is the way of
// a command through the daemon. One thread keeps all connections and reads of an answer only its
// status and its length, so that the two cores are the daemon's. Prints figures as loam-bench reads
// them.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "api/json.hpp"

namespace {

using namespace loam;
using Clock = std::chrono::steady_clock;

struct Run {
  std::string socket;
  std::size_t clients = 64;
  std::int64_t tasks = 100'000;
};

std::string task_text() {
  api::TaskRequest made;
  made.tenant = "acme";
  made.command = {"/bin/true"};
  made.share = "1";
  made.time = "1m";
  return api::to_json(made);
}

// One connection: a request is out, or its answer is being read.
class Connection {
 public:
  ~Connection() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool open(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd_ >= 0 &&
           ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
           ::fcntl(fd_, F_SETFL, O_NONBLOCK) == 0;
  }
  // A request is far below what a socket buffers: it goes out whole or the connection is of no use.
  bool ask(std::string_view body, std::int64_t number) {
    std::string request =
        "POST /v1/tasks HTTP/1.1\r\nHost: loam\r\nContent-Type: application/json\r\n"
        "Idempotency-Key: crowd-" +
        std::to_string(number) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    request += body;
    answer_.clear();
    asked_ = Clock::now();
    return ::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(request.size());
  }
  enum class Heard { more, whole, broken };
  Heard hear() {
    char piece[16'384];
    const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::more;
    if (got <= 0) return Heard::broken;
    answer_.append(piece, static_cast<std::size_t>(got));
    const std::size_t head = answer_.find("\r\n\r\n");
    if (head == std::string::npos) return Heard::more;
    const std::size_t at = answer_.find("Content-Length: ");
    if (at == std::string::npos || at > head) return Heard::broken;
    std::size_t length = 0;
    const char* digits = answer_.data() + at + std::strlen("Content-Length: ");
    if (std::from_chars(digits, answer_.data() + head, length).ec != std::errc{})
      return Heard::broken;
    return answer_.size() < head + 4 + length ? Heard::more : Heard::whole;
  }
  bool is_accepted() const { return answer_.starts_with("HTTP/1.1 201 "); }
  double milliseconds() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - asked_).count();
  }
  int fd() const { return fd_; }
  const std::string& answer() const { return answer_; }

 private:
  int fd_ = -1;
  std::string answer_;
  Clock::time_point asked_;
};

// Milliseconds of each submission; says what went wrong and gives none.
std::vector<double> submit_all(const Run& run) {
  const std::string body = task_text();
  std::vector<Connection> connections(run.clients);
  std::vector<pollfd> waiting;
  std::int64_t asked = 0;
  for (Connection& connection : connections) {
    if (!connection.open(run.socket) || (asked < run.tasks && !connection.ask(body, ++asked))) {
      std::fprintf(stderr, "bench_clients: %s: %s\n", run.socket.c_str(), std::strerror(errno));
      return {};
    }
    waiting.push_back({connection.fd(), POLLIN, 0});
  }
  std::vector<double> milliseconds;
  while (milliseconds.size() < static_cast<std::size_t>(asked)) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return {};
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      Connection& connection = connections[i];
      const auto heard = connection.hear();
      if (heard == Connection::Heard::more) continue;
      if (heard == Connection::Heard::broken || !connection.is_accepted()) {
        std::fprintf(stderr, "bench_clients: not accepted: %s\n", connection.answer().c_str());
        return {};
      }
      milliseconds.push_back(connection.milliseconds());
      if (asked < run.tasks && !connection.ask(body, ++asked)) return {};
    }
  }
  return milliseconds;
}

double percentile(std::vector<double>& values, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

bool read(const char* text, std::int64_t& out) {
  const auto [end, fault] = std::from_chars(text, text + std::strlen(text), out);
  return fault == std::errc{} && *end == '\0' && out > 0;
}

}  // namespace

int main(int count, char** words) {
  Run run;
  std::int64_t clients = 0;
  if (count != 4 || !read(words[2], clients) || !read(words[3], run.tasks)) {
    std::fputs("usage: bench_clients SOCKET CLIENTS TASKS\n", stderr);
    return 2;
  }
  run.socket = words[1];
  run.clients = static_cast<std::size_t>(clients);
  const auto from = Clock::now();
  auto milliseconds = submit_all(run);
  const double seconds = std::chrono::duration<double>(Clock::now() - from).count();
  if (milliseconds.empty()) return 1;
  std::printf("{\"per_second\":%.1f,\"ms_p50\":%.3f,\"ms_p99\":%.3f}\n",
              static_cast<double>(milliseconds.size()) / seconds, percentile(milliseconds, 0.5),
              percentile(milliseconds, 0.99));
  return 0;
}
