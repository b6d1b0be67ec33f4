#include "app/loam/table.hpp"

#include <gtest/gtest.h>

namespace loam::cli {
namespace {

TEST(Table, columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks) {
  Table table({{"NAME"}, {"COST", Align::right}, {"NOTE"}});
  table.add({"a", "1.50", ""});
  table.add({"longer", "100.25", "x"});
  EXPECT_EQ(table.text(false),
            "NAME      COST  NOTE\n"
            "a         1.50\n"
            "longer  100.25  x\n");
}

TEST(Table, width_is_what_a_terminal_shows_not_bytes) {
  Table table({{"NAME"}, {"N", Align::right}});
  table.add({"über", "1"});
  table.add({"日本", "2"});
  table.add({"e\u0301t\u00e9", "3"});  // a combining accent takes no column
  EXPECT_EQ(table.text(false),
            "NAME  N\n"
            "über  1\n"
            "日本  2\n"
            "e\u0301t\u00e9   3\n");
}

TEST(Table, control_characters_and_bad_utf8_cannot_reach_the_terminal) {
  Table table({{"NAME"}});
  table.add({"a\nb\x1b[31m\xff"});
  EXPECT_EQ(table.text(false), "NAME\na\\nb\\x1b[31m\\xff\n");
  EXPECT_EQ(printable("\u202etxt.exe"), "\\xe2\\x80\\xaetxt.exe");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("caf\xc3"), "caf\\xc3");
}

TEST(Table, lines_stay_lines_where_they_may) {
  EXPECT_EQ(printable_lines("a\x1b\nb\n"), "a\\x1b\nb\n");
}

TEST(Table, columns_that_may_go_do_so_before_what_stays_is_broken) {
  Table table(
      {{"ID"}, {"NAME", Align::left, true, 2}, {"DRIVER", Align::left, false, 1}, {"UUID"}});
  table.add({"1", "a name that is long", "pocl", "CL-24c5d0f6"});
  EXPECT_EQ(
      table.text(false, 60),
      "ID  NAME                 DRIVER  UUID\n1   a name that is long  pocl    CL-24c5d0f6\n");
  EXPECT_EQ(table.text(false, 34),
            "ID  NAME       DRIVER  UUID\n1   a name t…  pocl    CL-24c5d0f6\n");
  EXPECT_EQ(table.text(false, 24), "ID  DRIVER  UUID\n1   pocl    CL-24c5d0f6\n");
  EXPECT_EQ(table.text(false, 5), "ID  UUID\n1   CL-24c5d0f6\n");
}

TEST(Table, a_table_too_wide_is_cut_in_the_columns_that_may_shrink) {
  Table table({{"ID"}, {"COMMAND", Align::left, true}});
  table.add({"t1", "python3 train.py --epochs 30"});
  EXPECT_EQ(table.text(false, 20), "ID  COMMAND\nt1  python3 train.p…\n");
}

TEST(Table, cutting_never_splits_a_character) {
  EXPECT_EQ(cut_to("日本語", 6), "日本語");
  EXPECT_EQ(cut_to("日本語", 5), "日本…");
  EXPECT_EQ(cut_to("日本語", 4), "日…");
  EXPECT_EQ(cut_to("abc", 0), "");
}

TEST(Table, colour_changes_no_column) {
  Table table({{"A"}, {"B"}});
  table.add({Cell("x", Style::good), "y"});
  EXPECT_EQ(table.text(true), "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n\x1b[32mx\x1b[0m  y\n");
}

TEST(Facts, names_are_aligned_and_empty_values_left_out) {
  EXPECT_EQ(facts_text({{"a", "1"}, {"gone", ""}, {"long", "2"}}, false), "a     1\nlong  2\n");
}

}  // namespace
}  // namespace loam::cli
