// loam-keeper --root DIR: arbitrates this node's devices among the leases in DIR/pages until
// SIGTERM. Exit status: 0 ended by a signal, 1 failed, 2 wrong arguments, 3 another one serves DIR.
#include <cstdio>
#include <string>
#include <string_view>

#include "node/keeper/keeper.hpp"

namespace {

constexpr const char* usage =
    "usage: loam-keeper --root DIR\n"
    "Grants turns on this node's devices to the leases in DIR/pages, until SIGTERM.\n"
    "Exit status: 0 ended by a signal, 1 failed, 2 wrong arguments, 3 another keeper serves DIR.\n";

}  // namespace

int main(int count, char** arguments) {
  loam::node::KeeperOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (argument == "--root" && i + 1 < count) {
      options.root = arguments[++i];
    } else {
      std::fprintf(stderr, "loam-keeper: unexpected argument '%s'\n%s", arguments[i], usage);
      return 2;
    }
  }
  if (options.root.empty()) {
    std::fprintf(stderr, "loam-keeper: --root is missing\n%s", usage);
    return 2;
  }
  options.report = [](const std::string& line) {
    std::fprintf(stderr, "loam-keeper: %s\n", line.c_str());
  };
  const loam::Result<void> done = loam::node::run_keeper(options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "loam-keeper: %s\n", loam::to_text(done.error()).c_str());
  return done.error().kind == loam::ErrorKind::conflict ? 3 : 1;
}
