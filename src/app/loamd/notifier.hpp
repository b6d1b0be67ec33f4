// Sends notices to their channels on a thread of its own: webhooks and commands, retried and
// logged. A channel is "http://HOST:PORT/PATH", which gets a POST, or "command:/PATH", a program
// that the settings list, which gets the notice on its standard input. What was not delivered when
// the daemon ends is lost; that it was due is in the journal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::daemon {

// Whether notices can be sent there: a webhook over plain HTTP (where TLS is wanted a command or a
// relay does it), or a program of `commands`.
Result<void> check_channel(const std::string& channel, const std::vector<std::string>& commands);

class Notifier {
 public:
  struct Options {
    std::vector<std::string> commands;  // absolute paths that may be run
    // Between the tries of one delivery; after the last it is given up.
    std::vector<Duration> waits{Duration::seconds(1), Duration::seconds(10), Duration::minutes(1),
                                Duration::minutes(10)};
    Duration patience = Duration::seconds(30);  // for an answer, or for a program to end
  };
  // One line for the log: what became of a try.
  using Log = std::function<void(bool failed, const std::string& line)>;

  Notifier(Options options, Log log);
  ~Notifier();  // ends the try that is being made; drops the rest

  // Any thread; does not block. `name` for the log: "budget ci: limited".
  void send(const std::string& name, const std::string& json,
            const std::vector<std::string>& channels);

 private:
  struct Delivery {
    std::string name;
    std::string json;
    std::string channel;
    std::size_t tries = 0;
    std::chrono::steady_clock::time_point due;
  };

  void run();
  Result<void> deliver(const Delivery& delivery);
  Result<void> post(const Delivery& delivery);
  Result<void> run_program(const std::string& path, const std::string& json);

  Options options_;
  Log log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Delivery> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace loam::daemon
