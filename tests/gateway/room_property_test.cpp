// Models that share too little room, in worlds drawn by seed: whatever the starts, the answers and
// the drains last, every request is answered within the time that the other models' turns take.
#include <gtest/gtest.h>

#include <deque>

#include "base/random.hpp"
#include "infer/scaling.hpp"

namespace loam::infer {
namespace {

using State = ScaledInstance::State;

struct Instance {
  std::uint64_t id = 0;
  State state = State::starting;
  Instant up_at{};
  std::vector<Instant> answers_end;  // of its requests in flight
};

struct Model {
  ScalingTerms terms{.instances_min = 0, .instances_max = 1};
  ScalingMemory memory;
  Mebibytes need{100};
  Duration start_time;  // longest
  Duration answer_time;
  std::uint64_t busy_permille = 0;  // how likely a request comes in a tick
  std::deque<Instant> waiting;
  std::optional<Instant> last_request;
  std::optional<Instant> turn_began;
  Instant starts_since{};
  std::vector<Instance> instances;
  std::uint64_t served = 0;
};

// Keeps the books that the gateway keeps, tick by tick.
struct World {
  explicit World(std::uint64_t seed) : random(seed) {
    const std::int64_t count = random.between(2, 5);
    terms.turn_min = Duration{random.between(1, 200) * 100};
    for (std::int64_t i = 0; i < count; ++i) {
      Model model;
      // From ready at once to many times as long as a turn.
      model.start_time = Duration{random.between(0, 1) == 0 ? random.between(0, 2'000)
                                                            : random.between(0, 100'000)};
      model.answer_time = Duration{random.between(1, 5'000)};
      model.busy_permille = random.below(300) + 1;
      model.need = Mebibytes{random.between(40, 100)};
      model.terms.instances_max = static_cast<std::uint32_t>(random.between(1, 3));
      models.push_back(model);
    }
    room = Mebibytes{random.between(100, 150)};
  }

  // Since when a request waits until it is answered at the latest: every other model may start,
  // have its turn and drain; then this one's own drain and start.
  Duration bound() const {
    Duration sum;
    for (const Model& model : models)
      sum = sum + model.start_time + terms.turn_min + model.answer_time + Duration{4 * tick.ms};
    return sum * 2;
  }

  void step() {
    now = now + tick;
    for (Model& model : models) {
      requests_come(model);
      instances_live(model);
    }
    std::vector<RoomAsk> asks;
    for (Model& model : models) asks.push_back(ask_of(model, asks.size()));
    const RoomDecision decision = decide_room(room, terms, asks, now);
    for (const std::uint64_t number : decision.drain) give_way(models[number]);
    for (const std::uint64_t number : decision.start) start(models[number]);
  }

  void requests_come(Model& model) {
    if (!random.chance(model.busy_permille)) return;
    model.waiting.push_back(now);
    model.last_request = now;
  }

  void instances_live(Model& model) {
    bool serves = false;
    for (Instance& one : model.instances) {
      std::erase_if(one.answers_end, [&](Instant end) { return end <= now; });
      if (one.state == State::starting && one.up_at <= now) one.state = State::serving;
      if (one.state != State::serving) continue;
      serves = true;
      for (; !model.waiting.empty(); model.waiting.pop_front()) {
        longest_wait = std::max(longest_wait, now - model.waiting.front());
        one.answers_end.push_back(now + Duration{random.between(0, model.answer_time.ms)});
        ++model.served;
      }
    }
    std::erase_if(model.instances, [](const Instance& one) {
      return one.state == State::draining && one.answers_end.empty();
    });
    if (!serves && model.turn_began) model.starts_since = now;
    if (serves != model.turn_began.has_value())
      model.turn_began = serves ? std::optional(now) : std::nullopt;
  }

  RoomAsk ask_of(Model& model, std::uint64_t number) {
    EndpointLoad load;
    load.slots = 4;
    load.waiting = static_cast<std::uint32_t>(model.waiting.size());
    load.last_request = model.last_request;
    RoomAsk ask;
    for (const Instance& one : model.instances) {
      const auto in_flight = static_cast<std::uint32_t>(one.answers_end.size());
      load.instances.push_back({one.id, one.state, in_flight});
      load.in_flight += in_flight;
      ++(one.state == State::draining ? ask.draining : ask.serving);
    }
    const ScalingDecision decision = decide_scaling(model.terms, load, now, model.memory);
    for (Instance& one : model.instances) {
      if (std::count(decision.drain.begin(), decision.drain.end(), one.id) == 0) continue;
      one.state = State::draining;
      --ask.serving;
      ++ask.draining;
    }
    ask.endpoint = number;
    ask.memory = model.need;
    ask.start = decision.start;
    ask.in_flight = load.in_flight;
    if (!model.waiting.empty()) ask.waiting_since = model.waiting.front();
    ask.turn_began = model.turn_began;
    ask.starts_since = model.starts_since;
    return ask;
  }

  void give_way(Model& model) {
    Instance* least = nullptr;
    for (Instance& one : model.instances) {
      if (one.state == State::draining) continue;
      if (least == nullptr || one.answers_end.size() < least->answers_end.size()) least = &one;
    }
    ASSERT_NE(least, nullptr);
    least->state = State::draining;
  }

  void start(Model& model) {
    if (std::all_of(model.instances.begin(), model.instances.end(),
                    [](const Instance& one) { return one.state == State::draining; }))
      model.starts_since = now;
    Instance one;
    one.id = ++last_id;
    one.up_at = now + Duration{random.between(0, model.start_time.ms)};
    model.instances.push_back(one);
  }

  static constexpr Duration tick{250};
  Random random;
  TurnTerms terms;
  Mebibytes room;
  std::vector<Model> models;
  Instant now{1'000'000};
  Duration longest_wait{};
  std::uint64_t last_id = 0;
};

TEST(RoomProperty, EveryModelWithRequestsIsServedWithinTheTurnsOfTheOthers) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    World world(seed);
    const Duration bound = world.bound();
    for (int i = 0; i < 4 * 3'600; ++i) {
      world.step();
      Mebibytes used;
      for (const Model& model : world.models) {
        used.value += model.need.value * static_cast<std::int64_t>(model.instances.size());
        const Duration waits =
            model.waiting.empty() ? Duration{} : world.now - model.waiting.front();
        ASSERT_LE(waits, bound) << "seed " << seed;
      }
      ASSERT_LE(used, world.room) << "seed " << seed;
    }
    for (const Model& model : world.models) EXPECT_GT(model.served, 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::infer
