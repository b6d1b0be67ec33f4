// Figures of whole programs: they run as users run them and print what they measured.
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

// Two saturating tenants at 60/30, strict, over 10 s windows.
LOAM_BENCHMARK_COMMAND(shares,
                       ({"{bin}/bench_shares", "--figures", "--seconds", "30", "--window", "10"}),
                       {{"shares.worst_error_points", "points", at_most(3)}});

LOAM_BENCHMARK_COMMAND(daemon, ({"{source}/bench/daemon.sh", "{bin}"}),
                       {{"daemon.quote_ms_p99", "ms", at_most(10)},
                        {"daemon.quote_ms_p50", "ms"},
                        {"daemon.submit_to_first_instruction_ms_p50", "ms", at_most(60)},
                        {"daemon.submit_to_first_instruction_ms_p90", "ms"},
                        {"daemon.rest_memory_mib", "MiB", at_most(60)},
                        {"daemon.rest_wakeups_per_s", "1/s", at_most(0.2)}});

}  // namespace
}  // namespace loam::bench
