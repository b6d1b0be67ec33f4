// A file system under SQLite that fails on command: every write and sync of this process's
// SQLite files goes through it while it is installed.
#pragma once

#include <cstdint>

namespace loam::store {

class FaultVfs {
 public:
  // Installs itself as SQLite's default; one at a time. Connections opened before keep the old
  // one; those opened while it is there must be closed before it goes.
  FaultVfs();
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  enum class Fault { none, disk_full, write_error, sync_error };
  // The `count`-th matching operation from now on (1: the next) and, if `lasting`, all after it
  // fail. disk_full and write_error match writes, sync_error matches syncs.
  static void fail(Fault fault, std::int64_t count, bool lasting);
  static void heal();
  // Whether the fault has struck.
  static bool struck();
};

}  // namespace loam::store
