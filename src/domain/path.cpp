#include "domain/path.hpp"

namespace loam {

const char* path_fault(std::string_view path) noexcept {
  if (path.find('\0') != std::string_view::npos) return "holds a NUL byte";
  if (!path.starts_with('/')) return "is not an absolute path";
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::string_view part = path.substr(0, path.find('/'));
    if (part == "." || part == "..") return "holds . or ..";
    path.remove_prefix(part.size());
  }
  return nullptr;
}

bool is_reserved_target(std::string_view target) noexcept {
  while (target.size() > 1 && target.ends_with('/')) target.remove_suffix(1);
  for (const std::string_view whole : {"/etc", "/proc", "/dev", "/sys", "/run/loam", "/usr"}) {
    if (!target.starts_with(whole)) continue;
    if (target.size() == whole.size() || target[whole.size()] == '/') return true;
  }
  for (const std::string_view only : {"/", "/run", "/bin", "/lib", "/lib64", "/sbin"})
    if (target == only) return true;
  return false;
}

}  // namespace loam
