// Many clients, little work: what the server costs when it is crowded, and when it is idle.
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <mutex>

#include "http/fixture.hpp"

namespace loam::http {
namespace {

using CrowdTest = ServerTest;

TEST_F(CrowdTest, AThousandKeptConnectionsAreServed) {
  constexpr std::size_t crowd = 1000;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_GE(files.rlim_cur, 2 * crowd + 50) << "this test needs more open files";
  start();
  std::vector<RawClient> clients;
  for (std::size_t i = 0; i < crowd; ++i) clients.emplace_back(address());
  ASSERT_TRUE(eventually([&] { return server->connections() == crowd; }));
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < crowd; ++i)
      ASSERT_TRUE(clients[i].send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
    for (std::size_t i = 0; i < crowd; ++i)
      ASSERT_TRUE(clients[i].read_response().ends_with("GET /" + std::to_string(i) + " "));
  }
  EXPECT_EQ(server->connections(), crowd);
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST_F(CrowdTest, OneTooManyIsTold) {
  options.connections_max = 2;
  start();
  RawClient a = raw();
  RawClient b = raw();
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  RawClient c = raw();
  EXPECT_TRUE(c.read_all().starts_with("HTTP/1.1 503"));
  a.close();
  ASSERT_TRUE(eventually([&] { return server->connections() == 1; }));
  EXPECT_TRUE(client().send(get("/")).ok());
}

TEST_F(CrowdTest, ManyThreadsOfHandlersAndClientsAtOnce) {
  options.threads = 2;
  std::mutex mutex;
  std::vector<Responder> waiting;
  std::atomic<bool> over = false;
  handler = [&](Request, Responder responder) {
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(responder));
  };
  start();
  std::thread committer([&] {  // answers in batches, as a group commit does
    while (!over) {
      std::vector<Responder> batch;
      {
        std::lock_guard lock(mutex);
        batch.swap(waiting);
      }
      for (Responder& responder : batch) responder.respond(make_response(200, "", "done"));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Client client(address());
      for (int k = 0; k < 50; ++k) {
        const auto response = client.send(get("/"));
        ASSERT_TRUE(response.ok()) << to_text(response.error());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  committer.join();
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr long idle_switches_max = 20;  // a sanitizer has a thread of its own
#else
constexpr long idle_switches_max = 0;
#endif

long context_switches_of_threads() {
  long total = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;  // the test itself
    std::ifstream status(task.path() / "status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with("voluntary_ctxt_switches:")) total += std::stol(line.substr(24));
    }
  }
  return total;
}

TEST_F(CrowdTest, AnIdleServerSleeps) {
  start();
  Client client = this->client();
  ASSERT_TRUE(client.send(get("/")).ok());
  RawClient idle = raw();
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // what is due now is over
  const long before = context_switches_of_threads();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LE(context_switches_of_threads() - before, idle_switches_max);
}

TEST_F(CrowdTest, ASmallRequestTakesFarBelowTenMilliseconds) {
  start();
  Client client = this->client();
  std::vector<std::int64_t> micros;
  for (int i = 0; i < 2000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(client.send(get("/")).ok());
    micros.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::steady_clock::now() - begin)
                         .count());
  }
  std::sort(micros.begin(), micros.end());
  const std::int64_t p50 = micros[micros.size() / 2];
  const std::int64_t p99 = micros[micros.size() * 99 / 100];
  std::printf("round trip over a Unix socket: p50 %ld us, p99 %ld us\n", static_cast<long>(p50),
              static_cast<long>(p99));
  EXPECT_LT(p50, 10'000);  // the median: a busy machine may spoil the tail
}

}  // namespace
}  // namespace loam::http
