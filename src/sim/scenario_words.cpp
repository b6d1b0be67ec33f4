#include "sim/scenario_words.hpp"

#include <algorithm>

namespace loam::sim {

Result<const Word*> Words::next(std::string_view what) {
  if (const Word* word = next_if_any()) return word;
  return fault_here(std::string(what) + " is missing", "write it here");
}

const Word* Words::next_if_any() {
  while (position_ < line_.words.size() && !line_.words[position_].key.empty()) ++position_;
  if (position_ == line_.words.size()) return nullptr;
  const Word* word = &line_.words[position_++];
  used_.insert(word);
  return word;
}

const Word* Words::attribute(std::string_view key) {
  const Word* word = line_.find(key);
  if (word != nullptr) used_.insert(word);
  return word;
}

std::vector<Word> Words::rest() {
  std::vector<Word> rest;
  for (const Word& word : line_.words) {
    if (used_.insert(&word).second) rest.push_back(word);
  }
  return rest;
}

Result<void> Words::finish(std::string_view usage) const {
  for (const Word& word : line_.words) {
    if (used_.count(&word) == 0) {
      return fault(word, "'" + word.written() + "' means nothing here",
                   "the form is: " + std::string(usage));
    }
  }
  return {};
}

Error Words::fault_here(std::string message, std::string next_step) const {
  std::size_t column = 1;
  for (const Word& word : line_.words) column = word.column + word.written().size() + 1;
  return fault_at(file_, line_, column, std::move(message), std::move(next_step));
}

Result<std::int64_t> parse_count(std::string_view text) {
  return parse_decimal(text, 0, 1'000'000'000, "count");
}

Result<Money> parse_amount(std::string_view text) {
  const std::size_t letters =
      std::min(text.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), text.size());
  std::string_view number = text.substr(0, letters);
  while (!number.empty() && number.back() == ' ') number.remove_suffix(1);
  LOAM_TRY(currency, Currency::parse(text.substr(letters)));
  return Money::parse(number, currency);
}

Result<BasisPoints> parse_percent(std::string_view text) {
  if (!text.ends_with('%')) {
    return invalid("'" + std::string(text) + "' is not a percentage", "write it as 12.5%");
  }
  text.remove_suffix(1);
  LOAM_TRY(value, parse_decimal(text, 2, 1'000'000, "percentage"));
  return BasisPoints{value};
}

Result<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> list(1);
  for (const char c : text) {
    if (c == ',') {
      list.emplace_back();
    } else {
      list.back() += c;
    }
  }
  for (const std::string& word : list) {
    if (word.empty()) return invalid("'" + std::string(text) + "' has an empty word", "write A,B");
  }
  return list;
}

Result<std::int64_t> parse_ce_hours(std::string_view text) {
  return parse_decimal(text, 3, std::int64_t{1} << 53, "number of CE-hours");
}

Result<std::int64_t> parse_level(std::string_view text) {
  const bool below = text.starts_with('-');
  LOAM_TRY(level, parse_decimal(below ? text.substr(1) : text, 0, 1'000'000, "level"));
  return below ? -level : level;
}

Result<std::string> parse_text(std::string_view text) {
  return std::string(text);
}

Result<bool> parse_yes(std::string_view text) {
  if (text == "yes" || text == "no") return text == "yes";
  return invalid("'" + std::string(text) + "' is neither yes nor no", "write yes or no");
}

Result<At> parse_at(std::string_view text) {
  At at;
  if (text.ends_with('Z')) {
    LOAM_TRY(instant, parse_instant(text));
    at.kind = At::Kind::instant;
    at.instant = instant;
    return at;
  }
  const bool after_last = text.starts_with('+');
  LOAM_TRY(after, parse_duration(text.substr(after_last ? 1 : 0)));
  at.kind = after_last ? At::Kind::after_last : At::Kind::after_start;
  at.after = after;
  return at;
}

}  // namespace loam::sim
