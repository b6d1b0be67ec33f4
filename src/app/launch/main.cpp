// loam-launch: runs and supervises one attempt of a task.
#include "node/launch/launcher.hpp"

#ifdef __SANITIZE_ADDRESS__
// Inside a guarded sandbox the dynamic linker loads the guard before everything else, also here.
extern "C" const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
#endif

int main(int argc, char** argv) {
  return loam::node::launch_main(argc, argv);
}
