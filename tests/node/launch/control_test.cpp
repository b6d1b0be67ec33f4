#include "node/launch/control.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

namespace loam::node {
namespace {

using ::testing::HasSubstr;

TEST(ControlRequestJson, survives_the_round_trip) {
  const ControlRequest request{ControlRequest::Action::stop, 1500, "a \"reason\"\nin lines"};
  const auto parsed = parse_control_request(to_json(request));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->action, request.action);
  EXPECT_EQ(parsed->grace_ms, 1500);
  EXPECT_EQ(parsed->reason, request.reason);
  EXPECT_EQ(to_json(request).find('\n'), to_json(request).size() - 1) << "one line";
  const auto memory = parse_control_request(to_json({ControlRequest::Action::memory, 10, {}, 99}));
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->action, ControlRequest::Action::memory);
  EXPECT_EQ(memory->bytes, 99);
}

TEST(ControlRequestJson, refuses_bad_requests) {
  for (const char* bad : {"", "stop", "{}", R"({"action":"explode"})", R"({"action":1})",
                          R"({"action":"stop","grace_ms":-5})", R"({"action":"stop","grce":5})",
                          R"({"action":"stop","grace_ms":1e300})"}) {
    EXPECT_FALSE(parse_control_request(bad).ok()) << bad;
  }
}

TEST(Control, a_directory_whose_path_is_longer_than_a_socket_address_is_no_trouble) {
  char name[] = "/tmp/loam-control-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const std::string directory = std::string(name) + "/" + std::string(200, 'd');
  std::filesystem::create_directory(directory);
  auto opened = open_directory(directory);
  ASSERT_TRUE(opened.ok());
  auto server = ControlServer::listen(opened->get(), "control.sock");
  ASSERT_TRUE(server.ok()) << to_text(server.error());
  bool done = false;
  std::thread serving([&] {
    while (!done) {
      std::vector<pollfd> waits;
      server->add_waits(waits);
      ::poll(waits.data(), waits.size(), 1000);
      server->serve([&](std::string_view line) {
        done = true;
        const auto request = parse_control_request(line);
        return request && request->action == ControlRequest::Action::status
                   ? control_answer_ok("{\"phase\":\"running\"}")
                   : control_answer_error(invalid("what?"));
      });
    }
  });
  const auto answer = ask_launcher(directory, {});
  serving.join();
  ASSERT_TRUE(answer.ok()) << to_text(answer.error());
  EXPECT_EQ(*answer, "{\"phase\":\"running\"}");
  std::filesystem::remove_all(name);
}

TEST(Control, nobody_listening_is_not_found) {
  char name[] = "/tmp/loam-control-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const auto answer = ask_launcher(name, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::not_found);
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace loam::node
