#include "bench/bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/assert.hpp"

namespace loam::bench {
namespace {

std::vector<Benchmark>& registry() {
  static std::vector<Benchmark> benchmarks;
  return benchmarks;
}

std::string& data_folder_given() {
  static std::string folder;
  return folder;
}

}  // namespace

Mark at_most(double value) {
  return {Mark::Side::at_most, value};
}

Mark at_least(double value) {
  return {Mark::Side::at_least, value};
}

const char* name_of(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::met:
      return "met";
    case Verdict::missed:
      return "missed";
    case Verdict::no_mark:
      return "no mark";
    case Verdict::missing:
      return "missing";
  }
  return "missing";
}

Verdict Figure::verdict() const {
  if (!value) return Verdict::missing;
  if (!promise.mark) return Verdict::no_mark;
  return promise.mark->met_by(*value) ? Verdict::met : Verdict::missed;
}

Report::Report(const std::vector<Promise>& promises) {
  for (const Promise& promise : promises) {
    figures_.push_back({promise, std::nullopt, std::nullopt, {}});
  }
}

Figure& Report::unset(std::string_view name) {
  const auto found = std::find_if(figures_.begin(), figures_.end(),
                                  [&](const Figure& f) { return f.promise.name == name; });
  LOAM_ASSERT(found != figures_.end());
  LOAM_ASSERT(!found->value.has_value());
  return *found;
}

bool Report::promises(std::string_view name) const {
  return std::any_of(figures_.begin(), figures_.end(),
                     [&](const Figure& f) { return f.promise.name == name; });
}

bool Report::has(std::string_view name) const {
  return std::any_of(figures_.begin(), figures_.end(), [&](const Figure& f) {
    return f.promise.name == name && f.value.has_value();
  });
}

void Report::set(std::string_view name, double value, std::string note) {
  LOAM_ASSERT(std::isfinite(value));
  Figure& figure = unset(name);
  figure.value = value;
  figure.note = std::move(note);
}

void Report::set(std::string_view name, double value, Interval interval, std::string note) {
  LOAM_ASSERT(interval.low <= interval.high);
  Figure& figure = unset(name);
  figure.interval = interval;
  set(name, value, std::move(note));
}

void Report::explain(std::string_view name, std::string why) {
  unset(name).note = std::move(why);
}

void Report::progress(std::string_view text) const {
  if (isatty(STDERR_FILENO) == 0) return;
  std::fprintf(stderr, "\r\033[K      %.*s", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
}

std::vector<Benchmark> registered() {
  std::vector<Benchmark> sorted = registry();
  std::sort(sorted.begin(), sorted.end(),
            [](const Benchmark& a, const Benchmark& b) { return a.name < b.name; });
  return sorted;
}

bool enroll(std::string name, std::vector<Promise> promises, Body body, Needs needs) {
  for (const Benchmark& known : registry()) LOAM_ASSERT(known.name != name);
  registry().push_back({std::move(name), std::move(promises), std::move(body), needs});
  return true;
}

const std::string& data_folder() {
  LOAM_ASSERT(!data_folder_given().empty());
  return data_folder_given();
}

void set_data_folder(std::string folder) {
  data_folder_given() = std::move(folder);
}

}  // namespace loam::bench
