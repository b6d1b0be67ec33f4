// Carries what requests used from the usage file to loamd's books. The file is the outbox: its
// lines are durable before an answer ends, and how many of its bytes are recorded is what loamd
// says. So what was not acknowledged is sent again, after a lost answer or a restart of either
// side, and what was recorded is not recorded twice. One thread. Shell.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/client.hpp"
#include "app/gateway/config.hpp"

namespace loam::serving {

// What some lines of a usage file come to: added up by tenant, attribution, model and owner.
struct UsageBatch {
  std::vector<api::TokenUseEntry> uses;
  std::size_t bytes = 0;    // of the lines read, the last one whole
  std::size_t skipped = 0;  // lines that cannot be read
};
// The first lines of `text`, at most `lines_max`; what has no line end yet is left. Requests that
// used nothing are none.
UsageBatch read_usage(std::string_view text, std::size_t lines_max);

// The name under which a usage file's tokens are recorded: a digest of its first line, which holds
// the name and the time of its first request, so that a file that replaces another begins anew.
// Nothing for a file without a whole line.
std::optional<std::string> source_of(const std::string& usage_file);

class Outbox {
 public:
  using Log = std::function<void(const std::string& line)>;
  Outbox(const Config& config, Log log) : config_(config), log_(std::move(log)) {}
  ~Outbox() { stop(); }

  void start();
  // Sends what is there once more and ends.
  void stop();
  // Bytes of the file that loamd has not acknowledged, as of the last look.
  std::int64_t waiting_bytes() const;

 private:
  void run();
  Result<void> send_all();
  Result<bool> send_some(const std::string& source);

  const Config& config_;
  const Log log_;
  std::thread thread_;
  std::optional<api::Client> client_;
  std::string source_;
  std::int64_t sent_ = 0;  // bytes of the file that are recorded
  std::string trouble_;    // as it was logged
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::int64_t waiting_ = 0;
};

}  // namespace loam::serving
