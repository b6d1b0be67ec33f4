#include "http/server.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include "http/fixture.hpp"

namespace loam::http {
namespace {

TEST_F(ServerTest, AnswersOverAUnixSocketAndKnowsThePeer) {
  Peer seen;
  handler = [&](Request request, Responder responder) {
    seen = request.peer;
    responder.respond(make_response(200, "text/plain", "hi"));
  };
  start();
  const auto response = client().send(get("/"));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hi");
  EXPECT_EQ(response->headers.get("content-type"), "text/plain");
  EXPECT_EQ(seen, Peer(UnixPeer{getuid(), getgid(), getpid()}));
}

TEST_F(ServerTest, AnswersOverTcp) {
  options.unix_address.reset();
  options.tcp_address = TcpAddress{"127.0.0.1", 0};
  Peer seen;
  handler = [&](Request request, Responder responder) {
    seen = request.peer;
    responder.respond(make_response(200, "text/plain", "hi"));
  };
  start();
  ASSERT_NE(server->tcp_port(), 0);
  Client client(TcpAddress{"localhost", server->tcp_port()});
  EXPECT_EQ(client.send(get("/")).value().body, "hi");
  EXPECT_TRUE(std::get<TcpPeer>(seen).address.starts_with("127.0.0.1:"));
}

TEST_F(ServerTest, HandsOverTheWholeRequest) {
  Request seen;
  handler = [&](Request request, Responder responder) {
    seen = std::move(request);
    responder.respond({});
  };
  start();
  Request request;
  request.method = Method::post;
  request.path = "/v1/a b";
  request.query = {{"q", "x&y"}};
  request.headers = {{"X-One", "1"}};
  request.body = std::string("bytes\0and more", 14);
  ASSERT_TRUE(client().send(request).ok());
  EXPECT_EQ(seen.method, Method::post);
  EXPECT_EQ(seen.path, "/v1/a b");
  EXPECT_EQ(seen.query, request.query);
  EXPECT_EQ(seen.headers.get("x-one"), "1");
  EXPECT_EQ(seen.body, request.body);
}

TEST_F(ServerTest, KeepsConnectionsAliveAndPipelinedAnswersInOrder) {
  std::vector<Responder> waiting;
  std::mutex mutex;
  handler = [&](Request request, Responder responder) {
    if (request.path != "/slow") return responder.respond(make_response(200, "", request.path));
    std::lock_guard lock(mutex);
    waiting.push_back(std::move(responder));
  };
  start();
  RawClient client = raw();
  client.send(
      "GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
      "POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.1\r\nHost: "
      "a\r\n\r\n");
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return waiting.size() == 1;
  }));
  EXPECT_EQ(client.received(), "");
  waiting.front().respond(make_response(200, "", "/0"));
  for (const char* path : {"/0", "/1", "/2", "/3"})
    EXPECT_TRUE(client.read_response().ends_with(std::string("\r\n\r\n") + path)) << path;
  EXPECT_EQ(server->connections(), 1u);
}

TEST_F(ServerTest, AnswersLaterFromAnotherThread) {
  std::vector<std::thread> threads;
  handler = [&](Request, Responder responder) {
    threads.emplace_back([responder = std::move(responder)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      responder.respond(make_response(201, "text/plain", "later"));
    });
  };
  start();
  const auto response = client().send(get("/"));
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 201);
}

TEST_F(ServerTest, ADroppedResponderAndAnEscapedExceptionAre500) {
  handler = [](Request request, Responder responder) {
    if (request.path == "/throw") throw std::runtime_error("oh");
    if (request.path == "/late") {
      responder.respond(make_response(200, "", "first"));
      throw std::runtime_error("oh");
    }
  };
  start();
  Client client = this->client();
  EXPECT_EQ(client.send(get("/drop")).value().status, 500);
  EXPECT_EQ(client.send(get("/throw")).value().status, 500);
  EXPECT_EQ(client.send(get("/late")).value().body, "first");
}

TEST_F(ServerTest, AnswersThatWouldForgeHeadersAre500) {
  handler = [](Request request, Responder responder) {
    Response response = make_response(200, "text/plain", "x");
    if (request.path == "/status") response.status = 42;
    if (request.path != "/status") response.headers.add("X-A", "b\r\nSet-Cookie: c=d");
    if (request.path == "/stream") {
      Stream stream = responder.begin_body(std::move(response));
      EXPECT_TRUE(stream.closed());
    } else {
      responder.respond(std::move(response));
    }
  };
  start();
  for (const char* path : {"/header", "/status", "/stream"}) {
    const auto response = client().send(get(path));
    ASSERT_TRUE(response.ok()) << to_text(response.error());
    EXPECT_EQ(response->status, 500) << path;
    EXPECT_EQ(response->headers.find("Set-Cookie"), nullptr);
  }
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  start();
  RawClient client = raw();
  client.send(
      "HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\nConnection: "
      "close\r\n\r\n");
  const std::string& all = client.read_all();
  EXPECT_NE(all.find("Content-Length: 10\r\n"), std::string::npos) << all;
  EXPECT_EQ(all.find("HEAD /abc"), std::string::npos) << all;
  EXPECT_NE(all.find("GET /next"), std::string::npos) << all;

  Client well_behaved = this->client();
  Request request = get("/abc");
  request.method = Method::head;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(well_behaved.send(request).value().body, "");
}

TEST_F(ServerTest, BodilessStatusesHaveNoBody) {
  handler = [](Request, Responder responder) {
    responder.respond(make_response(204, "", "ignored"));
  };
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.read_all().ends_with("\r\n\r\n"));
  EXPECT_EQ(client.received().find("Content-Length"), std::string::npos);
}

TEST_F(ServerTest, ClosesWhenAskedAndForHttp10) {
  start();
  RawClient old = raw();
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(old.read_all().find("Connection: close"), std::string::npos);
  RawClient old_kept = raw();
  old_kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_NE(old_kept.read_response().find("Connection: keep-alive"), std::string::npos);
  RawClient half = raw();
  half.send("GET /half HTTP/1.1\r\nHost: a\r\n\r\n");
  half.finish_writing();  // done asking, still listening
  EXPECT_NE(half.read_all().find("GET /half"), std::string::npos);
}

TEST_F(ServerTest, ContinuesOnExpectation) {
  start();
  RawClient client = raw();
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("body");
  EXPECT_TRUE(client.read_until("POST / body"));
}

TEST_F(ServerTest, StopWaitsForRequestsInFlight) {
  std::vector<Responder> waiting;
  std::atomic<bool> handled = false;
  handler = [&](Request, Responder responder) {
    waiting.push_back(std::move(responder));
    handled = true;
  };
  start();
  RawClient busy = raw();
  RawClient idle = raw();
  busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return handled.load(); }));
  std::thread stopper([&] { EXPECT_TRUE(server->stop(Duration{patience_ms})); });
  EXPECT_EQ(idle.read_all(), "");  // closed at once
  waiting.front().respond(make_response(200, "", "in time"));
  const std::string& all = busy.read_all();
  EXPECT_NE(all.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(all.ends_with("in time"));
  busy.close();
  stopper.join();
  EXPECT_FALSE(std::filesystem::exists(options.unix_address->path));
}

TEST_F(ServerTest, StopCutsOffWhatOutlivesItsGrace) {
  std::vector<Responder> waiting;
  std::atomic<bool> handled = false;
  handler = [&](Request, Responder responder) {
    waiting.push_back(std::move(responder));
    handled = true;
  };
  start();
  RawClient busy = raw();
  busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return handled.load(); }));
  EXPECT_FALSE(server->stop(Duration{10}));
  EXPECT_TRUE(server->stop(Duration{10}));  // a second call does nothing
  EXPECT_EQ(busy.read_all(), "");
  waiting.front().respond({});  // too late, and harmless
  server.reset();
}

TEST_F(ServerTest, RespondersMayOutliveTheServer) {
  std::vector<Responder> waiting;
  std::atomic<int> handled = 0;
  handler = [&](Request, Responder responder) {
    waiting.push_back(std::move(responder));
    ++handled;
  };
  start();
  RawClient a = raw();
  RawClient b = raw();
  RawClient c = raw();
  for (RawClient* client : {&a, &b, &c}) client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return handled == 3; }));
  server.reset();
  waiting[0].respond({});
  {
    Stream stream = waiting[1].begin_events();
    EXPECT_TRUE(stream.closed());
    bool closed = false;
    stream.on_close([&] { closed = true; });
    EXPECT_TRUE(closed);
    EXPECT_EQ(stream.send({"a", "b", ""}), Sent::closed);
  }
  waiting.clear();  // drops the third
}

TEST_F(ServerTest, TwoThreadsServeAtOnce) {
  options.threads = 2;
  std::atomic<int> inside = 0;
  handler = [&](Request, Responder responder) {
    ++inside;
    // Each waits for the other: one thread alone would never get here twice.
    EXPECT_TRUE(eventually([&] { return inside >= 2; }));
    responder.respond({});
  };
  start();
  RawClient a = raw();
  RawClient b = raw();
  a.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  b.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(a.read_response().starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(b.read_response().starts_with("HTTP/1.1 200"));
}

TEST_F(ServerTest, TheProgramWordsTheServersOwnAnswers) {
  options.refusal = [](int status, std::string_view detail) {
    return make_response(status, "application/problem+json", "{" + std::string(detail) + "}");
  };
  start();
  RawClient client = raw();
  client.send("BREW / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(client.read_all().find("application/problem+json"), std::string::npos);
}

// Hands every request to the test, which answers when it likes.
struct LeavingTest : ServerTest {
  LeavingTest() {
    handler = [this](Request request, Responder responder) {
      std::lock_guard lock(mutex);
      responder.on_leave([this] { ++left; });
      waiting.push_back(std::move(responder));
      static_cast<void>(request);
    };
  }
  bool has(std::size_t count) {
    return eventually([&] {
      std::lock_guard lock(mutex);
      return waiting.size() == count;
    });
  }
  void answer(std::size_t index) {
    std::lock_guard lock(mutex);
    waiting[index].respond(make_response(200, "text/plain", "late"));
  }
  std::mutex mutex;
  std::vector<Responder> waiting;
  std::atomic<int> left = 0;
};

TEST_F(LeavingTest, AClientThatLeavesBeforeItsAnswerIsNoticed) {
  start();
  {
    RawClient gone = raw();
    ASSERT_TRUE(gone.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(has(1));
    EXPECT_EQ(left, 0);
  }
  EXPECT_TRUE(eventually([&] { return left == 1; }));
  answer(0);  // to nobody
}

TEST_F(LeavingTest, AHalfClosedClientIsNoticedAndStillReadsItsAnswer) {
  start();
  RawClient half = raw();
  ASSERT_TRUE(half.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  ASSERT_TRUE(has(1));
  half.finish_writing();
  EXPECT_TRUE(eventually([&] { return left == 1; }));
  answer(0);
  EXPECT_TRUE(half.read_response().ends_with("late"));
}

TEST_F(LeavingTest, APipelinedRequestAndALaterEndAreNoLeaving) {
  start();
  RawClient client = raw();
  const std::string request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  ASSERT_TRUE(client.send(request));
  ASSERT_TRUE(has(1));
  ASSERT_TRUE(client.send(request));  // seen by whoever watches the first
  answer(0);
  EXPECT_TRUE(client.read_response().ends_with("late"));
  ASSERT_TRUE(has(2));
  answer(1);
  EXPECT_TRUE(client.read_response().ends_with("late"));
  client.close();  // after its answers
  RawClient other = raw();
  ASSERT_TRUE(other.send(request));
  ASSERT_TRUE(has(3));
  answer(2);
  EXPECT_TRUE(other.read_response().ends_with("late"));
  EXPECT_EQ(left, 0);
}

}  // namespace
}  // namespace loam::http
