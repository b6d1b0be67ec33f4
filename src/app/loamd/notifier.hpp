// Sends notices to their channels on a thread of its own: webhooks and commands, retried and
// logged. A channel is "https://HOST/PATH" or "http://HOST:PORT/PATH", which gets a POST, or
// "command:/PATH", a program that the settings list, which gets the notice on its standard input.
// What was not delivered when the daemon ends waits in a file for the next one; each is delivered
// at least once, or given up and logged.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/loamd/notice_outbox.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::daemon {

// Whether notices can be sent there: a webhook, or a program of `commands`.
Result<void> check_channel(const std::string& channel, const std::vector<std::string>& commands);

class Notifier {
 public:
  struct Options {
    std::vector<std::string> commands;  // absolute paths that may be run
    // Between the tries of one delivery; after the last it is given up.
    std::vector<Duration> waits{Duration::seconds(1), Duration::seconds(10), Duration::minutes(1),
                                Duration::minutes(10)};
    Duration patience = Duration::seconds(30);  // for an answer, or for a program to end
    std::string ca_file;  // PEM: authorities of webhooks besides the system's; empty: none
    std::string outbox;   // the file of what is not delivered yet; empty: it is not kept
  };
  // One line for the log: what became of a try.
  using Log = std::function<void(bool failed, const std::string& line)>;

  // `box`: what an earlier one left in its file.
  Notifier(Options options, Log log, NoticeBox box = {});
  ~Notifier();  // ends the try that is being made; the rest stays in the file, or is dropped

  // Any thread; does not block. `name` for the log: "budget ci: limited". `sequence`: of the
  // journal row that tells it; 0: none does.
  void send(const std::string& name, const std::string& json,
            const std::vector<std::string>& channels, std::int64_t sequence = 0);
  // Journal rows up to here hold no notice that was not sent.
  void told(std::int64_t sequence);

 private:
  struct Delivery {
    PendingNotice notice;
    std::chrono::steady_clock::time_point due;
  };

  void run();
  void settle(Delivery delivery, const Result<void>& done);
  void save();  // requires the lock
  Result<void> deliver(const PendingNotice& notice);
  Result<void> run_program(const std::string& path, const std::string& json);

  Options options_;
  Log log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Delivery> queue_;
  std::optional<Delivery> trying_;  // still in the file
  std::optional<std::int64_t> told_;
  bool unsaved_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loam::daemon
