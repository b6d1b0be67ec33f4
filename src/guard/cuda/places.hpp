// Which entry of the slice page a CUDA device or the thread's current context is. Not pure: asks
// the driver.
#pragma once

#include <cstdint>

#include "guard/cuda/driver.hpp"
#include "guard/page.hpp"

namespace loam::guard::cuda {

inline constexpr int not_on_page = -1;

// The index of the device's entry. Cost after the first call: one look into a table.
int page_entry(const Page& page, CUdevice device);
// The entry by its UUID text, as NVML spells it.
int page_entry_named(const Page& page, const char* uuid);
// "GPU-..." or, for a MIG instance, "MIG-..."; false where the driver gives none. 48 bytes.
bool uuid_text(CUdevice device, char* text);

// Where a call of this thread goes.
struct Here {
  CUcontext context = nullptr;
  CUdevice device = -1;
  int entry = not_on_page;
};
// Fills `here` from the thread's current context: cuda_success, or the driver's own error where
// there is none, or cuda_no_device where its device is not on the page. Cost after the first call
// with a context: one driver call.
CUresult find_here(const Page& page, Here* here);

// The entry of the thread's current context as it was when last asked; asks again when the thread
// changed its context through the guard, and now and then. not_on_page where there is none.
// Cost: no driver call on most calls.
struct Remembered {
  std::uint32_t generation = 0;
  std::uint32_t uses = 0;
  Here here;
};
extern thread_local constinit Remembered remembered;
// Raised whenever what threads remember of contexts may be wrong.
extern std::atomic<std::uint32_t> contexts_generation;
// An undocumented way to change the context is found out after so many launches.
inline constexpr std::uint32_t uses_before_asking = 64;
int ask_entry_here(const Page& page);
[[gnu::always_inline]] inline int entry_here(const Page& page) {
  Remembered& mine = remembered;
  if (mine.generation == contexts_generation.load(std::memory_order_relaxed) &&
      mine.uses++ < uses_before_asking) [[likely]]
    return mine.here.entry;
  return ask_entry_here(page);
}
// Makes the context the thread's for a scope, where it is not: the clerk has none of its own.
class Within {
 public:
  explicit Within(CUcontext context);
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  bool pushed_ = false;
};

// The thread's context may have changed; any thread's may have ended.
void forget_here();
void forget_context(CUcontext context);

}  // namespace loam::guard::cuda
