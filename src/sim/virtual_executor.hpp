// VirtualExecutor: the nodes of the simulation. It starts, runs and ends attempts in true time and
// reports them; it outlives the daemon, as launchers do. The contract it keeps, which a real
// executor keeps too:
//   * a launch or a stop may come again; the lease says whether it is the same;
//   * a stop for a lease never launched is answered with an end that never started, and a launch
//     that comes after it is not carried out;
//   * an end is reported until it has been answered; after a restart of the daemon every attempt
//     reports again before the daemon's clock does anything;
//   * an attempt whose report is answered with stale_epoch is killed.
// Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "engine/ports.hpp"
#include "sim/program.hpp"
#include "sim/virtual_clock.hpp"

namespace loam::sim {

// How badly reports travel. All zero: at once and in order.
struct ReportFaults {
  std::uint64_t dropped_permille = 0;  // lost; sent again after `resend_after`
  std::uint64_t doubled_permille = 0;
  Duration delay_max;   // each report takes up to this long, so they overtake one another
  Duration launch_max;  // launches take up to this much longer
};
inline constexpr Duration resend_after = Duration::seconds(5);

struct Attempt {
  LeaseId lease;
  Epoch epoch;
  TaskId task;
  std::int64_t rank = 0;
  std::vector<DeviceId> devices;
  Program program;
  std::int64_t backups = 0;  // copies of its checkpoints that there are
  enum class Phase { launching, running, ended } phase = Phase::launching;
  Instant due;                       // true time of the next change of phase
  Instant true_start;                // of the program
  Instant start = Instant::never();  // by the node's clock; never() where the program never ran
  Duration ran;
  std::int64_t exit_code = 0;
  AttemptEnd end = AttemptEnd::exited;
  std::string reason;
  Duration limit;         // of run time, by the node itself
  Duration grace;         // of that stop
  bool by_limit = false;  // `due` is the end of that stop
  bool stopping = false;
  Instant told_at;                  // true time of the first notice, while `stopping`
  bool killed = false;              // `due` is the kill at the end of that notice
  std::optional<Duration> noticed;  // of one killed by it: from the notice to the kill
  bool start_answered = false;
  bool end_answered = false;
  bool dead = false;  // killed with its node or device: reports nothing any more
};

// A report on its way.
struct Parcel {
  LeaseId lease;
  Command command;
};

class VirtualExecutor final : public engine::Executor {
 public:
  VirtualExecutor(VirtualClock& clock, std::uint64_t seed) : clock_(clock), random_(seed) {}

  void launch(const engine::State& state, const engine::LaunchEffect& effect) override;
  void stop(const engine::State& state, const engine::StopEffect& effect) override;

  // True while the daemon is dead between journal and effect: effects are lost.
  void set_deaf(bool deaf) { deaf_ = deaf; }
  void set_faults(const ReportFaults& faults) { faults_ = faults; }

  // True time of the next start, end or arrival of a report; never() when nothing is to come.
  Instant next_due() const;
  // Starts and ends what is due now, then takes the reports that arrive now, in order.
  std::vector<Parcel> collect();
  // What became of a parcel: answered (also by a rejection), or not (the daemon was dead or its
  // journal full): then it is sent again.
  void answered(const Parcel& parcel, bool stale);
  void unanswered(const Parcel& parcel);
  // The daemon is back: everything not answered yet is reported at once.
  void report_again();
  // Kills attempts whose lease is not among those alive: what a node does when it is adopted.
  void kill_unknown(const engine::State& state);

  // The device is gone with everything on it; nothing of it is reported any more.
  void lose(DeviceId device);

  // The truth, for the auditor. By lease; attempts are kept after their end.
  const std::map<LeaseId, Attempt>& attempts() const { return attempts_; }

 private:
  void post(const Attempt& attempt, Command command, Duration late);
  static ServiceReport services_after(const Attempt& attempt, Duration ran);
  static Duration device_time_after(const Attempt& attempt, Duration ran);
  // Its reports on the way, of a program that has just begun and runs `left`.
  void post_services(const Attempt& attempt, Duration left);
  void post_start(const Attempt& attempt, Duration late);
  void post_end(const Attempt& attempt, Duration late);
  void change_phase(Attempt& attempt);
  void end(Attempt& attempt, std::int64_t exit_code);
  void set_due(Attempt& attempt, Instant due);
  void settle(Attempt& attempt);  // ended and answered: out of the timetable

  VirtualClock& clock_;
  Random random_;
  ReportFaults faults_;
  bool deaf_ = false;
  std::map<LeaseId, Attempt> attempts_;
  std::map<TaskId, Duration> saved_;      // work done in paused attempts, by task
  std::map<TaskId, std::int64_t> tried_;  // launches, by task
  std::set<std::pair<Instant, LeaseId>> due_;
  std::set<LeaseId> open_;               // not ended, or their end not answered
  std::multimap<Instant, Parcel> mail_;  // by true time of arrival, in order of sending
};

}  // namespace loam::sim
