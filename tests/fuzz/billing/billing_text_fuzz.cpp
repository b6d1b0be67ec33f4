// Every text that billing reads: no input crashes it, a refusal has words, and what is accepted
// comes back from its own text. A card that compiles rates any time without a hole.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "billing/advice.hpp"
#include "billing/csv.hpp"
#include "billing/efficiency.hpp"
#include "billing/focus.hpp"
#include "billing/price_table.hpp"

namespace {

using namespace loam;
using namespace loam::billing;

template <class T>
bool accepted(const Result<T>& result) {
  if (!result.ok()) LOAM_ASSERT(!result.error().message.empty());
  return result.ok();
}

void check_card(std::string_view text) {
  const auto terms = read_price_terms(text);
  if (!accepted(terms)) return;
  LOAM_ASSERT(*read_price_terms(to_json(*terms)) == *terms);
  RateCard card;
  card.on_demand = Money(20'000'000'000, Currency("USD"));
  const auto table = PriceTable::compile(card, *terms);
  if (!accepted(table)) return;
  Instant at{1'740'000'000'000};
  for (int i = 0; i < 50 && at != Instant::never(); ++i) {
    const PriceTable::Stretch stretch = table->stretch_at(at);
    LOAM_ASSERT(stretch.until > at);
    LOAM_ASSERT(table->price({}, stretch.window) != nullptr);
    at = stretch.until;
  }
}

void check_csv(std::string_view text) {
  const auto rows = read_csv(text);
  if (!accepted(rows)) return;
  std::string again;
  for (const auto& row : *rows) again += csv_row(row);
  LOAM_ASSERT(*read_csv(again) == *rows);
}

void check_usage(std::string_view text) {
  const auto usage = read_usage_csv(text);
  if (!accepted(usage)) return;
  AdviceRequest request;
  request.on_demand = Money(2'000'000'000'000, Currency("USD"));
  CommitOption option;
  option.price = Money(1'300'000'000'000, Currency("USD"));
  request.options = {option};
  const auto advice = advise(*usage, request);
  if (!accepted(advice)) return;
  LOAM_ASSERT(advice->cost_mixed <= advice->cost_on_demand);
  LOAM_ASSERT(advice->cost_mixed <= advice->cost_committed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_card(text);
  check_csv(text);
  check_usage(text);
  accepted(validate_focus(text));
  accepted(read_flat_json(text));
  accepted(read_business_csv(text));
  accepted(parse_date(text));
  return 0;
}
