#include "infer/route.hpp"

#include <gtest/gtest.h>

namespace loam::infer {
namespace {

Prompt text(std::string content, std::uint32_t public_extent = 0) {
  Prompt prompt;
  prompt.text = std::move(content);
  prompt.public_extent = public_extent;
  return prompt;
}

std::size_t common(const PrefixMarks& a, const PrefixMarks& b) {
  PrefixTrail trail;
  trail.note(a);
  return trail.matched(b);
}

TEST(Route, PromptsShareAsManyMarksAsBlocks) {
  const std::string head(4 * block_bytes, 'x');
  const auto a = prefix_marks("t", text(head + std::string(block_bytes, 'a')));
  const auto b = prefix_marks("t", text(head + std::string(block_bytes, 'b')));
  EXPECT_EQ(a.size(), 5U);
  EXPECT_EQ(common(a, b), 4U);
  EXPECT_EQ(common(a, a), 5U);
}

TEST(Route, PrivatePrefixesOfTenantsNeverMatch) {
  const std::string head(4 * block_bytes, 'x');
  EXPECT_EQ(common(prefix_marks("t", text(head)), prefix_marks("u", text(head))), 0U);
}

TEST(Route, PublicPrefixesMatchUpToTheirEnd) {
  const std::string head(4 * block_bytes, 'x');
  const auto end = static_cast<std::uint32_t>(3 * block_bytes);
  const auto a = prefix_marks("t", text(head, end));
  EXPECT_EQ(common(a, prefix_marks("u", text(head, end))), 3U);
  EXPECT_EQ(common(a, prefix_marks("t", text(head, end))), 4U);
  // Marked by one only: not shared.
  EXPECT_EQ(common(a, prefix_marks("u", text(head))), 0U);
}

TEST(Route, MessagesAreMarkedWithTheirRoles) {
  Prompt a;
  a.kind = Prompt::Kind::messages;
  a.messages = {{"system", std::string(2 * block_bytes, 's')}, {"user", "hi"}};
  Prompt b = a;
  b.messages[0].role = "user";
  EXPECT_EQ(common(prefix_marks("t", a), prefix_marks("t", b)), 0U);
  EXPECT_EQ(common(prefix_marks("t", a), prefix_marks("t", a)), 2U);
}

TEST(Route, ALongPromptHasABoundedTrail) {
  EXPECT_EQ(prefix_marks("t", text(std::string(10 * prefix_marks_max * block_bytes, 'x'))).size(),
            prefix_marks_max);
}

TEST(Route, TheTrailForgetsTheOldestAndTheLongestBeginningsFirst) {
  PrefixTrail trail(4);
  trail.note({1, 2, 3});
  trail.note({11, 12, 13});
  EXPECT_EQ(trail.size(), 4U);
  EXPECT_EQ(trail.matched({1, 2, 3}), 1U);
  EXPECT_EQ(trail.matched({11, 12, 13}), 3U);
}

InstanceView idle(std::size_t matched = 0) {
  InstanceView view;
  view.accepting = true;
  view.matched = matched;
  view.slots = 4;
  view.cells = 1000;
  return view;
}

TEST(Route, TheLongestMatchWithRoomIsChosen) {
  EXPECT_EQ(choose_instance(std::vector{idle(), idle(3), idle(2)}, 10), 1U);
}

TEST(Route, WithoutAMatchTheLeastLoadedThenTheFirst) {
  auto busy = idle();
  busy.in_flight = 2;
  EXPECT_EQ(choose_instance(std::vector{busy, idle(), idle()}, 10), 1U);
}

TEST(Route, AMatchWithoutASlotOrMemoryIsPassedOver) {
  auto full = idle(9);
  full.in_flight = 4;
  EXPECT_EQ(choose_instance(std::vector{full, idle()}, 10), 1U);
  auto promised = idle(9);
  promised.cells_promised = 995;
  EXPECT_EQ(choose_instance(std::vector{promised, idle()}, 10), 1U);
  EXPECT_EQ(choose_instance(std::vector{promised, idle()}, 5), 0U);
}

TEST(Route, WhereNobodyHasRoomTheShortestQueueForItsSlots) {
  auto small = idle(9);
  small.slots = 1;
  small.in_flight = 3;
  auto large = idle();
  large.in_flight = 8;
  EXPECT_EQ(choose_instance(std::vector{small, large}, 10), 1U);
}

TEST(Route, WhoDoesNotAcceptIsNeverChosen) {
  auto down = idle(9);
  down.accepting = false;
  EXPECT_EQ(choose_instance(std::vector{down}, 1), std::nullopt);
  EXPECT_EQ(choose_instance({}, 1), std::nullopt);
  auto full = idle();
  full.in_flight = 40;
  EXPECT_EQ(choose_instance(std::vector{down, full}, 1), 1U);
}

}  // namespace
}  // namespace loam::infer
