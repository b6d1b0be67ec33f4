// The control groups of one attempt: they limit CPU, host memory and processes, count what was
// used, freeze, and kill everything at once. What the machine offers is found by trying: pure v2;
// hybrid, where v1 controllers limit and a v2 group freezes and kills; or nothing.
// Source: Linux Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst. Shell.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/launch/file.hpp"
#include "node/launch/status.hpp"

namespace loam::node {

// Where the kernel's hierarchies are mounted and which group this process is in.
struct CgroupMounts {
  std::string v2;  // mount point; empty: none
  std::string cpu_v1, memory_v1, pids_v1, freezer_v1;
  // This process's own group below each mount, "/" at the top.
  std::string v2_own = "/", cpu_own = "/", memory_own = "/", pids_own = "/", freezer_own = "/";

  bool operator==(const CgroupMounts&) const = default;
};

// From the text of /proc/self/mounts and /proc/self/cgroup. Pure.
CgroupMounts parse_cgroup_mounts(std::string_view mounts, std::string_view own_groups);
CgroupMounts read_cgroup_mounts();

struct CgroupLimits {
  std::int64_t cpu_milli = 0;  // 0: no limit
  std::int64_t memory_bytes = 0;
  std::int64_t pids_max = 0;
  // The CPU comes in turns: its limit is kept over several turns, so that none is cut.
  bool cpu_in_turns = false;
  std::int64_t cpu_weight_milli = 0;  // a CPU's worth is 1000; 0: as any group has
};

struct CgroupUsage {
  std::optional<std::int64_t> user_cpu_ms;
  std::optional<std::int64_t> system_cpu_ms;
  std::optional<std::int64_t> memory_peak_bytes;
  bool oom_killed = false;
};

class AttemptCgroup {
 public:
  // Makes the groups `loam/NAME`, at the top of each hierarchy or else below this process's own
  // group, and sets the limits. Never fails as a whole: what could not be done shows in the
  // accessors below and in trouble().
  static AttemptCgroup make(const CgroupMounts& mounts, const std::string& name,
                            const CgroupLimits& limits);
  // The groups that an earlier process made, from the directories it noted.
  static AttemptCgroup adopt(const std::vector<std::string>& directories);

  // Lifts the CPU limit while a sandbox is built, which else would be slowed down with the program
  // it is for, and sets it again. No effect where there is none.
  void limit_cpu(bool limited) const;

  // Every directory made, for adopt().
  std::vector<std::string> directories() const;
  LimitBy cpu() const { return cpu_; }
  LimitBy memory() const { return memory_; }
  LimitBy pids() const { return pids_; }
  const std::string& v2_directory() const { return v2_; }  // empty: none
  bool can_kill() const { return !groups_.empty(); }
  bool can_freeze() const { return !v2_.empty() || !freezer_.empty(); }
  // Why a limit is not kept, in words; empty if all is well.
  const std::string& trouble() const { return trouble_; }

  // As fork(), with the child inside the groups from its first instruction. Requires that the
  // calling process has one thread. The child must look at join_fault() and go no further than
  // _exit where it is not 0. Cost: well below a millisecond; a later move into a v2 group would
  // wait for every CPU (some 15 ms).
  pid_t fork_inside() const;
  // In the child: 0, or the error number that kept it out of a group.
  int join_fault() const { return join_fault_; }

  Result<void> freeze(bool frozen) const;
  // Kills every process inside and waits until none is left, for at most `wait_ms`. False where
  // some stay (in an uninterruptible call). Reaps children of the calling process meanwhile when
  // `reap` is given.
  bool kill_all(int wait_ms, void (*reap)(void*) = nullptr, void* context = nullptr) const;
  CgroupUsage usage() const;
  // Removes the groups; they must be empty. Returns whether all are gone.
  bool remove();

 private:
  struct Group {
    std::string directory;
    Fd entrance;  // v1: `tasks` open for writing; v2: the directory
  };

  std::string make_group(const std::string& mount, const std::string& own, const std::string& name);
  std::string make_v2_group(const std::string& mount, const std::string& own,
                            const std::string& name);
  void try_cpu(const std::string& file, std::string limited, std::string free, LimitBy kept_by);
  void limit_v2(const CgroupLimits& limits);
  void limit_v1(const CgroupMounts& mounts, const std::string& name, const CgroupLimits& limits);
  std::vector<pid_t> members() const;

  std::vector<Group> groups_;
  std::string v2_;  // directories; empty: none
  std::string memory_v1_;
  std::string cpu_file_;                // where the CPU limit is written
  std::string cpu_limited_, cpu_free_;  // and what
  std::string freezer_;
  LimitBy cpu_ = LimitBy::not_asked;
  LimitBy memory_ = LimitBy::not_asked;
  LimitBy pids_ = LimitBy::not_asked;
  std::string trouble_;
  mutable int join_fault_ = 0;
};

}  // namespace loam::node
