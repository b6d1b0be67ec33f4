// Both sides over real sockets, with workers and ticker as in the daemon.
#include "api/client.hpp"

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "api/fixture.hpp"
#include "http/server.hpp"

namespace loam::api::testing {
namespace {

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    tokens = std::move(*TokenStore::open(folder.path + "/tokens.json"));
    authenticator = std::make_unique<Authenticator>(
        std::map<std::uint32_t, UidGrant>{}, static_cast<std::uint32_t>(::getuid()), *tokens);
    api = std::make_unique<Api>(daemon, *authenticator, *tokens);
    daemon.on_record = [this](const Record& record) { api->on_record(record); };
    daemon.furnish();
    listen();
  }
  ~ClientTest() override {
    server.reset();
    api.reset();
  }

  void listen() {
    http::ServerOptions options;
    options.unix_address = http::UnixAddress{folder.path + "/api.sock"};
    options.tcp_address = http::TcpAddress{"127.0.0.1", 0};
    options.refusal = Api::refusal;
    auto started = http::Server::start(options, [this](http::Request q, http::Responder r) {
      api->handle(std::move(q), std::move(r));
    });
    ASSERT_TRUE(started.ok()) << started.error().message;
    server = std::make_unique<http::Server>(std::move(*started));
  }
  Client local() {
    ConnectOptions options;
    options.address = folder.path + "/api.sock";
    return std::move(*Client::make(options));
  }
  Client remote(const std::string& token) {
    ConnectOptions options;
    options.address = "127.0.0.1:" + std::to_string(server->tcp_port());
    options.token = token;
    return std::move(*Client::make(options));
  }
  static TaskRequest request() {
    TaskRequest made;
    made.tenant = "acme";
    made.command = {"/bin/true", "a b", "c\nd"};
    made.share = "0.25";
    return made;
  }

  Folder folder;
  FakeDaemon daemon;
  std::unique_ptr<TokenStore> tokens;
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<Api> api;
  std::unique_ptr<http::Server> server;
};

TEST_F(ClientTest, every_call_has_its_answer) {
  Client client = local();
  ASSERT_TRUE(client.connect().ok());
  EXPECT_EQ(client.health()->status, "ok");
  EXPECT_EQ(client.whoami()->role, "admin");
  EXPECT_EQ(client.quote(request())->share, 0.25);
  const auto task = client.submit(request());
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ(task->command, request().command);
  EXPECT_EQ(client.task(task->id)->id, task->id);
  TaskQuery query;
  query.tenant = "acme";
  query.limit = 10;
  EXPECT_EQ(client.tasks(query)->tasks.size(), 1U);
  EXPECT_EQ(client.pause(task->id)->state, "stopping");
  daemon.start(TaskId{1});
  daemon.clock.advance(Duration::minutes(1));
  daemon.end(TaskId{1});
  EXPECT_EQ(client.resume(task->id)->state, "starting");
  EXPECT_EQ(client.stop(task->id)->state, "stopping");
  EXPECT_EQ(client.devices()->devices.size(), 1U);
  EXPECT_EQ(client.discover()->devices.size(), 1U);
  EXPECT_EQ(client.drain("n1/0")->state, "draining");
  EXPECT_EQ(client.undrain("d1")->state, "ready");
  int steps = 0;
  EXPECT_EQ(client.calibrate("gpu-1", [&](const ProgressView&) { ++steps; })->uuid, "gpu-1");
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(client.tenants()->tenants.size(), 2U);
  TenantRequest tenant;
  tenant.name = "gamma";
  EXPECT_EQ(client.create_tenant(tenant)->name, "gamma");
  TenantPatch patch;
  patch.quota_ce = "5";
  EXPECT_EQ(client.change_tenant("gamma", patch)->quota_ce, "5");
  EXPECT_EQ(client.top_up("gamma", {"3", ""})->wallet, "3");
  EXPECT_EQ(client.tenant("gamma")->wallet, "3");
  RateRequest rate;
  rate.currency = "EUR";
  rate.on_demand = "1";
  EXPECT_EQ(client.publish_rate(rate)->on_demand, "1");
  EXPECT_EQ(client.rates()->rates.size(), 2U);
  EXPECT_EQ(client.bill("acme")->lines.size(), 1U);
  const auto invoice = client.issue_invoice({"acme", {}});
  ASSERT_TRUE(invoice.ok()) << invoice.error().message;
  EXPECT_EQ(client.invoice(invoice->id)->id, invoice->id);
  EXPECT_EQ(client.invoices()->invoices.size(), 1U);
  EXPECT_GE(client.ledger("acme")->entries.size(), 2U);
  EXPECT_EQ(client.backup("/b")->bytes, 4096);
  EXPECT_EQ(client.reload()->summary, "nothing changed");
  EXPECT_EQ(client.top()->devices.size(), 1U);
  EXPECT_NE(client.openapi()->find("3.1.0"), std::string::npos);
  EXPECT_NE(client.metrics()->find("loam_tasks"), std::string::npos);
}

TEST_F(ClientTest, problems_come_back_as_errors_with_the_next_step) {
  Client client = local();
  const auto missing = client.task("t9");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::not_found);
  EXPECT_NE(missing.error().next_step, "");
  TaskRequest dear = request();
  dear.share = "1";
  dear.time = "8000h";
  EXPECT_EQ(client.submit(dear).error().kind, ErrorKind::exhausted);
  TaskRequest unbuilt = request();
  unbuilt.image = "sha256:1";
  EXPECT_EQ(client.submit(unbuilt).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(client.task("").error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(client.task("..").error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(client.task("t1/stop").error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(client.drain("n1/0/x").error().kind, ErrorKind::invalid_argument);
}

TEST_F(ClientTest, tokens_work_over_tcp_until_revoked) {
  Client admin = local();
  const auto made = admin.create_token({"ci", "member", "acme"});
  ASSERT_TRUE(made.ok());
  Client member = remote(made->token);
  EXPECT_EQ(member.whoami()->tenant, "acme");
  EXPECT_TRUE(admin.revoke_token("ci")->revoked_at.has_value());
  EXPECT_EQ(member.whoami().error().kind, ErrorKind::unauthenticated);
  EXPECT_EQ(remote("").whoami().error().kind, ErrorKind::unauthenticated);
  EXPECT_EQ(remote("wrong").whoami().error().kind, ErrorKind::unauthenticated);
  EXPECT_EQ(admin.tokens()->tokens.size(), 1U);
  ConnectOptions forged;
  forged.token = "a\r\nX: y";
  EXPECT_FALSE(Client::make(forged).ok());
}

TEST_F(ClientTest, nobody_listening_is_unavailable_with_the_address) {
  ConnectOptions options;
  options.address = folder.path + "/nothing.sock";
  auto client = Client::make(options);
  const auto connected = client->connect();
  ASSERT_FALSE(connected.ok());
  EXPECT_EQ(connected.error().kind, ErrorKind::unavailable);
  EXPECT_NE(connected.error().message.find("nothing.sock"), std::string::npos);
}

TEST_F(ClientTest, many_clients_with_one_key_have_one_effect) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Client client = local();
      const auto task = client.submit(request(), "one-key");
      const std::lock_guard lock(mutex);
      ids.insert(task.ok() ? task->id : task.error().message);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ids, std::set<std::string>{"t1"});
  EXPECT_EQ(local().tasks()->tasks.size(), 1U);
}

TEST_F(ClientTest, changes_of_one_tenant_at_once_all_take_effect) {
  const auto change = [this](const TenantPatch& patch) {
    Client client = local();
    EXPECT_TRUE(client.change_tenant("acme", patch).ok());
  };
  TenantPatch ce, memory, tasks, queued;
  ce.quota_ce = "1";
  memory.quota_memory = "1GiB";
  tasks.quota_tasks = "1";
  queued.quota_queued = "1";
  std::vector<std::thread> threads;
  for (const TenantPatch* patch : {&ce, &memory, &tasks, &queued})
    threads.emplace_back([&change, patch] { change(*patch); });
  for (std::thread& thread : threads) thread.join();
  const auto tenant = local().tenant("acme");
  EXPECT_TRUE(tenant->quota_ce && tenant->quota_memory && tenant->quota_tasks &&
              tenant->quota_queued);
}

TEST_F(ClientTest, a_watched_task_is_followed_across_a_restart_of_the_server) {
  const TaskId id{1};
  ASSERT_TRUE(local().submit(request()).ok());
  daemon.start(id);
  std::string output;
  std::vector<std::string> states;
  bool lost = false;
  std::mutex mutex;
  std::condition_variable changed;
  WatchEvents events;
  events.on_task = [&](const TaskView& view) {
    const std::lock_guard lock(mutex);
    if (states.empty() || states.back() != view.state) states.push_back(view.state);
    changed.notify_all();
  };
  events.on_log = [&](const LogChunk& chunk) {
    const std::lock_guard lock(mutex);
    output += chunk.bytes;
    changed.notify_all();
  };
  events.on_lost = [&](const Error&) {
    const std::lock_guard lock(mutex);
    lost = true;
    changed.notify_all();
  };
  const auto say = [&](const std::string& text) {
    daemon.read([&](const engine::State&, Instant) { daemon.logs[{id, LogStream::out}] += text; });
  };
  const auto wait_for = [&](const std::function<bool()>& what) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(30), what);
  };
  say("one ");
  Result<TaskView> last = invalid("not yet");
  std::thread watcher([&] {
    Client client = local();
    WatchOptions options;
    options.logs = true;
    last = client.watch(id.text(), options, events);
  });
  EXPECT_TRUE(wait_for([&] { return output == "one " && !states.empty(); }));
  server.reset();
  EXPECT_TRUE(wait_for([&] { return lost; }));
  say("two");
  listen();
  daemon.end(id, 5);
  watcher.join();
  ASSERT_TRUE(last.ok()) << last.error().message;
  EXPECT_EQ(last->state, "finished");
  EXPECT_EQ(last->exit_code, 5);
  EXPECT_EQ(output, "one two");
  EXPECT_EQ(states, (std::vector<std::string>{"running", "finished"}));
}

TEST_F(ClientTest, watching_ends_when_cancelled_and_leaves_the_task_alone) {
  ASSERT_TRUE(local().submit(request()).ok());
  http::Canceller canceller;
  WatchEvents events;
  events.on_task = [&](const TaskView&) { canceller.cancel(); };
  Client client = local();
  const auto last = client.watch("t1", {}, events, &canceller);
  ASSERT_TRUE(last.ok()) << last.error().message;
  EXPECT_EQ(last->state, "starting");
  EXPECT_EQ(client.task("t1")->state, "starting");
}

TEST_F(ClientTest, watching_what_is_not_there_is_an_error_at_once) {
  Client client = local();
  const auto last = client.watch("t9", {}, {});
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().kind, ErrorKind::not_found);
}

TEST_F(ClientTest, a_log_can_be_followed_as_bytes) {
  ASSERT_TRUE(local().submit(request()).ok());
  const std::string bytes = std::string("\xff\x00\n", 3) + "text";
  daemon.logs[{TaskId{1}, LogStream::err}] = bytes;
  daemon.start(TaskId{1});
  daemon.end(TaskId{1});
  Client client = local();
  std::string got;
  ASSERT_TRUE(client
                  .follow_logs("t1", "stderr", 0,
                               [&](const LogChunk& chunk) {
                                 got += chunk.bytes;
                                 return true;
                               })
                  .ok());
  EXPECT_EQ(got, bytes);
  EXPECT_EQ(client.logs("t1", "stderr", 3)->bytes, "text");
  int views = 0;
  EXPECT_TRUE(client.follow_top([&](const TopView&) { return ++views < 2; }).ok());
  EXPECT_EQ(views, 2);
}

TEST_F(ClientTest, an_api_that_stops_ends_its_streams_and_drops_nothing_half_done) {
  ASSERT_TRUE(local().submit(request()).ok());
  std::thread watcher([&] {
    Client client = local();
    WatchOptions options;
    options.reconnect_for = Duration{0};
    EXPECT_FALSE(client.watch("t1", options, {}).ok());
  });
  for (int i = 0; i < 100 && server->connections() < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  server.reset();
  watcher.join();
  api->stop();
  api->stop();
}

}  // namespace
}  // namespace loam::api::testing
