// Figures of whole programs: they run as users run them and print what they measured.
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

// Two saturating tenants at 60/30, strict, over 10 s windows.
LOAM_BENCHMARK_COMMAND(shares,
                       ({"{bin}/bench_shares", "--figures", "--seconds", "30", "--window", "10"}),
                       {{"shares.worst_error_points", "points", at_most(3)}});

// Slices on the machine's first OpenCL device: PoCL makes its processors one.
LOAM_BENCHMARK_COMMAND(guard, ({"{bin}/bench_guard_slices"}),
                       {{"guard.ocl_share_error_points", "points", at_most(1.5)},
                        {"guard.ocl_throughput_ratio", "ratio", at_least(0.97)},
                        {"guard.ocl_switch_ms", "ms", at_most(0.5)},
                        {"guard.ocl_copy_share_error_points", "points"},
                        {"guard.ocl_service_wait_ms_p99", "ms", at_most(4.5)},
                        {"guard.ocl_cpu_ratio", "ratio", at_most(1.02)},
                        {"guard.double_grants", "grants", at_most(0)},
                        {"guard.hangs", "hangs", at_most(0)},
                        {"guard.leaked_bytes", "bytes", at_most(0)}});

LOAM_BENCHMARK_COMMAND(daemon, ({"{source}/bench/daemon.sh", "{bin}"}),
                       {{"daemon.quote_ms_p99", "ms", at_most(10)},
                        {"daemon.quote_ms_p50", "ms"},
                        {"daemon.submit_to_first_instruction_ms_p50", "ms", at_most(60)},
                        {"daemon.submit_to_first_instruction_ms_p90", "ms"},
                        {"daemon.rest_memory_mib", "MiB", at_most(60)},
                        {"daemon.rest_wakeups_per_s", "1/s", at_most(0.2)}});

}  // namespace
}  // namespace loam::bench
