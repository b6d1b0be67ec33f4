#include "http/client.hpp"

#include <sys/un.h>

#include "http/fixture.hpp"

namespace loam::http {
namespace {

using ClientTest = ServerTest;

// A server that says the given bytes to whoever connects, whatever they ask.
class Parrot {
 public:
  Parrot(const std::string& path, std::vector<std::string> answers, bool close_after = true)
      : listener_(Listener::on_unix(UnixAddress{path}, 0600).value()),
        thread_([this, answers = std::move(answers), close_after] {
          for (const std::string& answer : answers) {
            pollfd wait{listener_.fd(), POLLIN, 0};
            if (::poll(&wait, 1, patience_ms) != 1) return;
            Descriptor client(::accept(listener_.fd(), nullptr, nullptr));
            char bytes[4096];
            [[maybe_unused]] const auto got = ::recv(client.get(), bytes, sizeof(bytes), 0);
            ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
            if (!close_after) kept_.push_back(std::move(client));
          }
        }) {}
  ~Parrot() { thread_.join(); }

 private:
  Listener listener_;
  std::vector<Descriptor> kept_;
  std::thread thread_;
};

TEST_F(ClientTest, ErrorsNameTheSocketAndTheErrno) {
  const auto missing = client().send(get("/"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::unavailable);
  EXPECT_NE(missing.error().message.find(options.unix_address->path), std::string::npos);
  EXPECT_NE(missing.error().message.find("(errno 2)"), std::string::npos);

  {
    Listener gone = Listener::on_tcp(TcpAddress{"127.0.0.1", 0}, false).value();
    options.tcp_address = TcpAddress{"127.0.0.1", gone.port()};
  }
  const auto refused = Client(*options.tcp_address).connect();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::unavailable);
  EXPECT_NE(refused.error().message.find("refused (errno 111)"), std::string::npos);
}

TEST_F(ClientTest, KeepsItsConnection) {
  start();
  Client client = this->client();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(client.send(get("/")).ok());
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ClientTest, ReconnectsWhenTheServerHasRestarted) {
  start();
  Client client = this->client();
  EXPECT_TRUE(client.send(get("/")).ok());
  server.reset();
  start();
  Request post = get("/again");
  post.method = Method::post;
  EXPECT_TRUE(client.send(post).ok());  // nothing was sent on the dead one
}

TEST_F(ClientTest, ReconnectsWhenIdleTooLong) {
  options.idle_timeout = Duration{30};
  start();
  Client client = this->client();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client.send(get("/")).ok());
    EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
  }
}

TEST_F(ClientTest, RepeatsOnAKeptConnectionOnlyWhatMayBeRepeated) {
  const std::string good = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  {
    // The second request meets a connection that dies under it, the third connection is fine.
    int calls = 0;
    Listener listener = Listener::on_unix(*options.unix_address, 0600).value();
    std::thread server([&] {
      for (int connection = 0; connection < 4; ++connection) {
        pollfd wait{listener.fd(), POLLIN, 0};
        if (::poll(&wait, 1, patience_ms) != 1) return;
        Descriptor peer(::accept(listener.fd(), nullptr, nullptr));
        char bytes[4096];
        for (;;) {
          if (::recv(peer.get(), bytes, sizeof(bytes), 0) <= 0) break;
          ++calls;
          if (calls == 2 || calls == 5) break;  // closes without an answer
          ::send(peer.get(), good.data(), good.size(), MSG_NOSIGNAL);
        }
        if (calls >= 5) return;
      }
    });
    {
      Client client = this->client();
      EXPECT_TRUE(client.send(get("/1")).ok());  // call 1
      EXPECT_TRUE(client.send(get("/2")).ok());  // call 2 dies, call 3 answers
      EXPECT_TRUE(client.send(get("/3")).ok());  // call 4
      Request post = get("/4");
      post.method = Method::post;
      const auto once = client.send(post);  // call 5 dies, and is not repeated
      ASSERT_FALSE(once.ok());
      EXPECT_EQ(once.error().kind, ErrorKind::unavailable);
    }
    server.join();
    EXPECT_EQ(calls, 5);
  }
}

TEST_F(ClientTest, AnswersThatAreNoneAreErrors) {
  for (const char* answer :
       {"", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\nab"}) {
    Parrot parrot(options.unix_address->path, {answer});
    EXPECT_FALSE(client().send(get("/")).ok()) << answer;
  }
}

TEST_F(ClientTest, ReadsEveryFraming) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "HTTP/1.0 200 OK\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"}) {
    Parrot parrot(options.unix_address->path, {answer});
    const auto response = client().send(get("/"));
    ASSERT_TRUE(response.ok()) << answer << to_text(response.error());
    EXPECT_EQ(response->body, "body") << answer;
  }
}

TEST_F(ClientTest, BodiesAndWaitsAreBounded) {
  ClientOptions small;
  small.body_bytes_max = 3;
  small.answer_timeout = Duration{50};
  {
    Parrot parrot(options.unix_address->path, {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"});
    const auto large = Client(address(), small).send(get("/"));
    ASSERT_FALSE(large.ok());
    EXPECT_EQ(large.error().kind, ErrorKind::corrupt);
  }
  Parrot silent(options.unix_address->path, {"HTTP/1.1 200"}, false);
  const auto late = Client(address(), small).send(get("/"));
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.error().message.find("no answer in time"), std::string::npos);
}

TEST_F(ClientTest, HeadersThatCannotBeSentAreRefused) {
  start();
  Request request = get("/");
  request.headers.add("Authorization", "Bearer a\nb");
  const auto response = client().send(request);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(response.error().message.find("Bearer"), std::string::npos);  // it may be a secret
}

TEST_F(ClientTest, AStreamCanBeStoppedCancelledAndRefused) {
  handler = [](Request request, Responder responder) {
    if (request.path == "/no") return responder.respond(make_response(403, "text/plain", "no"));
    static Stream kept;
    kept = responder.begin_events();
    kept.send({"", "one", ""});
  };
  start();
  Client client = this->client();
  const auto stopped = client.stream(get("/"), [](const SseEvent&) { return false; });
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->how, StreamEnd::How::stopped);

  Canceller canceller;
  const auto cancelled = client.stream(
      get("/"),
      [&](const SseEvent&) {
        canceller.cancel();  // as a signal handler would
        return true;
      },
      &canceller);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->how, StreamEnd::How::cancelled);
  EXPECT_TRUE(canceller.cancelled());

  const auto refused = client.stream(get("/no"), [](const SseEvent&) { return true; });
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->how, StreamEnd::How::refused);
  EXPECT_EQ(refused->response.status, 403);
  EXPECT_EQ(refused->response.body, "no");
}

TEST_F(ClientTest, AStreamCutOffIsAnError) {
  Parrot parrot(options.unix_address->path,
                {"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n9\r\ndata: x\n\n\r\n"});
  int events = 0;
  const auto end = client().stream(get("/"), [&](const SseEvent&) { return ++events > 0; });
  EXPECT_FALSE(end.ok());
  EXPECT_EQ(events, 1);
}

}  // namespace
}  // namespace loam::http
