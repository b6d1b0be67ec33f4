#include "billing/documents.hpp"

namespace loam::billing {

const char* name_of(LineKind kind) noexcept {
  switch (kind) {
    case LineKind::usage:
      return "usage";
    case LineKind::correction:
      return "correction";
    case LineKind::fee:
      return "fee";
    case LineKind::unused:
      return "unused";
    case LineKind::credit:
      return "credit";
    case LineKind::covered:
      return "covered";
  }
  return "?";
}

std::string number_text(const Document& document) {
  return (document.kind == DocumentKind::invoice ? "inv-" : "cn-") +
         std::to_string(document.number);
}

}  // namespace loam::billing
