// loam-launch: runs and supervises one attempt of a task.
#include "node/launch/launcher.hpp"

int main(int argc, char** argv) {
  return loam::node::launch_main(argc, argv);
}
