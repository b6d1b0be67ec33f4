#include "http/stream_queue.hpp"

#include <gtest/gtest.h>

namespace loam::http {
namespace {

using Kind = StreamQueue::Work::Kind;

struct StreamQueueTest : testing::Test {
  int wakes = 0;
  StreamQueue queue{"head", true, 100, [this] { ++wakes; }};
};

TEST_F(StreamQueueTest, WakesOnlyAConnectionThatRests) {
  EXPECT_EQ(queue.write("a"), Sent::queued);
  EXPECT_EQ(wakes, 0);  // it has not looked yet
  EXPECT_EQ(queue.take().bytes, "head1\r\na\r\n");
  EXPECT_EQ(queue.write("b"), Sent::queued);
  EXPECT_EQ(wakes, 0);  // it writes, and will look again
  EXPECT_EQ(queue.take().bytes, "1\r\nb\r\n");
  EXPECT_EQ(queue.take().kind, Kind::wait);
  EXPECT_EQ(queue.write(""), Sent::queued);  // an empty chunk would end the body
  EXPECT_EQ(wakes, 0);
  EXPECT_EQ(queue.write("c"), Sent::queued);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(queue.write("d"), Sent::queued);
  EXPECT_EQ(wakes, 1);
}

TEST_F(StreamQueueTest, SaysFullAndWhenThereIsRoom) {
  int room = 0;
  EXPECT_EQ(queue.write(std::string(200, 'x')), Sent::queued);  // one piece may pass the bound
  EXPECT_EQ(queue.write("y"), Sent::full);
  queue.on_writable([&] { ++room; });
  EXPECT_EQ(room, 0);
  EXPECT_EQ(queue.take().kind, Kind::write);
  EXPECT_EQ(queue.write("y"), Sent::full);  // still on its way
  EXPECT_EQ(room, 0);
  EXPECT_EQ(queue.take().kind, Kind::wait);
  EXPECT_EQ(room, 1);
  EXPECT_EQ(queue.take().kind, Kind::wait);
  EXPECT_EQ(room, 1);  // once
  queue.on_writable([&] { ++room; });
  EXPECT_EQ(room, 2);  // at once
}

TEST_F(StreamQueueTest, EndsAfterWhatIsQueued) {
  queue.write("a");
  queue.finish();
  EXPECT_TRUE(queue.closed());
  EXPECT_EQ(queue.write("b"), Sent::closed);
  EXPECT_EQ(queue.take().bytes, "head1\r\na\r\n0\r\n\r\n");
  EXPECT_EQ(queue.take().kind, Kind::end);
}

TEST_F(StreamQueueTest, AbortThrowsTheQueueAwayAndWakesEvenAWriter) {
  queue.write("a");
  queue.take();
  queue.abort();
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(queue.take().kind, Kind::abort);
}

TEST_F(StreamQueueTest, TellsOnceThatItIsOver) {
  int closes = 0;
  queue.on_close([&] { ++closes; });
  queue.close();
  queue.close();
  EXPECT_EQ(closes, 1);
  EXPECT_EQ(queue.write("a"), Sent::closed);
  queue.on_close([&] { ++closes; });
  EXPECT_EQ(closes, 2);  // at once
  queue.finish();
  queue.abort();
  EXPECT_EQ(wakes, 0);
}

}  // namespace
}  // namespace loam::http
