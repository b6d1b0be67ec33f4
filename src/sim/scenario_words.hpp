// Takes the words of one statement in turn, with the place of whatever is wrong. Internal to this
// folder. Pure.
#pragma once

#include <boost/describe/enum_from_string.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/money.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "domain/enumerators.hpp"
#include "domain/price.hpp"
#include "sim/scenario.hpp"
#include "sim/scenario_text.hpp"

namespace loam::sim {

class Words {
 public:
  Words(std::string_view file, const Line& line) : file_(file), line_(line) {}

  // The next plain word; `what` names it in the error.
  Result<const Word*> next(std::string_view what);
  // The same where it may be absent.
  const Word* next_if_any();
  // The attribute, or nullptr.
  const Word* attribute(std::string_view key);
  // An error for the first word that nobody took.
  Result<void> finish(std::string_view usage) const;
  // Leaves the rest to the caller.
  std::vector<Word> rest();

  Error fault(const Word& word, std::string message, std::string next_step) const {
    return fault_at(file_, line_, word.column, std::move(message), std::move(next_step));
  }
  Error fault_here(std::string message, std::string next_step) const;

  // Gives an error of a value its place.
  template <class T>
  Result<T> placed(const Word& word, Result<T> value) const {
    if (value) return value;
    return fault(word, value.error().message, value.error().next_step);
  }

  // Reads the attribute into `target` where it is there.
  template <class T, class Parse>
  Result<void> take(std::string_view key, T& target, Parse parse) {
    const Word* word = attribute(key);
    if (word == nullptr) return {};
    LOAM_TRY(value, placed(*word, parse(word->text)));
    target = std::move(value);
    return {};
  }

 private:
  std::string_view file_;
  const Line& line_;
  std::set<const Word*> used_;
  std::size_t position_ = 0;
};

Result<std::int64_t> parse_count(std::string_view text);
// "1.5": of a month, in milli-CE hours.
Result<std::int64_t> parse_ce_hours(std::string_view text);
Result<std::int64_t> parse_level(std::string_view text);  // "10", "-10"
// "100USD", "100 USD".
Result<Money> parse_amount(std::string_view text);
// "12.5%".
Result<BasisPoints> parse_percent(std::string_view text);
Result<std::string> parse_text(std::string_view text);
// "a,b": words between commas, none empty.
Result<std::vector<std::string>> parse_list(std::string_view text);
Result<bool> parse_yes(std::string_view text);
// "90s", "+10s", "2026-03-02T04:30:00Z".
Result<At> parse_at(std::string_view text);

// One of the names of a described enumeration.
template <class E>
Result<E> parse_name_of(std::string_view text) {
  E value{};
  if (boost::describe::enum_from_string(std::string(text).c_str(), value)) return value;
  return invalid("'" + std::string(text) + "' is not one of them",
                 "use one of: " + enumerator_names<E>());
}

// What a card says beyond its price on demand.
Result<void> read_terms(Words& words, PriceTerms& terms, Money on_demand);
// links=4: into link groups of so many devices, in order; its devices are read before.
Result<void> read_links(Words& words, AddNode& node);
// What its program does, into the task's command.
Result<void> read_program(Words& words, TaskSpec& spec);

Result<Step> read_budget(Words& words);
Result<Step> read_approve(Words& words);
Result<Step> read_refuse(Words& words);
Result<Step> read_credit(Words& words);
Result<Step> read_refund(Words& words);
Result<Step> read_reverse(Words& words);
Result<Step> read_cancel(Words& words);
Result<Step> read_commit(Words& words);
Result<Step> read_reserve(Words& words);
Result<Step> read_shortfall(Words& words);
Result<Step> read_oversubscribe(Words& words);
Result<Step> read_report(Words& words);
Result<Step> read_invoice(Words& words);
Result<void> read_invoicing(Words& words, TenantSpec& spec);
Result<void> read_group(Words& words, TaskSpec& spec);
// All of it but `ce`, which goes before.
Result<void> read_request(Words& words, ResourceRequest& request);
// On whose capacity it runs: it is bought as such.
Result<void> read_reservation(Words& words, TaskSpec& spec);

}  // namespace loam::sim
