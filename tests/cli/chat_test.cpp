// `loam chat` and `loam endpoint` against a server that answers as a gateway does.
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <mutex>

#include "app/loam/chat.hpp"
#include "cli/fixture.hpp"
#include "http/server.hpp"

namespace loam::cli {
namespace {

TEST(ChatPieces, AreReadAndFaultsAreErrors) {
  EXPECT_EQ(read_chat_piece(R"({"choices":[{"delta":{"content":"hi"}}]})").value().text, "hi");
  EXPECT_EQ(read_chat_piece(R"({"choices":[{"delta":{}}]})").value().text, "");
  EXPECT_TRUE(read_chat_piece("[DONE]").value().is_done);
  const auto usage =
      read_chat_piece(R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,)"
                      R"("prompt_tokens_details":{"cached_tokens":3}}})");
  ASSERT_TRUE(usage.ok() && usage->usage);
  EXPECT_EQ(usage->usage->cached, 3);
  EXPECT_EQ(read_chat_piece(R"({"error":{"message":"broke"}})").error().message, "broke");
  for (const char* bad : {"", "[]", "x", "7"})
    EXPECT_EQ(read_chat_piece(bad).error().kind, ErrorKind::corrupt) << bad;
  EXPECT_EQ(read_chat_piece(R"({"choices":7,"usage":8})").value().text, "");
  EXPECT_EQ(chat_error(404, R"({"error":{"message":"no such"}})").message, "no such");
  EXPECT_EQ(chat_error(404, "<html>").kind, ErrorKind::not_found);
}

class ChatTest : public ::testing::Test {
 protected:
  ChatTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-chat-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    http::ServerOptions options;
    options.unix_address = http::UnixAddress{folder + "/s"};
    auto started = http::Server::start(options, [this](http::Request q, http::Responder r) {
      answer(std::move(q), std::move(r));
    });
    EXPECT_TRUE(started.ok());
    server = std::make_unique<http::Server>(std::move(started).value());
  }
  ~ChatTest() override {
    server.reset();
    std::filesystem::remove_all(folder);
  }

  void answer(http::Request request, http::Responder responder) {
    std::lock_guard lock(mutex);
    seen.push_back(request);
    if (request.path == "/endpoints" && request.method == http::Method::get) {
      return responder.respond(http::make_response(
          200, "application/json",
          R"({"endpoints":[{"model":"tiny","state":"serving","instances":2,"in_flight":1,)"
          R"("waiting":0,"requests":7}]})"));
    }
    if (request.path.starts_with("/endpoints"))
      return responder.respond(http::make_response(200, "application/json", "{}"));
    if (request.body.find("\"none\"") != std::string::npos) {
      return responder.respond(
          http::make_response(404, "application/json", R"({"error":{"message":"no model none"}})"));
    }
    http::Stream stream = responder.begin_events();
    for (const char* text : {"Hel", "lo"}) {
      stream.send({"", R"({"choices":[{"delta":{"content":")" + std::string(text) + "\"}}]}", ""});
    }
    stream.send({"", R"({"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}})", ""});
    stream.send({"", "[DONE]", ""});
    stream.finish();
  }

  Ran run_here(std::vector<std::string> words) {
    return run(words, {{"LOAM_GATEWAY", folder + "/s"}, {"LOAM_TOKEN", "key"}});
  }

  std::string folder;
  std::mutex mutex;
  std::vector<http::Request> seen;
  std::unique_ptr<http::Server> server;
};

TEST_F(ChatTest, OneMessageIsAnsweredAsItComes) {
  const Ran ran = run_here({"chat", "tiny", "--system", "be brief", "--max-tokens", "9",
                            "--temperature", "0.5", "say", "hello"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "Hello\n");
  EXPECT_NE(ran.err.find("5 prompt tokens (0 cached), 2 generated"), std::string::npos) << ran.err;
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].headers.get("authorization"), "Bearer key");
  const boost::json::value body = boost::json::parse(seen[0].body);
  EXPECT_EQ(boost::json::serialize(body.at("messages")),
            R"([{"role":"system","content":"be brief"},{"role":"user","content":"say hello"}])");
  EXPECT_EQ(body.at("max_completion_tokens").to_number<int>(), 9);
  EXPECT_EQ(body.at("temperature").to_number<double>(), 0.5);
}

TEST_F(ChatTest, AsJsonItIsOneDocument) {
  const Ran ran = run_here({"chat", "tiny", "--json", "hello"});
  EXPECT_EQ(ran.out,
            "{\"model\":\"tiny\",\"content\":\"Hello\",\"prompt_tokens\":5,\"cached_tokens\":0,"
            "\"generated_tokens\":2}\n");
}

TEST_F(ChatTest, ARefusalIsAnErrorWithItsExitCode) {
  const Ran ran = run_here({"chat", "none", "hello"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.err.find("no model none"), std::string::npos) << ran.err;
  EXPECT_EQ(run_here({"chat", "tiny", "--temperature", "hot", "x"}).status, 2);
  EXPECT_EQ(run_here({"chat", "tiny", "--max-tokens", "-1", "x"}).status, 2);
  const Ran nobody = run({"chat", "tiny", "x"}, {{"LOAM_GATEWAY", folder + "/nobody"}});
  EXPECT_EQ(nobody.status, 5);
  EXPECT_NE(nobody.err.find("no loam-gateway answers"), std::string::npos) << nobody.err;
}

TEST_F(ChatTest, EndpointsAreListedMadeAndRemoved) {
  const Ran list = run_here({"endpoint", "list"});
  EXPECT_EQ(list.status, 0) << list.err;
  EXPECT_NE(list.out.find("serving"), std::string::npos) << list.out;
  const Ran made = run_here({"endpoint", "create", "tiny", "--model", "/m.gguf", "--min", "0",
                             "--max", "4", "--idle-after", "90s", "--caller", "beta"});
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(seen.back().body,
            R"({"model":"tiny","file":"/m.gguf","min":0,"max":4,"idle_after":"1m30s",)"
            R"("callers":["beta"]})");
  EXPECT_EQ(run_here({"endpoint", "remove", "tiny"}).status, 0);
  EXPECT_EQ(seen.back().method, http::Method::del);
  EXPECT_EQ(seen.back().path, "/endpoints/tiny");
  EXPECT_EQ(run_here({"endpoint", "create", "tiny"}).status, 2);
}

}  // namespace
}  // namespace loam::cli
