// History: what tasks go through for the sake of others, and of their deadlines.
#include <gtest/gtest.h>

#include "history.hpp"

namespace loam::store {

void History::spot_deadlines() {
  act(TopUp{acme, usd("1000"), "cash"});
  RateCard card;
  card.effective_from = now;
  card.on_demand = usd("1");
  card.terms.spot.sold = true;
  act(PublishRateCard{card});
  settle();
  // One that starts when it is too late to go back to spot, one that looks for it.
  for (const int waits : {16, 10}) {
    pass(Duration::hours(1));  // the price of spot falls again
    settle();
    std::vector<TaskId> others;
    for (const char* name : {"left", "right"}) {
      others.push_back(submit(acme, name, whole_device));
      settle();
      start(others.back());
    }
    TaskSpec spec;
    spec.name = "due";
    spec.command = {"/bin/work"};
    spec.request.share = whole_device;
    spec.limit = Duration::hours(2);
    spec.purchase_model = PurchaseModel::spot;
    spec.deadline = now + Duration::hours(3);
    const TaskId due = *TaskId::parse(act(SubmitTask{acme, spec}));
    for (int i = 0; i < waits; ++i) {
      pass(Duration::minutes(5));
      settle();
    }
    for (const TaskId task : others) end(task);
    settle();
    start(due);
    pass(Duration::minutes(5));
    settle();
    end(due);
    settle();
  }
}

void History::moves() {
  SchedulingSettings settings = state_.settings;
  settings.queues.front().discipline = "fifo";
  settings.defrag.moves_per_hour = 10;
  act(SetScheduling{settings});
  RateCard card;
  card.effective_from = now;
  card.on_demand = usd("1");
  Price premium;
  premium.service_class = "premium";
  premium.tiers = {{0, card.on_demand}};
  card.terms.prices = {premium};
  act(PublishRateCard{card});
  act(TopUp{acme, usd("1000"), "cash"});
  std::vector<TaskId> parts;
  for (const std::int64_t share : {600, 600, 300}) {
    parts.push_back(submit(acme, "part", MilliDevice{share}));
    settle();
    start(parts.back());
  }
  end(parts.front());
  TaskSpec whole;
  whole.name = "whole";
  whole.command = {"/bin/work"};
  whole.request.share = whole_device;
  whole.service_class = "premium";
  parts.push_back(*TaskId::parse(act(SubmitTask{acme, whole})));
  settle();
  for (const TaskId task : parts) {
    const Task* mover = state_.find_task(task);
    if (mover == nullptr || mover->state != TaskState::stopping) continue;
    end(task, 143);
    settle();
    start(task);
  }
  start(parts.back());
  pass(Duration::minutes(5));
  for (std::size_t i = 1; i < parts.size(); ++i) end(parts[i]);
  settle();
}

}  // namespace loam::store
