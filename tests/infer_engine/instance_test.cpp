// One context: what it says of how the library computes, and a step that finds no room in the
// key-value memory.
#include "app/engine/instance.hpp"

#include <cstdlib>

#include "fixture.hpp"

namespace loam::serve {
namespace {

std::string compute_of_a_fresh_engine() {
  const RunningEngine engine(small_engine());
  return Client(engine).welcome().compute;
}

TEST(Compute, WhetherGraphsAreReusedIsSeenNotPresumed) {
  const std::string usual = compute_of_a_fresh_engine();
  EXPECT_NE(usual.find("fused attention, graphs reused"), std::string::npos) << usual;
  ::setenv("LLAMA_GRAPH_REUSE_DISABLE", "1", 1);
  const std::string without = compute_of_a_fresh_engine();
  ::unsetenv("LLAMA_GRAPH_REUSE_DISABLE");
  EXPECT_NE(without.find("fused attention, graphs made anew"), std::string::npos) << without;
}

// A context of 512 cells of which another's tokens take most, so that the library finds no room
// where the batcher thinks there is.
TEST(Instance, AStepThatFindsNoRoomPutsAStreamAsideAndFailsNobody) {
  infer::TokenCounters counters;
  InstanceOptions options;
  options.batching.slots = 4;
  options.batching.unified = true;
  options.batching.cells = 512;
  auto made = Instance::make(shared_model(), options, {}, counters);
  ASSERT_TRUE(made.ok()) << made.error().message;
  Instance& instance = **made;
  const std::uint32_t cells = instance.batcher().config().cells;
  constexpr std::uint32_t left = 150;
  std::vector<llama_token> taken(cells - left, 1);
  llama_batch batch = llama_batch_init(static_cast<std::int32_t>(taken.size()), 0, 1);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    batch.token[i] = taken[i];
    batch.pos[i] = static_cast<llama_pos>(i);
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = 3;  // the batcher fills slots from the first
    batch.logits[i] = i + 1 == taken.size() ? 1 : 0;
  }
  batch.n_tokens = static_cast<std::int32_t>(taken.size());
  ASSERT_EQ(llama_decode(instance.context(), batch), 0);
  llama_batch_free(batch);

  for (infer::Token first : {10, 500, 900}) {
    infer::SequenceRequest request;
    request.tenant = "acme";
    for (infer::Token i = 0; i < 40; ++i) request.prompt.push_back(first + i);
    request.tokens_max = 60;
    ASSERT_TRUE(instance.batcher().submit(request).ok());
  }
  std::size_t ended = 0;
  std::uint32_t repeated = 0;
  for (int steps = 0; instance.batcher().has_work(); ++steps) {
    ASSERT_LT(steps, 2'000);
    const Instance::Step step = instance.step(
        [](infer::SequenceId sequence, const float*) {
          return infer::Sampled{sequence, 7, false};
        },
        [](infer::SequenceId, std::uint32_t, const float*) {});
    EXPECT_TRUE(step.broken.empty());
    repeated += step.again ? 1 : 0;
    for (const infer::Ended& end : step.ended) {
      ++ended;
      EXPECT_EQ(end.usage.generated_tokens, 60U);
      EXPECT_EQ(end.usage.prompt_tokens, 40U);
    }
  }
  EXPECT_EQ(ended, 3U);
  EXPECT_GT(repeated, 0U) << "the case did not come about";
}

}  // namespace
}  // namespace loam::serve
