#include "fault_vfs.hpp"

#include <sqlite3.h>

#include <atomic>
#include <cstring>

#include "base/assert.hpp"

namespace loam::store {

namespace {

// SQLite's object layout: our header first, the real file right behind it.
struct FaultFile {
  sqlite3_file base;
  sqlite3_file* real;
};

std::atomic<FaultVfs::Fault> active_fault{FaultVfs::Fault::none};
std::atomic<std::int64_t> countdown{0};
std::atomic<bool> lasts{false};
std::atomic<bool> has_struck{false};

sqlite3_vfs* real_vfs = nullptr;
sqlite3_vfs fault_vfs;
sqlite3_io_methods fault_methods;

sqlite3_file* real_of(sqlite3_file* file) {
  return reinterpret_cast<FaultFile*>(file)->real;
}

bool strikes() {
  const std::int64_t left = --countdown;
  const bool now = left == 0 || (left < 0 && lasts);
  if (now) has_struck = true;
  return now;
}

int on_close(sqlite3_file* file) {
  sqlite3_file* real = real_of(file);
  return real->pMethods != nullptr ? real->pMethods->xClose(real) : SQLITE_OK;
}
int on_read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  return real_of(file)->pMethods->xRead(real_of(file), to, size, at);
}
int on_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  const FaultVfs::Fault fault = active_fault;
  if (fault == FaultVfs::Fault::disk_full && strikes()) return SQLITE_FULL;
  if (fault == FaultVfs::Fault::write_error && strikes()) {
    // Half of it arrives, as on a real disk.
    real_of(file)->pMethods->xWrite(real_of(file), from, size / 2, at);
    return SQLITE_IOERR_WRITE;
  }
  return real_of(file)->pMethods->xWrite(real_of(file), from, size, at);
}
int on_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return real_of(file)->pMethods->xTruncate(real_of(file), size);
}
int on_sync(sqlite3_file* file, int flags) {
  if (active_fault == FaultVfs::Fault::sync_error && strikes()) return SQLITE_IOERR_FSYNC;
  return real_of(file)->pMethods->xSync(real_of(file), flags);
}
int on_size(sqlite3_file* file, sqlite3_int64* size) {
  return real_of(file)->pMethods->xFileSize(real_of(file), size);
}
int on_lock(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xLock(real_of(file), level);
}
int on_unlock(sqlite3_file* file, int level) {
  return real_of(file)->pMethods->xUnlock(real_of(file), level);
}
int on_check_lock(sqlite3_file* file, int* result) {
  return real_of(file)->pMethods->xCheckReservedLock(real_of(file), result);
}
int on_control(sqlite3_file* file, int operation, void* argument) {
  return real_of(file)->pMethods->xFileControl(real_of(file), operation, argument);
}
int on_sector(sqlite3_file* file) {
  return real_of(file)->pMethods->xSectorSize(real_of(file));
}
int on_traits(sqlite3_file* file) {
  return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}
int on_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** to) {
  return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, to);
}
int on_shm_lock(sqlite3_file* file, int offset, int count, int flags) {
  return real_of(file)->pMethods->xShmLock(real_of(file), offset, count, flags);
}
void on_shm_barrier(sqlite3_file* file) {
  real_of(file)->pMethods->xShmBarrier(real_of(file));
}
int on_shm_unmap(sqlite3_file* file, int remove) {
  return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

int on_open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flags_out) {
  auto* ours = reinterpret_cast<FaultFile*>(file);
  ours->real = reinterpret_cast<sqlite3_file*>(ours + 1);
  const int code = real_vfs->xOpen(real_vfs, name, ours->real, flags, flags_out);
  ours->base.pMethods = ours->real->pMethods != nullptr ? &fault_methods : nullptr;
  return code;
}

}  // namespace

FaultVfs::FaultVfs() {
  LOAM_ASSERT(real_vfs == nullptr);
  heal();
  real_vfs = sqlite3_vfs_find(nullptr);
  fault_methods = sqlite3_io_methods{};
  fault_methods.iVersion = 2;
  fault_methods.xClose = on_close;
  fault_methods.xRead = on_read;
  fault_methods.xWrite = on_write;
  fault_methods.xTruncate = on_truncate;
  fault_methods.xSync = on_sync;
  fault_methods.xFileSize = on_size;
  fault_methods.xLock = on_lock;
  fault_methods.xUnlock = on_unlock;
  fault_methods.xCheckReservedLock = on_check_lock;
  fault_methods.xFileControl = on_control;
  fault_methods.xSectorSize = on_sector;
  fault_methods.xDeviceCharacteristics = on_traits;
  fault_methods.xShmMap = on_shm_map;
  fault_methods.xShmLock = on_shm_lock;
  fault_methods.xShmBarrier = on_shm_barrier;
  fault_methods.xShmUnmap = on_shm_unmap;
  // All but opening is the real one's own.
  fault_vfs = *real_vfs;
  fault_vfs.zName = "loam-fault";
  fault_vfs.szOsFile = real_vfs->szOsFile + static_cast<int>(sizeof(FaultFile));
  fault_vfs.xOpen = on_open;
  sqlite3_vfs_register(&fault_vfs, 1);
}

FaultVfs::~FaultVfs() {
  heal();
  sqlite3_vfs_unregister(&fault_vfs);
  sqlite3_vfs_register(real_vfs, 1);
  real_vfs = nullptr;
}

void FaultVfs::fail(Fault fault, std::int64_t count, bool lasting) {
  countdown = count;
  lasts = lasting;
  has_struck = false;
  active_fault = fault;
}

void FaultVfs::heal() {
  active_fault = Fault::none;
  has_struck = false;
}

bool FaultVfs::struck() {
  return has_struck;
}

}  // namespace loam::store
