// bench_gateway [STREAMS [TOKENS]]: the gateway alone, between an engine that computes nothing and
// clients that only count, each in a process of its own so that the gateway's time and memory are
// its own. Prints the figures as JSON for the benchmark harness.
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "gateway/fake_engine.hpp"
#include "gateway/gateway.hpp"
#include "http/server.hpp"

namespace {

using namespace loam;
using namespace loam::gateway;
using Clock = std::chrono::steady_clock;

struct Standing {
  std::int64_t cpu_us = 0;
  std::int64_t rss_kib = 0;
  std::int64_t peak_kib = 0;
  std::uint16_t port = 0;
};

struct Anybody final : Access {
  Result<Caller> identify(std::string_view) override {
    Caller caller;
    caller.tenant = "load";
    return caller;
  }
};

std::int64_t status_kib(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::atoll(line.c_str() + field.size() + 1);
  }
  return 0;
}

Standing standing(std::uint16_t port) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
  return {us(used.ru_utime) + us(used.ru_stime), status_kib("VmRSS"), status_kib("VmHWM"), port};
}

// Answers each byte on `ask` with a Standing on `tell`; ends with `ask`.
[[noreturn]] void serve(const std::string& engine_path, int ask, int tell) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Anybody anybody;
  auto gateway = Gateway::start({}, {&anybody, nullptr, nullptr});
  LOAM_ASSERT(gateway.ok());
  gateway->offer({"tiny", "owner", {}, {}});
  gateway->add_instance("e1", "tiny", engine_path);
  http::ServerOptions options = gateway->server_options();
  options.tcp_address = http::TcpAddress{"127.0.0.1", 0};
  auto server = http::Server::start(options, [&](http::Request request, http::Responder responder) {
    gateway->handle(std::move(request), std::move(responder));
  });
  LOAM_ASSERT(server.ok());
  char byte = 0;
  while (::read(ask, &byte, 1) == 1) {
    const Standing now = standing(server->tcp_port());
    LOAM_ASSERT(::write(tell, &now, sizeof(now)) == sizeof(now));
  }
  server->stop(Duration{0});
  gateway->stop();
  std::_Exit(0);
}

struct Process {
  pid_t pid = -1;
  int ask = -1;
  int tell = -1;

  Standing standing() const {
    Standing now;
    LOAM_ASSERT(::write(ask, "?", 1) == 1);
    LOAM_ASSERT(::read(tell, &now, sizeof(now)) == sizeof(now));
    return now;
  }
  void end() const {
    ::close(ask);
    ::waitpid(pid, nullptr, 0);
  }
};

Process fork_gateway(const std::string& engine_path) {
  int ask[2];
  int tell[2];
  LOAM_ASSERT(::pipe2(ask, O_CLOEXEC) == 0 && ::pipe2(tell, O_CLOEXEC) == 0);
  Process process{::fork(), ask[1], tell[0]};
  LOAM_ASSERT(process.pid >= 0);
  if (process.pid == 0) {
    ::close(ask[1]);
    serve(engine_path, ask[0], tell[1]);
  }
  return process;
}

pid_t fork_engine(const std::string& path, std::size_t streams, std::uint32_t tokens) {
  const pid_t pid = ::fork();
  LOAM_ASSERT(pid >= 0);
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  FakeEngine engine(
      path,
      {.slots = 4096, .cells = 1U << 30U, .tokens = tokens, .text = " token", .gather = streams});
  for (;;) ::pause();
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  LOAM_ASSERT(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

struct Client {
  int fd = -1;
  std::string tail;  // the last bytes, for an event cut in two
  std::uint64_t chunks = 0;
  bool is_done = false;
};

constexpr std::string_view chunk_mark = "\"delta\":{\"content\":";

void count(Client& client, std::string_view bytes) {
  std::string text = client.tail + std::string(bytes);
  std::size_t at = 0;
  std::size_t end = 0;
  while ((at = text.find(chunk_mark, at)) != std::string::npos) {
    ++client.chunks;
    at += chunk_mark.size();
    end = at;
  }
  if (text.find("data: [DONE]", end) != std::string::npos) client.is_done = true;
  const std::size_t keep = std::min(text.size() - end, chunk_mark.size() - 1);
  client.tail = text.substr(text.size() - keep);
}

struct Outcome {
  double seconds = 0;  // from the first chunk to the last
  std::uint64_t chunks = 0;
};

Outcome run(std::uint16_t port, std::vector<Client>& clients, std::size_t streams,
            const std::function<void()>& all_sent) {
  const std::string body =
      R"({"model":"tiny","stream":true,"messages":[{"role":"system","content":")" +
      std::string(512, 's') + R"("},{"role":"user","content":"tell me about the weather"}]})";
  const std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  clients.resize(streams);
  for (std::size_t i = 0; i < streams; ++i) {
    clients[i].fd = connect_to(port);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    LOAM_ASSERT(::epoll_ctl(epoll, EPOLL_CTL_ADD, clients[i].fd, &event) == 0);
    if (i + 1 == streams) all_sent();  // the last one starts the engine
    LOAM_ASSERT(::send(clients[i].fd, request.data(), request.size(), 0) ==
                static_cast<ssize_t>(request.size()));
  }
  std::vector<char> buffer(64 * 1024);
  std::size_t left = streams;
  Clock::time_point first{};
  epoll_event events[256];
  while (left > 0) {
    const int ready = ::epoll_wait(epoll, events, 256, 60'000);
    LOAM_ASSERT(ready > 0);
    if (first == Clock::time_point{}) first = Clock::now();
    for (int i = 0; i < ready; ++i) {
      Client& client = clients[events[i].data.u64];
      const ssize_t got = ::recv(client.fd, buffer.data(), buffer.size(), 0);
      if (got > 0) count(client, {buffer.data(), static_cast<std::size_t>(got)});
      if (got > 0 && !client.is_done) continue;
      LOAM_ASSERT(client.is_done);
      ::close(client.fd);
      --left;
    }
  }
  Outcome outcome{std::chrono::duration<double>(Clock::now() - first).count()};
  for (const Client& client : clients) outcome.chunks += client.chunks;
  ::close(epoll);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const auto streams = static_cast<std::size_t>(argc > 1 ? std::atoi(argv[1]) : 1000);
  const auto tokens = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 200);
  ::signal(SIGPIPE, SIG_IGN);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::string pattern = (std::filesystem::temp_directory_path() / "loam-load-XXXXXX").string();
  LOAM_ASSERT(::mkdtemp(pattern.data()) != nullptr);
  const std::string engine_path = pattern + "/engine";
  const pid_t engine = fork_engine(engine_path, streams, tokens);
  const Process gateway = fork_gateway(engine_path);

  const Standing before = gateway.standing();
  Standing loaded;
  std::vector<Client> clients;
  const Outcome outcome = run(before.port, clients, streams, [&] {
    ::usleep(500'000);  // the others have arrived; an idle gateway with all streams waiting
    loaded = gateway.standing();
  });
  const Standing after = gateway.standing();
  gateway.end();
  ::kill(engine, SIGKILL);
  ::waitpid(engine, nullptr, 0);
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);

  LOAM_ASSERT(outcome.chunks == std::uint64_t{streams} * tokens);
  const auto chunks = static_cast<double>(outcome.chunks);
  const double cpu_us = static_cast<double>(after.cpu_us - loaded.cpu_us) / chunks;
  const double kib =
      static_cast<double>(after.peak_kib - before.rss_kib) / static_cast<double>(streams);
  std::printf(
      "{\"figures\":[\n"
      "{\"name\":\"infer_gateway.streams\",\"value\":%zu,\"note\":\"each of %u chunks\"},\n"
      "{\"name\":\"infer_gateway.chunks_per_second\",\"value\":%.1f},\n"
      "{\"name\":\"infer_gateway.cpu_us_per_chunk\",\"value\":%.3f},\n"
      "{\"name\":\"infer_gateway.kib_per_stream\",\"value\":%.2f,"
      "\"note\":\"peak of the run; waiting %.1f\"}]}\n",
      streams, tokens, chunks / outcome.seconds, cpu_us, kib,
      static_cast<double>(loaded.rss_kib - before.rss_kib) / static_cast<double>(streams));
  return 0;
}
