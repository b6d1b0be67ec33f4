// The inference gateway alone: an engine that computes nothing on one side, clients that only count
// on the other (tests/gateway/load_main.cpp).
#include "bench/bench.hpp"

namespace loam::bench {
namespace {

LOAM_BENCHMARK_COMMAND(infer_gateway, ({"{bin}/bench_gateway"}),
                       {{"infer_gateway.streams", "", at_least(1'000)},
                        {"infer_gateway.chunks_per_second", "1/s", at_least(50'000)},
                        {"infer_gateway.cpu_us_per_chunk", "us", at_most(15)},
                        {"infer_gateway.kib_per_stream", "KiB", at_most(50)}});

}  // namespace
}  // namespace loam::bench
