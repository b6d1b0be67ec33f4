// The clerk: the one thread that the guard adds to a process that uses a CUDA device. It sees to
// its end what was launched when nobody calls in: closes the gate at the end of a turn and tells
// the keeper when the device is drained. It sleeps while nothing is open. Not pure: a thread.
#pragma once

namespace loam::guard::cuda {

// Something was opened. Starts the thread at the first call; costs a system call only where it
// sleeps.
void wake_clerk();

}  // namespace loam::guard::cuda
