// What a hostile or broken client may send. Every refusal closes the connection, and the server
// goes on serving others.
#include "http/fixture.hpp"

namespace loam::http {
namespace {

struct Malformed : ServerTest {
  // Sends `bytes` on a connection of its own and gives back all that comes.
  std::string answer_to(std::string_view bytes) {
    RawClient client = raw();
    client.send(bytes);
    client.finish_writing();
    return client.read_all();
  }
  int status_of(std::string_view bytes) {
    const std::string answer = answer_to(bytes);
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
  }
};

TEST_F(Malformed, RequestLinesAndHeaders) {
  start();
  const std::string host = "Host: a\r\n\r\n";
  for (const std::string& bytes : {
           std::string("\r\n\r\n\r\n"),
           std::string("GET\r\n\r\n"),
           std::string("nonsense\x01\r\n\r\n"),
           "GET  / HTTP/1.1\r\n" + host,
           "GET / HTTP/1.1 \r\n" + host,
           " GET / HTTP/1.1\r\n" + host,
           "GET / http/1.1\r\n" + host,
           "GET / HTTP/1.1\r\nBad Name: x\r\n" + host,
           "GET / HTTP/1.1\r\n: x\r\n" + host,
           "GET / HTTP/1.1\r\nX : y\r\n" + host,
           "GET / HTTP/1.1\r\nX: \x01\r\n" + host,
           "GET / HTTP/1.1\r\nX\r\n" + host,
           std::string("GET / HTTP/1.1\r\n\r\n"),   // no Host
           "GET / HTTP/1.1\r\nHost: b\r\n" + host,  // two
           "GET /a%2Fb HTTP/1.1\r\n" + host,
           "GET /%00 HTTP/1.1\r\n" + host,
           "GET /%zz HTTP/1.1\r\n" + host,
           "GET /../etc/passwd HTTP/1.1\r\n" + host,
           "GET /%2e%2e/%2e%2e HTTP/1.1\r\n" + host,
           "GET a HTTP/1.1\r\n" + host,
           "OPTIONS * HTTP/1.1\r\n" + host,
           "GET /\x80 HTTP/1.1\r\n" + host,
       }) {
    const int status = status_of(bytes);
    EXPECT_TRUE(status == 400 || status == 505) << status << " for " << bytes;
  }
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\n" + host), 505);
  EXPECT_EQ(status_of("BREW / HTTP/1.1\r\n" + host), 501);
  EXPECT_EQ(status_of("CONNECT a:1 HTTP/1.1\r\n" + host), 501);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nExpect: tea\r\n" + host), 417);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + host), 200);
}

TEST_F(Malformed, BodiesWhoseEndCouldBeReadTwoWays) {
  start();
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  for (const char* rest :
       {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", "Content-Length: -1\r\n\r\n",
        "Content-Length: +4\r\n\r\nabcd", "Content-Length: 0x4\r\n\r\nabcd",
        "Content-Length: 99999999999999999999\r\n\r\n", "Content-Length: 4 4\r\n\r\nabcd",
        "Content-Length: \r\n\r\n", "Transfer-Encoding: gzip\r\n\r\n",
        "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n\r\n"}) {
    const int status = status_of(post + rest);
    EXPECT_TRUE(status == 400 || status == 501 || status == 413) << status << " for " << rest;
  }
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_TRUE(
      answer_to(post +
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nT: r\r\n\r\n")
          .ends_with("POST / abcd"));
}

TEST_F(Malformed, CutOffRequestsGetNoAnswer) {
  start();
  for (const char* bytes :
       {"", "G", "GET / HTTP/1.1\r\nHost: a\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"})
    EXPECT_EQ(answer_to(bytes), "") << bytes;
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST_F(Malformed, SizesAreBounded) {
  options.header_bytes_max = 1024;
  options.body_bytes_max = 100;
  start();
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\n";
  EXPECT_EQ(status_of("GET /" + std::string(2000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 431);
  EXPECT_EQ(status_of(head + "X: " + std::string(2000, 'a') + "\r\n\r\n"), 431);
  std::string many = head;
  for (int i = 0; i < 300; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
  EXPECT_EQ(status_of(head + "Content-Length: 101\r\n\r\n" + std::string(101, 'b')), 413);
  // Refused before the body is sent, whether or not the client waits for a word.
  EXPECT_EQ(status_of(head + "Content-Length: 101\r\nExpect: 100-continue\r\n\r\n"), 413);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'b') +
                      "\r\n0\r\n\r\n"),
            413);
  EXPECT_EQ(status_of(head + "Content-Length: 100\r\n\r\n" + std::string(100, 'b')), 200);
}

TEST_F(Malformed, TheAnswerReachesAClientThatIsStillSending) {
  options.body_bytes_max = 1000;
  start();
  RawClient client = raw();
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
  client.send(std::string(1'000'000, 'x'));  // more than the socket holds
  EXPECT_TRUE(client.read_until("413 Content Too Large"));
}

TEST_F(Malformed, SlowClientsAreLetGo) {
  options.header_timeout = Duration{50};
  options.body_timeout = Duration{50};
  options.idle_timeout = Duration{50};
  start();
  RawClient slow_head = raw();
  slow_head.send("GET / HTTP/1.1\r\nHo");
  EXPECT_TRUE(slow_head.read_all().starts_with("HTTP/1.1 408"));
  RawClient slow_body = raw();
  slow_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
  EXPECT_TRUE(slow_body.read_all().starts_with("HTTP/1.1 408"));
  RawClient idle = raw();
  EXPECT_EQ(idle.read_all(), "");
  RawClient kept = raw();
  kept.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(kept.read_all().starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(kept.ended());
}

TEST_F(Malformed, TricklingBytesDoesNotRenewTheTimeLimit) {
  options.header_timeout = Duration{100};
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nX: ");
  const TimePoint end = in_patience();
  while (std::chrono::steady_clock::now() < end && client.send("a"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(std::chrono::steady_clock::now(), end);
}

TEST_F(Malformed, AClientThatDoesNotReadIsLetGo) {
  options.write_timeout = Duration{50};
  handler = [](Request, Responder responder) {
    responder.respond(make_response(200, "", std::string(8'000'000, 'x')));
  };
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

}  // namespace
}  // namespace loam::http
