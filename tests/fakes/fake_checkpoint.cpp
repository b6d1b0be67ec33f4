// A fake libcuda.so.1 with the checkpoint entries: processes in states, which entries refuse as the
// driver does.
#include <map>

namespace {
std::map<int, int> states;  // 0 running, 1 locked, 2 checkpointed, 3 failed
int codes[4] = {};          // of lock, checkpoint, restore, unlock
}  // namespace

extern "C" {

void fake_checkpoint_code(int entry, int code) {
  codes[entry] = code;
}
void fake_checkpoint_state(int pid, int state) {
  states[pid] = state;
}
int cuInit(unsigned) {
  return 0;
}
int cuGetErrorName(int code, const char** name) {
  *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
int cuCheckpointProcessGetState(int pid, int* state) {
  const auto found = states.find(pid);
  if (found == states.end()) return 401;
  *state = found->second;
  return 0;
}
static int step(int pid, int entry, int from, int to) {
  if (codes[entry] != 0) return codes[entry];
  if (states.count(pid) == 0 || states[pid] != from) return 401;
  states[pid] = to;
  return 0;
}
int cuCheckpointProcessLock(int pid, void* arguments) {
  return arguments ? step(pid, 0, 0, 1) : 1;
}
int cuCheckpointProcessCheckpoint(int pid, void*) {
  return step(pid, 1, 1, 2);
}
int cuCheckpointProcessRestore(int pid, void*) {
  return step(pid, 2, 2, 1);
}
int cuCheckpointProcessUnlock(int pid, void*) {
  return step(pid, 3, 1, 0);
}
}
