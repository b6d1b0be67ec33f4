#include <mutex>

#include "http/fixture.hpp"

namespace loam::http {
namespace {

struct StreamTest : ServerTest {
  StreamTest() {
    handler = [this](Request request, Responder responder) {
      Stream begun = request.path == "/body"
                         ? responder.begin_body(make_response(200, "text/plain", ""))
                         : responder.begin_events();
      std::lock_guard lock(mutex);
      stream = std::move(begun);
      begun_count++;
    };
  }
  // The client may have its answer before the handler has put the stream there.
  ~StreamTest() override { server.reset(); }
  void await_stream() {
    ASSERT_TRUE(eventually([&] { return begun_count > 0; }));
  }

  std::mutex mutex;
  Stream stream;
  std::atomic<int> begun_count = 0;
};

TEST_F(StreamTest, EventsArriveInOrderAndTheEndIsSeen) {
  start();
  std::thread writer([&] {
    await_stream();
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(stream.send({"tick", std::to_string(i), std::to_string(i)}), Sent::queued);
    stream.send_comment("still here");
    stream.finish();
    EXPECT_TRUE(stream.closed());
  });
  int next = 0;
  const auto end = client().stream(get("/"), [&](const SseEvent& event) {
    EXPECT_EQ(event, (SseEvent{"tick", std::to_string(next), std::to_string(next)}));
    ++next;
    return true;
  });
  writer.join();
  ASSERT_TRUE(end.ok()) << to_text(end.error());
  EXPECT_EQ(end->how, StreamEnd::How::finished);
  EXPECT_EQ(end->response.headers.get("content-type"), "text/event-stream");
  EXPECT_EQ(next, 100);
}

TEST_F(StreamTest, TheHeadLeavesBeforeTheFirstEvent) {
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n"));
}

TEST_F(StreamTest, AClientThatLeavesIsNoticedWithoutAWrite) {
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::atomic<bool> left = false;
  stream.on_close([&] { left = true; });
  EXPECT_FALSE(stream.closed());
  client.close();
  EXPECT_TRUE(eventually([&] { return left.load(); }));
  EXPECT_TRUE(stream.closed());
  EXPECT_EQ(stream.send({"a", "b", ""}), Sent::closed);
}

TEST_F(StreamTest, ADroppedStreamIsACutOffBody) {
  start();
  std::thread writer([&] {
    await_stream();
    stream.write("half a");
    // The piece is on its way before the stream is dropped, or not: cut off either way.
    stream = Stream();
  });
  const auto end = client().download(get("/body"), [](std::string_view) { return true; });
  writer.join();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().kind, ErrorKind::unavailable);
}

TEST_F(StreamTest, BodiesOfUnknownLengthArriveWhole) {
  start();
  const std::string piece(100'000, 'x');
  std::thread writer([&] {
    await_stream();
    for (int i = 0; i < 100;) {
      const Sent sent = stream.write(piece);
      ASSERT_NE(sent, Sent::closed);
      if (sent == Sent::queued) ++i;
      if (sent != Sent::full) continue;
      std::atomic<bool> room = false;
      stream.on_writable([&] { room = true; });
      ASSERT_TRUE(eventually([&] { return room.load(); }));
    }
    stream.finish();
  });
  std::size_t bytes = 0;
  const auto end = client().download(get("/body"), [&](std::string_view some) {
    bytes += some.size();
    return true;
  });
  writer.join();
  ASSERT_TRUE(end.ok()) << to_text(end.error());
  EXPECT_EQ(bytes, 10'000'000u);
}

TEST_F(StreamTest, ASlowReaderFillsTheQueueAndNotTheMemory) {
  options.stream_bytes_max = 10'000;
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::atomic<bool> room = false;
  std::size_t queued_bytes = 0;
  const std::string data(5'000, 'x');
  ASSERT_TRUE(eventually([&] {  // until the socket and the queue are both full
    Sent sent = Sent::queued;
    while (sent == Sent::queued && queued_bytes < 100'000'000) {
      sent = stream.send({"", data, ""});
      if (sent == Sent::queued) queued_bytes += data.size();
    }
    return sent == Sent::full;
  }));
  EXPECT_LT(queued_bytes, 100'000'000u);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  while (stream.send({"", data, ""}) == Sent::queued) {
  }
  stream.on_writable([&] { room = true; });
  std::thread reader([&] { client.read_until("data: the end"); });
  EXPECT_TRUE(eventually([&] { return room.load(); }));
  EXPECT_TRUE(eventually([&] { return stream.send({"", "the end", ""}) == Sent::queued; }));
  reader.join();
}

TEST_F(StreamTest, ASlowReaderIsLetGoAfterTheWriteTimeout) {
  options.write_timeout = Duration{50};
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::atomic<bool> left = false;
  stream.on_close([&] { left = true; });
  const std::string data(100'000, 'x');
  EXPECT_TRUE(eventually([&] {
    stream.send({"", data, ""});
    return left.load();
  }));
}

TEST_F(StreamTest, ASilentStreamOutlivesEveryTimeLimit) {
  options.write_timeout = options.idle_timeout = options.header_timeout = Duration{30};
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  EXPECT_EQ(stream.send({"", "alive", ""}), Sent::queued);
  EXPECT_TRUE(client.read_until("alive"));
}

TEST_F(StreamTest, StopEndsEventStreamsProperly) {
  start();
  std::thread stopper([&] {
    await_stream();
    stream.send({"", "last", ""});
    EXPECT_TRUE(server->stop(Duration{patience_ms}));
  });
  int events = 0;
  {
    Client client = this->client();
    const auto end = client.stream(get("/"), [&](const SseEvent&) { return ++events > 0; });
    ASSERT_TRUE(end.ok()) << to_text(end.error());
    EXPECT_EQ(end->how, StreamEnd::How::finished);
  }
  stopper.join();
  EXPECT_EQ(events, 1);
  EXPECT_TRUE(stream.closed());
}

TEST_F(StreamTest, StopLetsBodiesGoOnWithinItsGrace) {
  start();
  std::thread writer([&] {
    await_stream();
    std::thread stopper([&] { EXPECT_TRUE(server->stop(Duration{patience_ms})); });
    EXPECT_TRUE(eventually([&] { return !std::filesystem::exists(options.unix_address->path); }));
    EXPECT_EQ(stream.write("whole"), Sent::queued);
    stream.finish();
    stopper.join();
  });
  std::string body;
  const auto end = client().download(get("/body"), [&](std::string_view some) {
    body += some;
    return true;
  });
  writer.join();
  ASSERT_TRUE(end.ok()) << to_text(end.error());
  EXPECT_EQ(body, "whole");
}

TEST_F(StreamTest, StopCutsStreamsOffWhenItsGraceIsOver) {
  start();
  RawClient client = raw();
  client.send("GET /body HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::atomic<bool> left = false;
  stream.on_close([&] { left = true; });
  EXPECT_FALSE(server->stop(Duration{10}));
  EXPECT_TRUE(left.load());
  EXPECT_FALSE(client.read_all().ends_with("0\r\n\r\n"));
}

TEST_F(StreamTest, HeadAndHttp10AreServedToo) {
  start();
  RawClient head = raw();
  head.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(head.read_all().ends_with("\r\n\r\n"));
  EXPECT_TRUE(head.ended());
  begun_count = 0;
  RawClient old = raw();
  old.send("GET / HTTP/1.0\r\n\r\n");
  await_stream();
  stream.send({"", "x", ""});
  stream.finish();
  EXPECT_TRUE(old.read_all().ends_with("\r\n\r\ndata: x\n\n"));
}

TEST_F(StreamTest, AStreamMayBeFinishedFromItsOwnCallback) {
  start();
  RawClient client = raw();
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await_stream();
  std::atomic<bool> done = false;
  stream.on_close([&] {
    stream.finish();
    done = true;
  });
  client.close();
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

}  // namespace
}  // namespace loam::http
