// fake_loam_engine: takes loam-engine's arguments and computes nothing. A model file named
// "broken" makes it fail at once; --tick-ms and --tokens make its streams slow and long, --start-ms
// its start.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "gateway/fake_engine.hpp"

int main(int argc, char** argv) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  loam::gateway::FakeEngine::Options options;
  std::string socket;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::string_view value = argv[i + 1];
    if (option == "--socket") socket = value;
    if (option == "--name") options.model = value;
    if (option == "--tick-ms") options.tick_ms = std::atoi(argv[i + 1]);
    if (option == "--tokens") options.tokens = static_cast<std::uint32_t>(std::atoi(argv[i + 1]));
    if (option == "--start-ms")
      std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[i + 1])));
    if (option == "--model" && value.ends_with("broken")) return 1;
  }
  const loam::gateway::FakeEngine engine(socket, options);
  int number = 0;
  sigwait(&ends, &number);
  return 0;
}
