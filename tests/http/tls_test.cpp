// The client over TLS: answers come through, and a server that cannot prove who it is gets nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "http/client.hpp"
#include "http/tls_server.hpp"

namespace loam::http {
namespace {

namespace fs = std::filesystem;

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() {
    folder_ = fs::temp_directory_path() / ("loam-tls-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    ca_ = (folder_ / "ca.pem").string();
  }
  ~TlsTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  Result<Response> ask(const TlsServer& server, const std::string& name, const std::string& ca,
                       const std::string& body = "{}") {
    ClientOptions options;
    options.answer_timeout = Duration::seconds(30);
    options.tls = TlsOptions{name, ca};
    Client client(TcpAddress{"127.0.0.1", static_cast<std::uint16_t>(server.port())}, options);
    Request request;
    request.method = Method::post;
    request.path = "/hook";
    request.body = body;
    return client.send(request);
  }

  fs::path folder_;
  std::string ca_;
};

std::string fine(const std::string&) {
  return "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
}

TEST_F(TlsTest, an_answer_comes_through_from_a_server_whose_authority_is_known) {
  std::string got;
  TlsServer server([&](const std::string& request) {
    got = request;
    return fine(request);
  });
  server.write_ca(ca_);
  const auto answer = ask(server, "localhost", ca_, "{\"kind\":\"limited\"}");
  ASSERT_TRUE(answer.ok()) << to_text(answer.error());
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "fine");
  EXPECT_NE(got.find("POST /hook HTTP/1.1"), std::string::npos);
  EXPECT_NE(got.find("{\"kind\":\"limited\"}"), std::string::npos);
  // By its address too, where the certificate has that.
  EXPECT_TRUE(ask(server, "127.0.0.1", ca_).ok());
}

TEST_F(TlsTest, large_bodies_go_both_ways) {
  const std::string large(3 << 20, 'x');
  TlsServer server([&](const std::string& request) {
    const std::string size = std::to_string(request.size() - request.find("\r\n\r\n") - 4);
    return "HTTP/1.1 200 OK\r\nX-Size: " + size +
           "\r\nContent-Length: " + std::to_string(large.size()) + "\r\n\r\n" + large;
  });
  server.write_ca(ca_);
  const auto answer = ask(server, "localhost", ca_, large);
  ASSERT_TRUE(answer.ok()) << to_text(answer.error());
  EXPECT_EQ(answer->headers.get("X-Size"), std::to_string(large.size()));
  EXPECT_TRUE(answer->body == large);
}

TEST_F(TlsTest, one_client_asks_again_and_again) {
  TlsServer server(fine);
  server.write_ca(ca_);
  ClientOptions options;
  options.tls = TlsOptions{"localhost", ca_};
  Client client(TcpAddress{"127.0.0.1", static_cast<std::uint16_t>(server.port())}, options);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.send(Request{});
    ASSERT_TRUE(answer.ok()) << to_text(answer.error());
  }
}

TEST_F(TlsTest, an_unknown_authority_is_refused_and_told_nothing) {
  bool asked = false;
  TlsServer server([&](const std::string& request) {
    asked = true;
    return fine(request);
  });
  const auto answer = ask(server, "localhost", "");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::permission_denied);
  EXPECT_NE(answer.error().message.find("certificate of localhost was not accepted"),
            std::string::npos)
      << answer.error().message;
  // Nor that of another authority.
  TlsServer other(fine);
  other.write_ca(ca_);
  EXPECT_EQ(ask(server, "localhost", ca_).error().kind, ErrorKind::permission_denied);
  EXPECT_FALSE(asked);
}

TEST_F(TlsTest, a_certificate_for_another_name_is_refused) {
  TlsServer::Options options;
  options.names = "DNS:hooks.example.org";
  TlsServer server(fine, options);
  server.write_ca(ca_);
  for (const char* name : {"localhost", "127.0.0.1", "example.org", "evil.hooks.example.org"}) {
    const auto answer = ask(server, name, ca_);
    ASSERT_FALSE(answer.ok()) << name;
    EXPECT_EQ(answer.error().kind, ErrorKind::permission_denied) << answer.error().message;
  }
  EXPECT_TRUE(ask(server, "hooks.example.org", ca_).ok());
}

TEST_F(TlsTest, a_certificate_that_has_run_out_is_refused) {
  TlsServer::Options options;
  options.valid_seconds = -60;
  TlsServer server(fine, options);
  server.write_ca(ca_);
  const auto answer = ask(server, "localhost", ca_);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().message.find("expired"), std::string::npos) << answer.error().message;
}

TEST_F(TlsTest, versions_before_1_2_are_not_spoken) {
  TlsServer::Options options;
  options.max_version = TLS1_1_VERSION;
  TlsServer server(fine, options);
  server.write_ca(ca_);
  const auto answer = ask(server, "localhost", ca_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::unavailable);
}

TEST_F(TlsTest, an_answer_that_is_cut_off_is_no_answer) {
  TlsServer::Options options;
  options.says_goodbye = false;
  // Without a length the end of the connection would be the end of the answer.
  TlsServer server([](const std::string&) { return "HTTP/1.1 200 OK\r\n\r\nhalf of it"; }, options);
  server.write_ca(ca_);
  const auto answer = ask(server, "localhost", ca_);
  ASSERT_FALSE(answer.ok());
  TlsServer polite([](const std::string&) { return "HTTP/1.1 200 OK\r\n\r\nall of it"; });
  polite.write_ca(ca_);
  const auto whole = ask(polite, "localhost", ca_);
  ASSERT_TRUE(whole.ok()) << to_text(whole.error());
  EXPECT_EQ(whole->body, "all of it");
}

TEST_F(TlsTest, a_file_that_holds_no_certificate_is_named) {
  TlsServer server(fine);
  std::ofstream(ca_) << "not a certificate\n";
  for (const std::string& path : {ca_, ca_ + ".missing"}) {
    const auto answer = ask(server, "localhost", path);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().kind, ErrorKind::not_found);
    EXPECT_NE(answer.error().message.find(path), std::string::npos);
  }
}

TEST_F(TlsTest, a_server_that_speaks_no_tls_is_an_error) {
  // The other way round, a plain client at a TLS server, gets no answer either.
  TlsServer server(fine);
  Client plain(TcpAddress{"127.0.0.1", static_cast<std::uint16_t>(server.port())}, {});
  EXPECT_FALSE(plain.send(Request{}).ok());
}

}  // namespace
}  // namespace loam::http
