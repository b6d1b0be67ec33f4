#include "node/launch/inside.hpp"

#include <gtest/gtest.h>

namespace loam::node {
namespace {

InsideTask some_task() {
  InsideTask task;
  task.argv = {"a", "", "c\nd"};
  task.environment = {"A=b"};
  task.directory = "/w";
  task.channel = 5;
  task.output = 6;
  task.errors = 7;
  return task;
}

TEST(InsideTaskPack, survives_the_round_trip) {
  InsideTask back;
  ASSERT_TRUE(unpack(pack(some_task()), back));
  EXPECT_EQ(back.argv, some_task().argv);
  EXPECT_EQ(back.environment, some_task().environment);
  EXPECT_EQ(back.directory, "/w");
  EXPECT_EQ(back.channel, 5);
  EXPECT_EQ(back.output, 6);
  EXPECT_EQ(back.errors, 7);
}

TEST(InsideTaskPack, refuses_every_truncation_and_any_surplus) {
  const std::string bytes = pack(some_task());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    InsideTask back;
    EXPECT_FALSE(unpack(bytes.substr(0, length), back)) << length;
  }
  InsideTask back;
  EXPECT_FALSE(unpack(bytes + "x", back));
}

}  // namespace
}  // namespace loam::node
