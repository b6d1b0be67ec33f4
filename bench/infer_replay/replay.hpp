// A trace of requests served by instances of one model, in virtual time: batching, routing and
// scaling are the code that serves (infer/batcher, route, scaling), and a step lasts what steps of
// the real engine were measured to last. Not in it: sockets and HTTP, whose cost is measured apart,
// the time to choose a token, and prompts that begin alike, of which the trace says nothing. Pure:
// the same input gives the same outcome.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "infer/batcher.hpp"
#include "infer/scaling.hpp"

namespace loam::bench::replay {

struct Arrival {
  std::int64_t at_us = 0;
  std::uint32_t prompt_tokens = 1;
  std::uint32_t generated_tokens = 1;
};

struct Settings {
  infer::BatcherConfig batching;
  infer::ScalingTerms scaling;  // instances_min == instances_max: a fixed number
  Duration start_time;          // until an instance that was asked for serves
  std::uint32_t tenants = 8;    // the requests' in turn
};

struct Outcome {
  std::vector<double> first_token_ms;  // of each request
  std::vector<double> gap_ms;          // between two tokens of one answer
  std::uint64_t tokens = 0;            // prompt and generated
  double instance_seconds = 0;         // from when one is asked for until it is gone
  double busy_seconds = 0;             // of these, in steps
  double span_seconds = 0;             // from the first arrival to the last answer's end
  std::uint32_t most_instances = 0;
  std::uint64_t unanswered = 0;
};

// What one step lasts.
std::uint64_t step_us(const infer::StepPlan& plan, const infer::StepCost& cost);

// Requires arrivals in order that fit a slot.
Outcome replay(const std::vector<Arrival>& arrivals, const Settings& settings,
               const infer::StepCost& cost);

// Requests a second that one instance answers where there are always more.
double capacity(const std::vector<Arrival>& arrivals, const Settings& settings,
                const infer::StepCost& cost);

}  // namespace loam::bench::replay
