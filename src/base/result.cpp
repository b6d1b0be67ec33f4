#include "base/result.hpp"

namespace loam {

const char* name_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid_argument";
    case ErrorKind::unauthenticated:
      return "unauthenticated";
    case ErrorKind::permission_denied:
      return "permission_denied";
    case ErrorKind::not_found:
      return "not_found";
    case ErrorKind::conflict:
      return "conflict";
    case ErrorKind::exhausted:
      return "exhausted";
    case ErrorKind::unavailable:
      return "unavailable";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::corrupt:
      return "corrupt";
    case ErrorKind::internal:
      return "internal";
  }
  return "internal";
}

std::string to_text(const Error& error) {
  if (error.next_step.empty()) return error.message;
  return error.message + "; " + error.next_step;
}

}  // namespace loam
