#include "bench/infer_replay/replay.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/assert.hpp"
#include "infer/route.hpp"

namespace loam::bench::replay {

namespace {

using State = infer::ScaledInstance::State;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t tick_us = 250'000;  // the gateway's, of looking at how many are needed

struct Instance {
  Instance(std::uint64_t number, const infer::BatcherConfig& config, std::int64_t asked)
      : id(number), asked_us(asked), batcher(config, counters) {}

  std::uint64_t id;
  State state = State::starting;
  std::int64_t asked_us;
  std::int64_t up_us = 0;
  infer::TokenCounters counters;
  infer::Batcher batcher;
  std::optional<infer::StepPlan> plan;  // of the step that goes on
  std::int64_t step_began_us = 0;
  std::int64_t step_ends_us = never;
  std::uint64_t cells_promised = 0;
  std::map<infer::SequenceId, std::size_t> requests;  // by their place among the arrivals
};

class World {
 public:
  World(const std::vector<Arrival>& arrivals, const Settings& settings, const infer::StepCost& cost)
      : arrivals_(arrivals),
        settings_(settings),
        cost_(cost),
        last_token_us_(arrivals.size(), -1) {}

  Outcome run() {
    while (next_arrival_ < arrivals_.size() || left_ > 0) {
      now_us_ = next_event();
      LOAM_ASSERT(now_us_ != never);
      for (const auto& instance : instances_) end_step(*instance);
      come_up();
      arrive();
      if (now_us_ >= next_tick_us_) tend();
      place();
      for (const auto& instance : instances_) begin_step(*instance);
    }
    for (const auto& instance : instances_) account(*instance);
    out_.span_seconds = seconds(now_us_ - arrivals_.front().at_us);
    return std::move(out_);
  }

 private:
  static double seconds(std::int64_t us) { return static_cast<double>(us) / 1e6; }

  std::int64_t next_event() const {
    std::int64_t next = next_tick_us_;
    if (next_arrival_ < arrivals_.size()) next = std::min(next, arrivals_[next_arrival_].at_us);
    for (const auto& instance : instances_) {
      next = std::min(next, instance->step_ends_us);
      if (instance->state == State::starting) next = std::min(next, instance->up_us);
    }
    return std::max(next, now_us_);
  }

  void arrive() {
    for (; next_arrival_ < arrivals_.size() && arrivals_[next_arrival_].at_us <= now_us_;
         ++next_arrival_) {
      waiting_.push_back(next_arrival_);
      ++left_;
      last_arrival_ = wall();
      // The first request for a cold endpoint does not wait for the next look.
      if (instances_.empty()) next_tick_us_ = now_us_;
    }
  }

  void come_up() {
    for (const auto& instance : instances_) {
      if (instance->state == State::starting && instance->up_us <= now_us_)
        instance->state = State::serving;
    }
  }

  void place() {
    while (!waiting_.empty()) {
      const Arrival& request = arrivals_[waiting_.front()];
      const std::uint64_t tokens = request.prompt_tokens + request.generated_tokens;
      std::vector<infer::InstanceView> views;
      for (const auto& instance : instances_) {
        views.push_back({instance->state == State::serving, 0, settings_.batching.slots,
                         static_cast<std::uint32_t>(instance->requests.size()),
                         settings_.batching.cells, instance->cells_promised});
      }
      const auto chosen = infer::choose_instance(views, tokens);
      if (!chosen) return;
      submit(*instances_[*chosen], waiting_.front());
      waiting_.pop_front();
    }
  }

  void submit(Instance& instance, std::size_t number) {
    const Arrival& request = arrivals_[number];
    infer::SequenceRequest ask;
    ask.prompt.assign(request.prompt_tokens, static_cast<infer::Token>(number % 30'000));
    ask.tokens_max = request.generated_tokens;
    ask.tenant = "tenant" + std::to_string(number % settings_.tenants);
    const auto id = instance.batcher.submit(std::move(ask));
    LOAM_ASSERT(id.ok());
    instance.requests.emplace(*id, number);
    instance.cells_promised += request.prompt_tokens + request.generated_tokens;
  }

  void begin_step(Instance& instance) {
    if (instance.state == State::starting || instance.plan || !instance.batcher.has_work()) return;
    infer::StepPlan plan = instance.batcher.plan();
    if (plan.items.empty()) {
      instance.batcher.finish({}, {}, 0);
      return;
    }
    instance.step_began_us = now_us_;
    instance.step_ends_us =
        now_us_ + static_cast<std::int64_t>(std::max<std::uint64_t>(step_us(plan, cost_), 1));
    instance.plan = std::move(plan);
  }

  void end_step(Instance& instance) {
    if (instance.step_ends_us > now_us_) return;
    std::vector<infer::Sampled> samples;
    for (const infer::BatchItem& item : instance.plan->items) {
      if (!item.sample) continue;
      samples.push_back({item.sequence, 1, false});
      note_token(instance.requests.at(item.sequence));
    }
    const auto us = static_cast<std::uint64_t>(now_us_ - instance.step_began_us);
    out_.busy_seconds += seconds(static_cast<std::int64_t>(us));
    for (const infer::Ended& ended : instance.batcher.finish(*instance.plan, samples, us)) {
      const auto request = instance.requests.find(ended.sequence);
      const Arrival& answered = arrivals_[request->second];
      instance.cells_promised -= answered.prompt_tokens + answered.generated_tokens;
      out_.tokens += ended.usage.prompt_tokens + ended.usage.generated_tokens;
      if (ended.usage.generated_tokens != answered.generated_tokens) ++out_.unanswered;
      instance.requests.erase(request);
      --left_;
    }
    instance.plan.reset();
    instance.step_ends_us = never;
  }

  void note_token(std::size_t number) {
    std::int64_t& last_us = last_token_us_[number];
    if (last_us < 0) {
      out_.first_token_ms.push_back(seconds(now_us_ - arrivals_[number].at_us) * 1e3);
    } else {
      out_.gap_ms.push_back(seconds(now_us_ - last_us) * 1e3);
    }
    last_us = now_us_;
  }

  Instant wall() const { return {now_us_ / 1000}; }

  void tend() {
    next_tick_us_ = now_us_ + tick_us;
    std::erase_if(instances_, [&](const auto& instance) {
      const bool gone = instance->state == State::draining && instance->requests.empty();
      if (gone) account(*instance);
      return gone;
    });
    infer::EndpointLoad load;
    load.slots = settings_.batching.slots;
    load.waiting = static_cast<std::uint32_t>(waiting_.size());
    load.last_request = last_arrival_;
    for (const auto& instance : instances_) {
      const auto in_flight = static_cast<std::uint32_t>(instance->requests.size());
      load.in_flight += in_flight;
      load.instances.push_back({instance->id, instance->state, in_flight});
    }
    const infer::ScalingDecision decision =
        infer::decide_scaling(settings_.scaling, load, wall(), memory_);
    for (const std::uint64_t id : decision.drain) {
      for (const auto& instance : instances_) {
        if (instance->id == id) instance->state = State::draining;
      }
    }
    for (std::uint32_t i = 0; i < decision.start; ++i) start();
    out_.most_instances =
        std::max(out_.most_instances, static_cast<std::uint32_t>(instances_.size()));
  }

  void start() {
    auto instance = std::make_unique<Instance>(++last_id_, settings_.batching, now_us_);
    instance->up_us = now_us_ + settings_.start_time.ms * 1000;
    instances_.push_back(std::move(instance));
  }

  void account(const Instance& instance) {
    out_.instance_seconds += seconds(now_us_ - instance.asked_us);
  }

  const std::vector<Arrival>& arrivals_;
  const Settings& settings_;
  const infer::StepCost& cost_;
  Outcome out_;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::deque<std::size_t> waiting_;  // for an instance
  std::vector<std::int64_t> last_token_us_;
  std::size_t next_arrival_ = 0;
  std::size_t left_ = 0;  // that arrived and are not answered
  std::int64_t now_us_ = 0;
  std::int64_t next_tick_us_ = 0;
  std::optional<Instant> last_arrival_;
  infer::ScalingMemory memory_;
  std::uint64_t last_id_ = 0;
};

}  // namespace

std::uint64_t step_us(const infer::StepPlan& plan, const infer::StepCost& cost) {
  std::uint32_t streams = 0;
  std::uint32_t prompt_tokens = 0;
  for (const infer::BatchItem& item : plan.items)
    (item.tokens == 1 ? streams : prompt_tokens) += item.tokens;
  const std::uint64_t decode = streams == 0 ? 0 : cost.decode_us(streams);
  return decode + prompt_tokens * cost.prompt_token_us();
}

Outcome replay(const std::vector<Arrival>& arrivals, const Settings& settings,
               const infer::StepCost& cost) {
  LOAM_ASSERT(!arrivals.empty());
  return World(arrivals, settings, cost).run();
}

double capacity(const std::vector<Arrival>& arrivals, const Settings& settings,
                const infer::StepCost& cost) {
  Settings one = settings;
  one.scaling.instances_min = one.scaling.instances_max = 1;
  one.start_time = {};
  std::vector<Arrival> at_once = arrivals;
  for (Arrival& arrival : at_once) arrival.at_us = 0;
  const Outcome outcome = replay(at_once, one, cost);
  return static_cast<double>(arrivals.size()) / outcome.span_seconds;
}

}  // namespace loam::bench::replay
