// Notices to webhooks and commands: delivered, tried again, given up, and never to a program that
// the settings do not list.
#include "app/loamd/notifier.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "http/server.hpp"
#include "http/tls_server.hpp"

namespace loam::daemon {
namespace {

namespace fs = std::filesystem;

class NotifierTest : public ::testing::Test {
 protected:
  NotifierTest() {
    folder_ = fs::temp_directory_path() / ("loam-notifier-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~NotifierTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Notifier::Log log() {
    return [this](bool failed, const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back((failed ? "! " : "") + line);
      changed_.notify_all();
    };
  }
  // Until a line with `part` was logged; generous, for a busy machine.
  bool logged(const std::string& part) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] {
      for (const std::string& line : lines_) {
        if (line.find(part) != std::string::npos) return true;
      }
      return false;
    });
  }
  std::string script(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << "#!/bin/sh\n" << text;
    ::chmod(path.c_str(), 0755);
    return path;
  }
  static Notifier::Options quick() {
    Notifier::Options options;
    options.waits = {Duration{1}, Duration{1}};
    options.patience = Duration::seconds(20);
    return options;
  }

  fs::path folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> lines_;
};

TEST_F(NotifierTest, a_webhook_gets_the_notice_and_is_tried_again_until_it_takes_it) {
  std::atomic<int> calls = 0;
  std::string body, path;
  http::ServerOptions serving;
  serving.tcp_address = http::TcpAddress{"127.0.0.1", 0};
  auto server = http::Server::start(serving, [&](http::Request request, http::Responder responder) {
    body = request.body;
    path = request.path;
    responder.respond(http::make_response(++calls < 3 ? 503 : 204, "text/plain", ""));
  });
  ASSERT_TRUE(server.ok()) << to_text(server.error());
  const std::string address = "127.0.0.1:" + std::to_string((*server).tcp_port());
  {
    Notifier notifier(quick(), log());
    notifier.send("budget ci: limited", "{\"budget\":\"ci\"}", {"http://" + address + "/hook"});
    EXPECT_TRUE(logged("delivered"));
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(body, "{\"budget\":\"ci\"}");
  EXPECT_EQ(path, "/hook");
  EXPECT_TRUE(logged("the answer was 503; again in"));
}

TEST_F(NotifierTest, a_listed_program_gets_the_notice_on_its_input) {
  const std::string out = (folder_ / "got").string();
  Notifier::Options options = quick();
  options.commands = {script("tell", "cat > " + out + "\n")};
  Notifier notifier(options, log());
  notifier.send("n", "{\"kind\":\"reminder\"}", {"command:" + options.commands.front()});
  ASSERT_TRUE(logged("delivered"));
  std::ifstream file(out);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "{\"kind\":\"reminder\"}\n");
}

TEST_F(NotifierTest, what_cannot_be_delivered_is_given_up_and_said_so) {
  Notifier::Options options = quick();
  options.patience = Duration{200};
  options.commands = {script("fails", "exit 3\n"), script("hangs", "sleep 600\n"),
                      (folder_ / "missing").string()};
  Notifier notifier(options, log());
  notifier.send("n", "{}",
                {"command:" + options.commands[0], "command:" + options.commands[1],
                 "command:" + options.commands[2], "http://127.0.0.1:1/"});
  EXPECT_TRUE(logged("fails ended with 3"));
  EXPECT_TRUE(logged("did not end in time and was killed"));
  EXPECT_TRUE(logged("running " + options.commands[2]));
  for (const std::string& command : options.commands)
    EXPECT_TRUE(logged("command:" + command + " given up after 3 tries")) << command;
  EXPECT_TRUE(logged("http://127.0.0.1:1/ given up after 3 tries"));
}

TEST_F(NotifierTest, only_webhooks_and_listed_programs_are_channels) {
  const std::vector<std::string> commands{"/usr/bin/tell"};
  EXPECT_TRUE(check_channel("http://127.0.0.1:8080/x", commands).ok());
  for (const char* channel :
       {"http://relay.example:80", "http://relay.example", "http://[::1]:80/x",
        "https://hooks.example.org/services/T1/B2?key=a%2Fb", "https://hooks.example.org:8443"})
    EXPECT_TRUE(check_channel(channel, commands).ok()) << channel;
  EXPECT_TRUE(check_channel("command:/usr/bin/tell", commands).ok());
  for (const char* channel :
       {"command:/bin/sh", "command:tell", "command:", "", "ftp://x:1/", "https://", "https:///x",
        "http://a:99999/", "https://user:secret@example.org/", "https://example.org/#part",
        "https://example.org/%zz", "/run/x.sock", "http:///run/x.sock"})
    EXPECT_FALSE(check_channel(channel, commands).ok()) << channel;
}

TEST_F(NotifierTest, a_webhook_over_tls_gets_the_notice_where_its_authority_is_known) {
  std::string got;
  http::TlsServer server([&](const std::string& request) {
    got = request;
    return std::string("HTTP/1.1 204 No Content\r\n\r\n");
  });
  Notifier::Options options = quick();
  options.ca_file = (folder_ / "ca.pem").string();
  server.write_ca(options.ca_file);
  const std::string address = "https://localhost:" + std::to_string(server.port());
  {
    Notifier notifier(options, log());
    notifier.send("budget ci: limited", "{}", {address + "/hook/?key=a%2Fb&x=1"}, 4711);
    ASSERT_TRUE(logged("delivered"));
  }
  EXPECT_TRUE(got.starts_with("POST /hook/?key=a%2Fb&x=1 HTTP/1.1\r\n")) << got;
  EXPECT_NE(got.find("Host: localhost:" + std::to_string(server.port()) + "\r\n"),
            std::string::npos);
  EXPECT_NE(got.find("Loam-Notice: 4711\r\n"), std::string::npos);
  // Without it nothing is told, and why is said.
  options.ca_file.clear();
  got.clear();
  Notifier notifier(options, log());
  notifier.send("n", "{}", {address + "/other"});
  EXPECT_TRUE(
      logged("/other given up after 3 tries: the certificate of localhost was not accepted"));
  EXPECT_EQ(got, "");
}

TEST_F(NotifierTest, what_was_not_delivered_is_sent_by_the_next_one) {
  Notifier::Options options = quick();
  options.outbox = (folder_ / "notices.json").string();
  options.waits = {Duration{1}, Duration::hours(1), Duration::hours(1)};
  const std::string out = (folder_ / "got").string();
  options.commands = {script("tell", "exit 1\n")};
  const std::string channel = "command:" + options.commands.front();
  {
    Notifier notifier(options, log());
    notifier.send("budget ci: limited", "{\"n\":1}", {channel}, 17);
    ASSERT_TRUE(logged("again in 1h"));
  }
  const auto left = read_notice_box(options.outbox);
  ASSERT_TRUE(left.ok()) << to_text(left.error());
  EXPECT_EQ(left->told, 17);
  ASSERT_EQ(left->pending.size(), 1U);
  EXPECT_EQ(left->pending[0].json, "{\"n\":1}");
  EXPECT_EQ(left->pending[0].tries, 2);
  struct stat facts {};
  ASSERT_EQ(::stat(options.outbox.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  // It waits out what is left of its hour; here the clock has been set meanwhile.
  NoticeBox box = *left;
  box.pending[0].due = Instant{};
  script("tell", "cat > " + out + "\n");
  {
    Notifier notifier(options, log(), box);
    ASSERT_TRUE(logged("budget ci: limited to " + channel + " delivered"));
  }
  std::ifstream file(out);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "{\"n\":1}\n");
  const auto done = read_notice_box(options.outbox);
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->pending.empty());
  EXPECT_EQ(done->told, 17);
}

TEST_F(NotifierTest, one_that_ends_in_the_middle_of_a_try_leaves_it_to_the_next) {
  Notifier::Options options = quick();
  options.outbox = (folder_ / "notices.json").string();
  const std::string began = (folder_ / "began").string();
  options.commands = {script("slow", "touch " + began + "\nsleep 1\n")};
  Notifier notifier(options, log());
  notifier.send("n", "{}", {"command:" + options.commands.front()}, 5);
  for (int i = 0; i < 6000 && !fs::exists(began); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(fs::exists(began));
  // As a crash would find it.
  const auto box = read_notice_box(options.outbox);
  ASSERT_TRUE(box.ok());
  ASSERT_EQ(box->pending.size(), 1U);
  EXPECT_EQ(box->pending[0].tries, 0);
  EXPECT_EQ(box->told, 5);
}

TEST_F(NotifierTest, an_outbox_that_is_damaged_is_named) {
  const std::string path = (folder_ / "notices.json").string();
  EXPECT_TRUE(read_notice_box(path)->pending.empty()) << "none is an empty one";
  for (const char* text : {"", "{", "[]", "{\"told\":1}", "{\"told\":1,\"pending\":[{}]}"}) {
    std::ofstream(path) << text;
    const auto box = read_notice_box(path);
    ASSERT_FALSE(box.ok()) << text;
    EXPECT_EQ(box.error().kind, ErrorKind::corrupt) << text;
    EXPECT_NE(box.error().message.find(path), std::string::npos);
  }
}

}  // namespace
}  // namespace loam::daemon
