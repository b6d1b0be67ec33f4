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
                        {"daemon.rest_wakeups_per_s", "1/s", at_most(0.2)},
                        {"daemon.submissions_per_second", "1/s", at_least(5'000)},
                        {"daemon.submission_ms_p50", "ms"},
                        {"daemon.submission_ms_p99", "ms"},
                        {"daemon.ps_ms_p99", "ms", at_most(100)}});

// Serving a model, beside the bare library and beside our own unshared mode.
LOAM_BENCHMARK_COMMAND(infer, ({"{source}/bench/infer.sh", "{bin}", "{source}/build/models"}),
                       {{"infer.raw_1_ratio", "ratio", at_least(0.97)},
                        {"infer.raw_16_ratio", "ratio", at_least(0.97)},
                        {"infer.shared_prefix_tokens_per_s", "1/s"},
                        {"infer.shared_prefix_speedup", "ratio", at_least(1.9)},
                        {"infer.shared_prefix_first_token_p99_ratio", "ratio", at_least(4)},
                        {"infer.newcomer_first_token_ratio", "ratio", at_most(3)},
                        {"infer.long_prompt_largest_gap_ratio", "ratio", at_most(8)},
                        {"infer.quarter_memory_failures", "requests", at_most(0)},
                        {"infer.mixed_batched_over_f16_alone", "ratio", at_least(4)},
                        {"infer.mixed_batched_over_f16_batched", "ratio", at_least(1.9)},
                        {"infer.loss_f16_perplexity", ""},
                        {"infer.loss_q8_0_perplexity", ""},
                        {"infer.loss_q8_0_divergence", "nats"},
                        {"infer.loss_q4_K_M_perplexity", ""},
                        {"infer.loss_q4_K_M_divergence", "nats"},
                        {"infer.loss_mixed_perplexity", ""},
                        {"infer.loss_mixed_divergence", "nats"}});

}  // namespace
}  // namespace loam::bench
