// What a rate card must be, and which price it gives when.
#include "billing/fixture.hpp"

namespace loam::billing {
namespace {

PriceTerms day_and_night() {
  PriceTerms terms;
  terms.windows = {window("day", hm(8), hm(20)), window("night", hm(20), hm(8))};
  terms.prices = {by_time("day", "2"), by_time("night", "1")};
  return terms;
}

std::string fault(const PriceTerms& terms) {
  return refusal(PriceTable::compile(card("1"), terms));
}

TEST(PriceTable, refuses_weeks_with_gaps_and_overlaps_by_naming_the_place) {
  PriceTerms terms = day_and_night();
  terms.windows[1].to = hm(7);
  EXPECT_NE(fault(terms).find("gap from Sunday 07:00 to Sunday 08:00"), std::string::npos)
      << fault(terms);
  terms = day_and_night();
  terms.windows[1].to = hm(9);
  EXPECT_NE(fault(terms).find("overlap at Sunday 08:00"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.windows[0].weekdays = {1, 2, 3, 4, 5};
  EXPECT_NE(fault(terms).find("gap from Sunday 08:00 to Sunday 20:00"), std::string::npos)
      << fault(terms);
  terms = day_and_night();
  terms.windows[0].weekdays = {7};
  EXPECT_NE(fault(terms).find("weekday 7"), std::string::npos) << fault(terms);
}

TEST(PriceTable, refuses_windows_that_never_occur) {
  PriceTerms terms = day_and_night();
  terms.windows.push_back(window("never", hm(3), hm(3)));
  EXPECT_NE(fault(terms).find("never occurs"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.zone = "America/New_York";
  terms.windows.push_back({"sale", {}, "2025-03-09", hm(2, 15), hm(2, 45)});
  terms.prices.push_back(by_time("sale", "0.5"));
  EXPECT_NE(fault(terms).find("on 2025-03-09 the clocks of America/New_York skip it"),
            std::string::npos)
      << fault(terms);
  terms.windows.back().date = "2025-03-10";
  EXPECT_EQ(fault(terms), "");
  terms.windows.back().date = "2025-02-30";
  EXPECT_NE(fault(terms).find("no day '2025-02-30'"), std::string::npos) << fault(terms);
  terms.windows.back() = window("sale", hm(25), hm(26));
  EXPECT_NE(fault(terms).find("not within a day"), std::string::npos) << fault(terms);
}

TEST(PriceTable, refuses_unknown_zones_and_other_currencies) {
  PriceTerms terms = day_and_night();
  terms.zone = "Europe/Atlantis";
  EXPECT_NE(fault(terms).find("no time zone 'Europe/Atlantis'"), std::string::npos);
  terms = day_and_night();
  terms.prices[0].tiers[0].price = money("2", Currency("EUR"));
  EXPECT_NE(fault(terms).find("not an amount of USD"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.services.network = money("-1");
  EXPECT_NE(fault(terms).find("service rate"), std::string::npos) << fault(terms);
}

TEST(PriceTable, refuses_tiers_and_prices_that_leave_gaps) {
  PriceTerms terms = day_and_night();
  terms.prices.pop_back();
  EXPECT_NE(fault(terms).find("none for on_demand time_of_day window 'night'"), std::string::npos)
      << fault(terms);
  terms = day_and_night();
  terms.prices[0].tiers[0].above_milli_ce_hours = 5;
  EXPECT_NE(fault(terms).find("leave a gap"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.prices[0].tiers.push_back({0, money("1")});
  EXPECT_NE(fault(terms).find("leave a gap"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.prices[0].tiers.clear();
  EXPECT_NE(fault(terms).find("has no tier"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.prices.push_back(terms.prices[0]);
  EXPECT_NE(fault(terms).find("two prices for"), std::string::npos) << fault(terms);
  terms = day_and_night();
  terms.prices[0].window = "noon";
  EXPECT_NE(fault(terms).find("names no window"), std::string::npos) << fault(terms);
}

TEST(PriceTable, refuses_shares_out_of_range) {
  PriceTerms terms;
  terms.spot.floor = {1499};
  EXPECT_NE(fault(terms).find("spot floor"), std::string::npos);
  terms = {};
  terms.discounts = {{"all and more", {10'001}, {}}};
  EXPECT_NE(fault(terms).find("all and more"), std::string::npos);
  terms = {};
  terms.taxes = {{"VAT", 1'000'001}};
  EXPECT_NE(fault(terms).find("VAT"), std::string::npos);
  terms = {};
  terms.reservation_unused = {-1};
  EXPECT_NE(fault(terms).find("reservation_unused"), std::string::npos);
}

TEST(PriceTable, gives_the_window_of_an_instant_and_its_end) {
  PriceTerms terms = day_and_night();
  terms.zone = "Europe/Berlin";
  terms.windows.push_back({"holiday", {}, "2025-12-25", hm(0), hm(24)});
  terms.prices.push_back(by_time("holiday", "0.5"));
  const PriceTable table = *PriceTable::compile(card("1"), terms);
  const auto name = [&](const char* t) {
    return table.window_name(table.stretch_at(at(t)).window);
  };
  EXPECT_EQ(name("2025-07-01T06:00:00Z"), "day");    // 08:00 in summer
  EXPECT_EQ(name("2025-01-01T06:59:59Z"), "night");  // 07:59:59 in winter
  EXPECT_EQ(table.stretch_at(at("2025-01-01T06:00:00Z")).until, at("2025-01-01T07:00:00Z"));
  EXPECT_EQ(name("2025-12-25T12:00:00Z"), "holiday");
  EXPECT_EQ(table.stretch_at(at("2025-12-24T22:30:00Z")).until, at("2025-12-24T23:00:00Z"));
  EXPECT_EQ(table.stretch_at(at("2025-12-25T12:00:00Z")).until, at("2025-12-25T23:00:00Z"));
}

TEST(PriceTable, takes_the_most_specific_price) {
  PriceTerms terms;
  Price train, hard, both;
  train.work_class = WorkClass::train;
  train.tiers = {{0, money("3")}};
  hard.isolation = Isolation::hardware;
  hard.tiers = {{0, money("4")}};
  both = train;
  both.isolation = Isolation::hardware;
  both.tiers = {{0, money("5")}};
  terms.prices = {train, hard, both};
  const PriceTable table = *PriceTable::compile(card("1"), terms);
  const auto price = [&](WorkClass work, Isolation isolation) {
    Terms wanted;
    wanted.work_class = work;
    wanted.isolation = isolation;
    return amount_text(table.price(wanted, 0)->tiers[0].price);
  };
  EXPECT_EQ(price(WorkClass::general, Isolation::software), "1");
  EXPECT_EQ(price(WorkClass::train, Isolation::software), "3");
  EXPECT_EQ(price(WorkClass::general, Isolation::hardware), "4");
  EXPECT_EQ(price(WorkClass::train, Isolation::hardware), "5");
  Terms reserved;
  reserved.purchase_model = PurchaseModel::reservation;
  EXPECT_FALSE(table.sells(reserved));
}

TEST(PriceTable, terms_come_back_from_their_json_and_unknown_members_are_refused) {
  const PriceTerms terms = day_and_night();
  EXPECT_EQ(*read_price_terms(to_json(terms)), terms);
  EXPECT_EQ(*read_price_terms("{}"), PriceTerms{});
  EXPECT_NE(refusal(read_price_terms(R"({"windoes":[]})")).find("windoes"), std::string::npos);
  for (const char* text : {"", "[]", "{", "{\"prices\":1}", "{\"granularity\":\"year\"}"})
    EXPECT_FALSE(read_price_terms(text).ok()) << text;
}

TEST(Tables, versions_are_added_and_never_edited) {
  Tables tables = tables_of(card("1", "2025-01-01T00:00:00Z"));
  EXPECT_NE(refusal(tables.add(*PriceTable::compile(card("2", "2025-01-01T00:00:00Z", 2))))
                .find("already published"),
            std::string::npos);
  EXPECT_EQ(tables.at(usd, at("2024-12-31T23:59:59Z")), nullptr);
  PriceTerms by_task;
  by_task.granularity = Granularity::task;
  EXPECT_FALSE(
      tables.add(*PriceTable::compile(card("2", "2026-01-01T00:00:00Z", 2), by_task)).ok());
}

}  // namespace
}  // namespace loam::billing
