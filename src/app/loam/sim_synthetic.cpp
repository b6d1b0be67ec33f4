// loam sim: a made-up pool in steady churn.

#include "app/loam/session.hpp"
#include "app/loam/sim_runs.hpp"
#include "base/quantity.hpp"
#include "sim/trace/synthetic.hpp"

namespace loam::cli {
Result<int> sim_synthetic(Session& session, const Arguments& arguments) {
  LOAM_TRY(synthetic, sim::parse_synthetic(arguments.text("synthetic")));
  schedule::PoolOptions options;
  LOAM_TRY(policy, schedule::parse_placement_policy(arguments.text("policy", "packing_value")));
  options.placement.policy = policy;
  options.mix = mix_of(arguments);
  const std::string otherwise = std::to_string(sim::scored_max_default);
  LOAM_TRY(scored,
           parse_decimal(arguments.text("scored-max", otherwise), 0, 10'000'000, "scored-max"));
  options.scored_max = scored;
  Console& console = session.console();
  const bool live = console.err_is_terminal && !session.quiet();
  const sim::SyntheticOutcome outcome = sim::run_synthetic(synthetic, options, [&](int percent) {
    if (live) console.err << "\r\x1b[K" << percent << " %" << std::flush;
  });
  if (live) console.err << "\r\x1b[K" << std::flush;
  LOAM_CHECK(write_json(arguments, session,
                        "{\"devices\":" + std::to_string(synthetic.devices) +
                            ",\"nodes\":" + std::to_string(synthetic.nodes) +
                            ",\"placements\":" + std::to_string(outcome.placements) +
                            ",\"placements_per_s\":" + fixed(outcome.placements_per_s, 1) +
                            ",\"decision_p50_us\":" + fixed(outcome.decision_p50_us, 2) +
                            ",\"decision_p99_us\":" + fixed(outcome.decision_p99_us, 2) +
                            ",\"decision_max_us\":" + fixed(outcome.decision_max_us, 2) +
                            ",\"rss_mib\":" + fixed(outcome.rss_mib, 1) +
                            ",\"allocation_percent\":" + fixed(outcome.allocated_percent, 4) +
                            ",\"jain\":1" +  // one tenant asks for everything
                            ",\"jain_devices\":" + fixed(outcome.jain_devices, 4) +
                            ",\"states\":" + std::to_string(outcome.states) + "}\n"));
  if (!shows_table(arguments, session)) return 0;
  session.out() << facts_text({{"placements a second", fixed(outcome.placements_per_s, 0)},
                               {"decision, median, us", fixed(outcome.decision_p50_us, 1)},
                               {"decision, 99th percentile, us", fixed(outcome.decision_p99_us, 1)},
                               {"decision, longest, us", fixed(outcome.decision_max_us, 1)},
                               {"refused", std::to_string(outcome.refused)},
                               {"distinct node states", std::to_string(outcome.states)},
                               {"allocated when filled up, %", fixed(outcome.allocated_percent, 2)},
                               {"Jain's index over devices", fixed(outcome.jain_devices, 3)},
                               {"Jain's index over tenants", "1.000, as there is one"},
                               {"memory, highest, MiB", fixed(outcome.rss_mib, 0)}},
                              console.colour);
  return 0;
}

OptionGroup sim_synthetic_options() {
  return {"Made-up pools",
          {{"--scored-max", "N", "states scored at most in one decision; 0: all (384)"}}};
}

}  // namespace loam::cli
