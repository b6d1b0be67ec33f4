// A public trace of requests to a language model, with as many instances as the load asks for and
// with a fixed number (bench/infer_replay).
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

LOAM_DATA_BENCHMARK(infer_replay, {{"infer_replay.step_time_ratio", "ratio"},
                                   {"infer_replay.requests", ""},
                                   {"infer_replay.failures", "requests", at_most(0)},
                                   {"infer_replay.fixed_first_token_ms_p50", "ms"},
                                   {"infer_replay.fixed_first_token_ms_p99", "ms"},
                                   {"infer_replay.fixed_gap_ms_p50", "ms"},
                                   {"infer_replay.fixed_gap_ms_p99", "ms"},
                                   {"infer_replay.fixed_usd_per_million_tokens", "USD"},
                                   {"infer_replay.elastic_first_token_ms_p50", "ms"},
                                   {"infer_replay.elastic_first_token_ms_p99", "ms"},
                                   {"infer_replay.elastic_gap_ms_p50", "ms"},
                                   {"infer_replay.elastic_gap_ms_p99", "ms"},
                                   {"infer_replay.elastic_usd_per_million_tokens", "USD"},
                                   {"infer_replay.elastic_cost_ratio", "ratio", at_most(1)}}) {
  return command({"{source}/bench/infer_replay.sh", "{bin}", "{source}/build/models",
                  data_folder() + "/azure-llm/conversation.csv"})(report);
}

}  // namespace
}  // namespace loam::bench
