// Rate cards as files: what is written is what is published; what is wrong is told with its line.
#include "app/loam/card_file.hpp"

#include <gtest/gtest.h>

#include "billing/price_table.hpp"

namespace loam::cli {
namespace {

const char* const whole_card = R"(# the card of spring
currency = "EUR"
on_demand = "0.02"
ce_per_gibibyte = "1.5"
from = "2026-04-01"
granularity = "second"
zone = "Europe/Berlin"
reservation_unused = "50%"

[[window]]
name = "day"
from = "08:00"
to = "20:00"
[[window]]
name = "night"
from = "20:00"
to = "08:00"

[[price]]
tariff = "time_of_day"
window = "day"
price = "0.03"
[[price]]
tariff = "time_of_day"
window = "night"
price = "0.01"
mode = "volume"
tiers = [{above = "250", price = "0.005"}]
[[price]]
class = "gold"
work_class = "train"
isolation = "hardware"
price = "0.05"

[[discount]]
name = "spring"
percent = "5"
model = "on_demand"
[[tax]]
name = "VAT"
percent = "19"
[services]
storage = "0.0001"
[spot]
floor = "20"
ceiling = "90"
interrupted = "first_hour_free"
)";

TEST(CardFile, a_whole_card_is_read_as_it_is_written) {
  const auto read = read_card("card.toml", whole_card);
  ASSERT_TRUE(read.ok()) << to_text(read.error());
  EXPECT_EQ(read->currency, "EUR");
  EXPECT_EQ(read->effective_from, "2026-04-01T00:00:00Z");
  const PriceTerms& terms = read->terms;
  EXPECT_EQ(terms.granularity, Granularity::second);
  ASSERT_EQ(terms.windows.size(), 2u);
  EXPECT_EQ(terms.windows[1].from, Duration::hours(20));
  ASSERT_EQ(terms.prices.size(), 3u);
  EXPECT_EQ(terms.prices[1].tiers[1].above_milli_ce_hours, 250'000);
  EXPECT_EQ(terms.prices[1].tier_mode, TierMode::volume);
  EXPECT_EQ(terms.prices[2].service_class, "gold");
  EXPECT_EQ(terms.prices[2].isolation, Isolation::hardware);
  EXPECT_EQ(terms.taxes[0].parts_per_million, 190'000);
  EXPECT_EQ(terms.discounts[0].off, BasisPoints{500});
  EXPECT_TRUE(terms.spot.sold);
  EXPECT_EQ(terms.spot.floor, BasisPoints{2000});
  EXPECT_EQ(terms.spot.interrupted, InterruptionRule::first_hour_free);
  EXPECT_EQ(terms.reservation_unused, BasisPoints{5000});
  // The same as the API takes it.
  const std::string json = R"({"currency":"EUR","on_demand":"0.02","ce_per_gibibyte":"1.5",)"
                           R"("effective_from":"2026-04-01T00:00:00Z","terms":)" +
                           billing::to_json(terms) + "}";
  const auto again = read_card("card.json", json);
  ASSERT_TRUE(again.ok()) << to_text(again.error());
  EXPECT_TRUE(again->terms == terms);
}

TEST(CardFile, what_is_wrong_is_told_with_its_line) {
  const struct {
    const char* was;
    const char* is;
    const char* told;
  } cases[] = {
      {"on_demand = \"0.02\"", "on_demand = 0.02", "card.toml:3: 'on_demand' is not text"},
      {"\"second\"", "\"fortnight\"", "card.toml:6: 'granularity': 'fortnight' is not known"},
      {"Europe/Berlin", "Mars/Olympus", "card.toml:7: "},
      {"to = \"20:00\"", "to = \"25:00\"", "card.toml:13: 'window.to': '25:00' is not a time"},
      {"to = \"08:00\"", "to = \"07:00\"", "the windows leave a gap from Sunday 07:00"},
      {"window = \"day\"", "window = \"dawn\"", "card.toml:21: "},
      {"price = \"0.03\"", "price = \"-0.03\"", "card.toml:"},
      {"above = \"250\"", "above = \"0\"", "the tiers of on_demand time_of_day window 'night'"},
      {"percent = \"19\"", "percent = \"x\"", "card.toml:41: 'tax.percent'"},
      {"floor = \"20\"", "floor = \"10\"", "card.toml:45: a spot floor of 10 %"},
      {"from = \"2026-04-01\"", "from = \"2026-02-30\"", "'from': "},
      {"above = \"250\"", "above = \"0\"", "they go from 0 to 0 CE-hours"},
      {"currency = \"EUR\"", "currency = \"EUT\"", "'EUT' is not a currency code"},
      {"[services]", "[service]", "card.toml:42: 'service' is not a key of a rate card"},
      {"name = \"spring\"", "nmae = \"spring\"", "'discount.nmae' is not a key"},
      {"[[tax]]", "[[tax", "not TOML"},
  };
  for (const auto& each : cases) {
    std::string text = whole_card;
    const std::size_t at = text.find(each.was);
    ASSERT_NE(at, std::string::npos) << each.was;
    text.replace(at, std::string(each.was).size(), each.is);
    const auto read = read_card("card.toml", text);
    ASSERT_FALSE(read.ok()) << each.is;
    EXPECT_NE(read.error().message.find(each.told), std::string::npos)
        << each.is << ": " << read.error().message;
    EXPECT_TRUE(read.error().message.starts_with("card.toml:")) << read.error().message;
    EXPECT_FALSE(read.error().next_step.empty()) << read.error().message;
  }
}

TEST(CardFile, json_that_is_wrong_is_told_too) {
  EXPECT_NE(read_card("card.json", "{\"on_demand\":\"1\",\n\"terms\":{\"zone\":\n\"Nowhere\"}}")
                .error()
                .message.find("card.json:3: "),
            std::string::npos);
  EXPECT_FALSE(read_card("card.json", "{\"on_demnad\":\"1\"}").ok());
  EXPECT_FALSE(read_card("card.json", "[").ok());
  EXPECT_FALSE(read_card("card.toml", "").ok());
}

}  // namespace
}  // namespace loam::cli
