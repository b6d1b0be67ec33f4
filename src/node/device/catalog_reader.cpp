// Reading the catalogue's TOML, strictly. The only file of the folder that sees toml++.
#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "node/device/catalog.hpp"

namespace loam::node {
namespace {

constexpr std::int64_t format_known = 1;
constexpr double figure_max = 1e6;  // TFLOPS and GB/s: a thousand times the best card of today
constexpr std::int64_t memory_gib_max = 1'000'000;
constexpr std::size_t text_bytes_max = 4096;
constexpr std::size_t file_bytes_max = 16U << 20U;

// One table of the file, and the first fault met while its keys are taken.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string_view origin, std::string what)
      : table_(table), origin_(origin), what_(std::move(what)) {}

  std::string text(std::string_view key) {
    const toml::node* node = take(key, true);
    if (node == nullptr) return {};
    return text_of(*node, key);
  }
  std::string optional_text(std::string_view key) {
    const toml::node* node = take(key, false);
    return node == nullptr ? std::string() : text_of(*node, key);
  }
  std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t most) {
    const toml::node* node = take(key, true);
    return node == nullptr ? least : whole_of(*node, key, least, most);
  }
  std::optional<double> optional_figure(std::string_view key) {
    const toml::node* node = take(key, false);
    if (node == nullptr) return std::nullopt;
    // An integer is a number too; a boolean or a text is not.
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || *value <= 0 || *value > figure_max) {
      fail(*node, quoted(key) + " must be a number above 0 and at most 1000000");
      return std::nullopt;
    }
    return value;
  }
  // The elements of an array, each handed to `read(node)`. Absent arrays are empty where allowed.
  template <class Read>
  void each(std::string_view key, bool required, Read read) {
    const toml::node* node = take(key, required);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      fail(*node, quoted(key) + " must be a list with at least one element");
      return;
    }
    for (const toml::node& element : *array) read(element);
  }
  std::string text_of(const toml::node& node, std::string_view key) {
    const auto value = node.value_exact<std::string>();
    if (!value || value->empty() || value->size() > text_bytes_max) {
      fail(node, quoted(key) + " must be a text of 1 to 4096 bytes");
      return {};
    }
    return *value;
  }
  std::int64_t whole_of(const toml::node& node, std::string_view key, std::int64_t least,
                        std::int64_t most) {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < least || *value > most) {
      fail(node, quoted(key) + " must be a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
      return least;
    }
    return *value;
  }
  // Every key must have been taken by now.
  void expect_nothing_else() {
    for (const auto& [key, node] : table_) {
      if (taken_.count(std::string(key.str())) == 0) {
        fail_at(key.source(), "unknown key " + quoted(key.str()));
      }
    }
  }
  void fail(const toml::node& node, const std::string& text) { fail_at(node.source(), text); }
  void fail_here(const std::string& text) { fail_at(table_.source(), text); }
  void adopt(const std::optional<Error>& fault) {
    if (!fault_) fault_ = fault;
  }
  const std::optional<Error>& fault() const { return fault_; }

  static std::string quoted(std::string_view key) { return "'" + std::string(key) + "'"; }
  static Error error_at(std::string_view origin, const toml::source_region& at,
                        const std::string& text) {
    return invalid(std::string(origin) + ":" + std::to_string(at.begin.line) + ":" +
                       std::to_string(at.begin.column) + ": " + text,
                   "see docs/formats/catalog.md for the keys and their units");
  }

 private:
  const toml::node* take(std::string_view key, bool required) {
    taken_.insert(std::string(key));
    const toml::node* node = table_.get(key);
    if (node == nullptr && required) fail_here(what_ + " has no " + quoted(key));
    return node;
  }
  void fail_at(const toml::source_region& at, const std::string& text) {
    if (!fault_) fault_ = error_at(origin_, at, text);
  }

  const toml::table& table_;
  std::string_view origin_;
  std::string what_;
  std::set<std::string> taken_;
  std::optional<Error> fault_;
};

Mebibytes gibibytes(std::int64_t gib) {
  return Mebibytes{gib * one_gibibyte.value};
}

Result<SliceProfile> read_slice(const toml::node& node, std::string_view origin) {
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    return TableReader::error_at(origin, node.source(), "a slice must be a table");
  }
  TableReader in(*table, origin, "this slice");
  SliceProfile slice;
  slice.profile = in.text("profile");
  slice.at_most = static_cast<std::int32_t>(in.whole("at_most", 1, 1000));
  slice.of_parts = static_cast<std::int32_t>(in.whole("of_parts", 1, 1000));
  slice.compute_parts = static_cast<std::int32_t>(in.whole("compute_parts", 1, 1000));
  slice.memory = gibibytes(in.whole("memory_gib", 1, memory_gib_max));
  if (slice.compute_parts > slice.of_parts) {
    in.fail_here("a slice of " + std::to_string(slice.compute_parts) + "/" +
                 std::to_string(slice.of_parts) + " is more than the device");
  }
  in.expect_nothing_else();
  if (in.fault()) return *in.fault();
  return slice;
}

HardwareSlicing read_slicing(TableReader& in) {
  const std::string text = in.text("slicing");
  for (const auto slicing : {HardwareSlicing::none, HardwareSlicing::mig, HardwareSlicing::vnpu}) {
    if (text == name_of(slicing)) return slicing;
  }
  in.fail_here("'slicing' is '" + text + "', not one of none, mig, vnpu");
  return HardwareSlicing::none;
}

Result<CatalogEntry> read_entry(const toml::node& node, std::string_view origin) {
  const toml::table* table = node.as_table();
  if (table == nullptr) {
    return TableReader::error_at(origin, node.source(), "a device must be a table");
  }
  TableReader in(*table, origin, "this device");
  CatalogEntry entry;
  entry.name = in.text("name");
  entry.vendor = in.text("vendor");
  in.each("match", true,
          [&](const toml::node& name) { entry.match.push_back(in.text_of(name, "match")); });
  in.each("memory_gib", true, [&](const toml::node& size) {
    entry.memory.push_back(gibibytes(in.whole_of(size, "memory_gib", 1, memory_gib_max)));
  });
  entry.bandwidth_gb_s = in.optional_figure("bandwidth_gb_s");
  entry.dense_tflops = in.optional_figure("dense_tflops");
  entry.measured_gemm_tflops = in.optional_figure("measured_gemm_tflops");
  entry.efficiency_of = in.optional_text("efficiency_of");
  entry.slicing = read_slicing(in);
  in.each("slices", entry.slicing != HardwareSlicing::none, [&](const toml::node& slice) {
    auto read = read_slice(slice, origin);
    if (read) {
      entry.slices.push_back(std::move(read).value());
    } else {
      in.adopt(read.error());
    }
  });
  entry.source = in.text("source");
  const std::string verified = in.text("verified");
  if (verified != "yes" && verified != "doubtful") {
    in.fail_here("'verified' is '" + verified + "', not yes or doubtful");
  }
  entry.doubtful = verified == "doubtful";
  entry.note = in.optional_text("note");
  in.expect_nothing_else();
  if (entry.doubtful && entry.note.empty()) {
    in.fail_here("a doubtful device needs a 'note' that says what is doubtful");
  }
  if (entry.slicing == HardwareSlicing::none && !entry.slices.empty()) {
    in.fail_here("'slices' are given, but 'slicing' is none");
  }
  if (entry.dense_tflops.has_value() != entry.bandwidth_gb_s.has_value()) {
    in.fail_here("'dense_tflops' and 'bandwidth_gb_s' are given together or not at all");
  }
  if (entry.measured_gemm_tflops &&
      (!entry.dense_tflops || *entry.measured_gemm_tflops > *entry.dense_tflops)) {
    in.fail_here("'measured_gemm_tflops' needs a 'dense_tflops' that is no less");
  }
  if (entry.measured_gemm_tflops && !entry.efficiency_of.empty()) {
    in.fail_here("'efficiency_of' stands in for a measurement, and there is one");
  }
  if (in.fault()) return *in.fault();
  return entry;
}

// What only the whole file can tell: names are unique, and a peak has an efficiency.
std::optional<Error> check_together(const Catalog& catalog, const toml::array& devices,
                                    std::string_view origin) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < catalog.entries().size(); ++i) {
    const CatalogEntry& entry = catalog.entries()[i];
    const auto fault = [&](const std::string& text) {
      return TableReader::error_at(origin, devices.get(i)->source(), entry.name + ": " + text);
    };
    if (!names.insert(entry.name).second) return fault("this device is listed twice");
    if (entry.dense_tflops && !catalog.gemm_tflops(entry)) {
      return fault(
          "a peak without 'measured_gemm_tflops' needs an 'efficiency_of' that names a "
          "device with one, not '" +
          entry.efficiency_of + "'");
    }
  }
  return std::nullopt;
}

}  // namespace

Result<Catalog> Catalog::parse(std::string_view text, std::string_view origin) {
  if (text.size() > file_bytes_max) {
    return invalid(std::string(origin) + " has " + std::to_string(text.size()) +
                   " bytes, more than any catalogue");
  }
  // toml++ reports faults by exception; they end here.
  try {
    const toml::table document = toml::parse(text, origin);
    TableReader in(document, origin, "the catalogue");
    in.whole("format", format_known, format_known);
    Catalog catalog;
    in.each("device", true, [&](const toml::node& node) {
      if (in.fault()) return;
      auto entry = read_entry(node, origin);
      if (entry) {
        catalog.entries_.push_back(std::move(entry).value());
      } else {
        in.adopt(entry.error());
      }
    });
    in.expect_nothing_else();
    if (in.fault()) return *in.fault();
    in.adopt(check_together(catalog, *document.get_as<toml::array>("device"), origin));
    if (in.fault()) return *in.fault();
    return catalog;
  } catch (const toml::parse_error& fault) {
    return TableReader::error_at(origin, fault.source(), std::string(fault.description()));
  } catch (const std::exception& fault) {
    return invalid(std::string(origin) + ": " + fault.what());
  }
}

Result<Catalog> Catalog::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Error{ErrorKind::not_found, "the catalogue " + path + " cannot be read",
                 "give the path of a catalogue such as share/catalog.toml"};
  }
  return parse(text.str(), path);
}

}  // namespace loam::node
