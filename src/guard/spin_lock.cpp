#include "guard/spin_lock.hpp"

namespace loam::guard {

thread_local constinit char this_thread = 0;

}  // namespace loam::guard
