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
  EXPECT_TRUE(check_channel("http://relay.example:80", commands).ok());
  EXPECT_TRUE(check_channel("command:/usr/bin/tell", commands).ok());
  for (const char* channel :
       {"command:/bin/sh", "command:tell", "command:", "", "ftp://x:1/", "https://example.org:443/",
        "http://nowhere", "/run/x.sock", "http:///run/x.sock"})
    EXPECT_FALSE(check_channel(channel, commands).ok()) << channel;
}

}  // namespace
}  // namespace loam::daemon
