// The text that Prometheus reads (exposition format 0.0.4): families of samples, one after another.
// Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace loam::http {

// name="value", the value escaped.
std::string label(std::string_view name, std::string_view value);

// Writes one family after another; samples of a family stand together, as the format demands.
class Exposition {
 public:
  // `type`: counter, gauge or histogram.
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Of the family begun last. `labels`: joined by commas, may be empty.
  void sample(const std::string& labels, const std::string& value, std::string_view suffix = {});
  void sample(const std::string& labels, std::int64_t value);
  void sample(const std::string& labels, std::uint64_t value);
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace loam::http
