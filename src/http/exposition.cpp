#include "http/exposition.hpp"

namespace loam::http {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string label(std::string_view name, std::string_view value) {
  return std::string(name) + "=\"" + escaped(value) + "\"";
}

void Exposition::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " " +
           std::string(type) + "\n";
}

void Exposition::sample(const std::string& labels, const std::string& value,
                        std::string_view suffix) {
  text_ += name_ + std::string(suffix);
  if (!labels.empty()) text_ += "{" + labels + "}";
  text_ += " " + value + "\n";
}

void Exposition::sample(const std::string& labels, std::int64_t value) {
  sample(labels, std::to_string(value));
}

void Exposition::sample(const std::string& labels, std::uint64_t value) {
  sample(labels, std::to_string(value));
}

}  // namespace loam::http
