#include "app/loam/human.hpp"

#include <gtest/gtest.h>

namespace loam::cli {
namespace {

TEST(HumanDuration, grows_with_what_it_measures) {
  EXPECT_EQ(human_duration(0), "0s");
  EXPECT_EQ(human_duration(17), "17ms");
  EXPECT_EQ(human_duration(999), "0.9s");
  EXPECT_EQ(human_duration(9'999), "9.9s");
  EXPECT_EQ(human_duration(42'900), "42s");
  EXPECT_EQ(human_duration(65'000), "1m 05s");
  EXPECT_EQ(human_duration(3'723'000), "1h 02m 03s");
  EXPECT_EQ(human_duration(49LL * 3'600'000), "2d 01h 00m");
  EXPECT_EQ(human_duration(-65'000), "-1m 05s");
}

TEST(ExactSeconds, keeps_every_millisecond) {
  EXPECT_EQ(exact_seconds(0), "0.000 s");
  EXPECT_EQ(exact_seconds(3'723'250), "3,723.250 s");
  EXPECT_EQ(exact_seconds(1'234'567'008), "1,234,567.008 s");
}

TEST(MoneyShort, has_two_to_four_decimals_rounded_half_to_even) {
  EXPECT_EQ(money_short("1", "USD"), "1.00");
  EXPECT_EQ(money_short("0.020833333333", "USD"), "0.0208");
  EXPECT_EQ(money_short("0.00005", "USD"), "0.00005");
  EXPECT_EQ(money_short("0.0000174", "USD"), "0.000017");
  EXPECT_EQ(money_short("0.00015", "USD"), "0.0002");
  EXPECT_EQ(money_short("-2.5", "EUR"), "-2.50");
  EXPECT_EQ(money_short("", "USD"), "");
  EXPECT_EQ(money_short("what", "USD"), "what");
}

TEST(MoneyMost, is_never_below_the_amount) {
  EXPECT_EQ(money_most("0.00001", "USD"), "0.0001");
  EXPECT_EQ(money_most("1.5", "USD"), "1.50");
}

TEST(MoneyColumn, gives_each_as_many_decimals_as_the_longest) {
  EXPECT_EQ(money_column({"1", "0.025", "10.5"}, "USD"),
            (std::vector<std::string>{"1.000", "0.025", "10.500"}));
  EXPECT_EQ(money_exact("0.000000000001", "USD"), "0.000000000001");
}

TEST(Percent, has_one_decimal_at_most) {
  EXPECT_EQ(percent(0.6), "60 %");
  EXPECT_EQ(percent(0.125), "12.5 %");
  EXPECT_EQ(percent(0.2999), "30 %");
  EXPECT_EQ(percent(0), "0 %");
}

TEST(CommandText, is_quoted_where_a_shell_needs_it) {
  EXPECT_EQ(command_text({"./train", "--lr=0.1", "a b", "it's", ""}),
            "./train --lr=0.1 'a b' 'it'\\''s' ''");
}

TEST(InstantText, is_short_and_gives_back_what_it_cannot_read) {
  EXPECT_EQ(instant_text(std::string("2026-03-02T00:00:01.250Z")), "2026-03-02 00:00:01");
  EXPECT_EQ(instant_text(std::nullopt), "");
  EXPECT_EQ(instant_text(std::string("soon")), "soon");
}

}  // namespace
}  // namespace loam::cli
