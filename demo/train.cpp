// loam-demo-train: a small, real training run on an OpenCL device. What a tenant would write: it
// uses OpenCL and the checkpoint contract, nothing of loam's code, and also serves as a steady
// load that keeps a device busy with short kernels.
//
// The contract, as this program keeps it:
//   * on SIGTERM or SIGINT, or when the file named by LOAM_NOTICE appears, it finishes the step in
//     hand, saves under LOAM_CHECKPOINT_DIR and exits 0: a task that saved when told is no failure;
//   * with LOAM_RESTART > 0 it resumes from that folder, exactly where it was.
//
// Exit status: 0 done, or saved when told; 2 bad options; 3 the driver refused something (its name
// and code are on standard error); 4 the checkpoint cannot be used or written; 143 (130 for
// SIGINT) stopped with nowhere to save.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint.hpp"
#include "network.hpp"

namespace demo {
namespace {

constexpr int exit_driver = 3;
constexpr int exit_checkpoint = 4;

std::atomic<int> stop_signal{0};

extern "C" void on_stop_signal(int signal) {
  stop_signal.store(signal);
}

struct Options {
  std::uint64_t steps = 0;  // 0: no limit
  double seconds = 0;       // 0: no limit
  std::uint64_t size = 320;
  std::uint64_t memory_mib = 0;
  std::uint64_t checkpoint_every = 0;  // steps; 0: only when told and at the end
  double progress_every_s = 1.0;
  unsigned platform = 0;
  unsigned device = 0;
  std::string report;
  bool quiet = false;
};

// What the environment says of the attempt.
struct Contract {
  std::string checkpoint_folder;  // empty: nowhere to save
  std::string notice_file;        // empty: no notice will come as a file
  bool restarted = false;

  static Contract from_environment() {
    const auto text = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr ? value : "");
    };
    return Contract{text("LOAM_CHECKPOINT_DIR"), text("LOAM_NOTICE"),
                    std::strtol(text("LOAM_RESTART").c_str(), nullptr, 10) > 0};
  }
};

// Where a run stands; what the report says of it.
struct Run {
  std::uint64_t first_step = 0;  // steps that earlier attempts did
  std::uint64_t step = 0;        // steps done in all
  std::uint64_t earlier_ms = 0;  // training time of earlier attempts
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  double first_loss = 0;
  double loss = 0;
  std::string stopped_by;  // "", "notice", "signal"

  double attempt_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  }
  std::uint64_t total_ms() const {
    return earlier_ms + static_cast<std::uint64_t>(attempt_seconds() * 1000.0);
  }
};

void complain(const std::string& text) {
  std::fprintf(stderr, "loam-demo-train: %s\n", text.c_str());
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

bool write_report(const std::string& path, const Network& network, const Options& options,
                  const Run& run) {
  if (path.empty()) return true;
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  const std::uint64_t steps = run.step - run.first_step;
  const double seconds = run.attempt_seconds();
  const int printed = std::fprintf(
      file,
      "{\"steps\": %" PRIu64 ", \"attempt_steps\": %" PRIu64 ", \"resumed_from\": %" PRIu64
      ", \"seconds\": %.3f, \"total_seconds\": %.3f, \"steps_per_s\": %.3f, \"kernels\": %" PRIu64
      ", \"first_loss\": %.9g, \"loss\": %.9g, \"size\": %" PRIu64
      ", \"stopped_by\": %s, \"device\": %s}\n",
      run.step, steps, run.first_step, seconds, static_cast<double>(run.total_ms()) / 1000.0,
      seconds > 0 ? static_cast<double>(steps) / seconds : 0.0, steps * kernels_per_step,
      run.first_loss, run.loss, options.size,
      run.stopped_by.empty() ? "null" : quoted(run.stopped_by).c_str(),
      quoted(network.device_name()).c_str());
  return (std::fclose(file) == 0) && printed > 0;
}

// Puts the network where the last attempt left it, or at the start. False where the checkpoint
// cannot be used: starting over in silence would throw the paid work away.
bool begin(Network& network, const Options& options, const Contract& contract, Run& run) {
  if (contract.restarted && !contract.checkpoint_folder.empty()) {
    const CheckpointRead read = load_checkpoint(contract.checkpoint_folder);
    if (!read.message.empty()) complain(read.message);
    if (read.checkpoint) {
      if (read.checkpoint->size != options.size) {
        complain("the checkpoint is of --size " + std::to_string(read.checkpoint->size) + ", not " +
                 std::to_string(options.size) + "; give that size, or empty " +
                 contract.checkpoint_folder);
        return false;
      }
      network.start_from(Weights{read.checkpoint->weights_in, read.checkpoint->weights_out});
      run.first_step = run.step = read.checkpoint->step;
      run.earlier_ms = read.checkpoint->run_ms;
      if (!options.quiet) {
        std::printf("resumed at step %" PRIu64 " after %.1f s\n", run.step,
                    static_cast<double>(run.earlier_ms) / 1000.0);
      }
      return true;
    }
    if (read.found_any) {
      complain("empty " + contract.checkpoint_folder + " to start over");
      return false;
    }
    complain("restarted, but " + contract.checkpoint_folder +
             " holds no checkpoint: starting from the beginning");
  }
  network.start_fresh();
  return true;
}

bool save(Network& network, const Options& options, const Contract& contract, const Run& run) {
  if (contract.checkpoint_folder.empty()) return true;
  Weights weights = network.weights();
  const auto error = save_checkpoint(contract.checkpoint_folder,
                                     Checkpoint{options.size, run.step, run.total_ms(),
                                                std::move(weights.in), std::move(weights.out)});
  if (error) complain(*error);
  return !error;
}

bool finished(const Options& options, const Run& run) {
  if (options.steps > 0 && run.step >= options.steps) return true;
  return options.seconds > 0 && static_cast<double>(run.total_ms()) >= options.seconds * 1000.0;
}

std::string told_to_stop(const Contract& contract) {
  if (stop_signal.load() != 0) return "signal";
  if (!contract.notice_file.empty() && ::access(contract.notice_file.c_str(), F_OK) == 0) {
    return "notice";
  }
  return {};
}

void print_progress(const Options& options, const Run& run) {
  if (options.quiet) return;
  const double seconds = run.attempt_seconds();
  std::printf("step %" PRIu64 "  loss %.6f  %.1f steps/s\n", run.step, run.loss,
              seconds > 0 ? static_cast<double>(run.step - run.first_step) / seconds : 0.0);
  std::fflush(stdout);
}

// Steps until the work is done or somebody says stop. False where a periodic save failed.
bool train(Network& network, const Options& options, const Contract& contract, Run& run) {
  run.begun = std::chrono::steady_clock::now();
  double next_progress_s = 0;
  while (!finished(options, run)) {
    run.stopped_by = told_to_stop(contract);
    if (!run.stopped_by.empty()) break;
    network.step();
    ++run.step;
    const bool first = run.step == run.first_step + 1;
    if (first || run.attempt_seconds() >= next_progress_s) {
      run.loss = network.loss();
      if (first) run.first_loss = run.loss;
      print_progress(options, run);
      next_progress_s = run.attempt_seconds() + options.progress_every_s;
    }
    if (options.checkpoint_every > 0 && run.step % options.checkpoint_every == 0 &&
        !save(network, options, contract, run)) {
      return false;
    }
  }
  network.finish();
  // The error matrix belongs to a forward pass of this attempt; without one there is no loss.
  if (run.step > run.first_step) run.loss = network.loss();
  return true;
}

int run_training(const Options& options, const Contract& contract) {
  Network network(options.platform, options.device, options.size);
  if (!options.quiet) {
    std::printf("training on %s, %" PRIu64 "x%" PRIu64 " matrices\n", network.device_name().c_str(),
                options.size, options.size);
    std::fflush(stdout);
  }
  network.hold_memory(options.memory_mib);
  Run run;
  if (!begin(network, options, contract, run)) return exit_checkpoint;
  if (!train(network, options, contract, run)) return exit_checkpoint;
  print_progress(options, run);
  if (!save(network, options, contract, run)) return exit_checkpoint;
  if (!write_report(options.report, network, options, run)) {
    complain("cannot write the report " + options.report);
    return 1;
  }
  if (run.stopped_by.empty()) return 0;
  if (contract.checkpoint_folder.empty()) {
    complain("stopped with nowhere to save: LOAM_CHECKPOINT_DIR is not set");
    return stop_signal.load() != 0 ? 128 + stop_signal.load() : 128 + SIGTERM;
  }
  if (!options.quiet) std::printf("saved at step %" PRIu64 "\n", run.step);
  return 0;
}

// CLI::Range lets NaN pass: it is neither below nor above anything.
std::function<std::string(const std::string&)> number_between(double least, double most) {
  return [least, most](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && *end == '\0' && value >= least && value <= most) {
      return std::string();
    }
    return "'" + text + "' is not a number from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace
}  // namespace demo

int main(int argc, char** argv) {
  demo::Options options;
  CLI::App app{"Trains a small network on an OpenCL device, with checkpoints."};
  app.set_help_flag("--help", "Print this help");
  app.add_option("--steps", options.steps, "Stop after this many steps, over all attempts")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  app.add_option("--seconds", options.seconds, "Stop after this training time, over all attempts")
      ->check(demo::number_between(0.001, 1e9));
  app.add_option("--size", options.size, "Rows and columns of the matrices, a multiple of 16")
      ->check(CLI::Range(16, 4096))
      ->check([](const std::string& text) {
        return std::strtol(text.c_str(), nullptr, 10) % 16 == 0 ? std::string()
                                                                : text + " is not a multiple of 16";
      });
  app.add_option("--memory", options.memory_mib, "Allocate and hold this much more, in MiB")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--checkpoint-every", options.checkpoint_every, "Save every so many steps")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}));
  app.add_option("--progress-every", options.progress_every_s, "Seconds between progress lines")
      ->check(demo::number_between(0, 1e6));
  app.add_option("--platform", options.platform, "OpenCL platform, counted from 0");
  app.add_option("--device", options.device, "Device of that platform, counted from 0");
  app.add_option("--report", options.report, "Write steps, seconds, loss and kernels as JSON");
  app.add_flag("--quiet", options.quiet, "No progress lines");
  app.footer(
      "With neither --steps nor --seconds it runs until it is told to stop (SIGTERM, or the file "
      "named by LOAM_NOTICE).\nExit status: 0 done or saved when told, 2 bad options, 3 driver "
      "error, 4 checkpoint unusable.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  demo::install_signal_handlers();
  try {
    return demo::run_training(options, demo::Contract::from_environment());
  } catch (const demo::DeviceFault& fault) {
    demo::complain(demo::to_text(fault));
    return demo::exit_driver;
  }
}
