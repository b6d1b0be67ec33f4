// One attempt, from its order to its end: makes the groups and the sandbox, starts the program,
// carries its output to the logs, obeys the control socket, and leaves a final status. This is
// what a loam-launch process does once it stands alone. One thread, one poll loop. Shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/launch/cgroup.hpp"
#include "node/launch/control.hpp"
#include "node/launch/file.hpp"
#include "node/launch/inside.hpp"
#include "node/launch/log.hpp"
#include "node/launch/metadata.hpp"
#include "node/launch/network_meter.hpp"
#include "node/launch/order.hpp"
#include "node/launch/sandbox.hpp"
#include "node/launch/status.hpp"
#include "node/launch/storage_meter.hpp"
#include "node/launch/task_environment.hpp"

namespace loam::node {

class AttemptRun {
 public:
  // `directory` is the attempt's, open; `path` its absolute path. The caller holds the lock.
  AttemptRun(std::string path, Fd directory, ControlServer control);
  ~AttemptRun();

  // Runs the attempt to its end. Whatever happens, a final status is written if the disk lets it;
  // false where it did not.
  bool run();

 private:
  struct Stream {
    Fd pipe;
    std::optional<LogWriter> log;
  };

  Result<void> prepare();
  Result<void> prepare_directories();
  Result<void> back_up();
  Result<void> choose_isolation();
  Result<void> check_unsandboxed() const;
  void make_groups();
  void count_network();
  Result<void> spawn();
  [[noreturn]] void become_inside(const InsideTask& task);
  [[noreturn]] void become_bubblewrap(const InsideTask& task, int task_fd, int complaint_fd);
  void limit_by_rlimits() const;

  void loop();
  void arm_timer();
  void pump(Stream& stream, bool to_the_end);
  void hear_complaint();
  void hear_inside();
  void handle(const InsideReport& report, pid_t sender);
  void note_start(std::int64_t start_ns);
  void handle_signals();
  void reap();
  std::string answer(std::string_view line);

  Result<void> ask_for_memory(std::int64_t grace_ms, std::int64_t bytes);
  void begin_stop(std::int64_t grace_ms, const std::string& reason,
                  const char* action = notice_stop);
  // Boottime at which the run limit is reached; the largest value while it is not running down.
  std::int64_t limit_end_ns() const;
  Result<void> pause(bool frozen);
  bool kill_everything(int wait_ms);
  void kill_now();
  void beat();
  void note_usage();

  void refuse(int exit_code, std::string detail);
  void refuse_as_unable(std::string detail);
  void refuse_after_inside();
  void conclude();
  void settle_outcome();
  void clean_up();
  bool write_status(Durable durable);

  const std::string path_;
  const Fd directory_;
  Fd pulse_;
  ControlServer control_;
  MetadataServer metadata_;

  LaunchOrder order_;
  AttemptStatus status_;
  TaskPlaces places_;
  std::string work_, checkpoint_, cache_;
  bool sandboxed_ = false;
  std::string bwrap_;
  AttemptCgroup cgroup_;
  std::unique_ptr<StorageMeter> storage_;
  std::optional<NetworkMeter> network_;

  Stream stdout_;
  Stream stderr_;
  Fd complaint_;  // what bwrap itself says
  std::string complaint_text_;
  Fd channel_;
  Fd signals_;
  Fd timer_;
  pid_t child_ = -1;  // bwrap, or the process inside where there is no sandbox

  bool over_ = false;
  std::optional<InsideReport> not_started_;
  std::optional<InsideReport> exit_report_;
  std::string deadline_;           // of the stop that is going on, for the metadata address
  std::int64_t grace_end_ns_ = 0;  // boottime; 0: no stop is going on
  std::int64_t next_beat_ns_ = 0;
  std::int64_t forked_ns_ = 0;  // boottime; the program's process exists since then
  bool killed_ = false;         // by us
  bool kill_asked_ = false;     // by request, not by the end of a grace
};

}  // namespace loam::node
