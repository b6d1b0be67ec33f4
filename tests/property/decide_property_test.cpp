// decide() is a function: it changes nothing, and asked twice it answers the same. Replays agree,
// also from every prefix through a snapshot.
#include <gtest/gtest.h>

#include "engine/decide.hpp"
#include "engine/snapshot.hpp"
#include "sim/workload.hpp"
#include "sim/world.hpp"

namespace loam::engine {
namespace {

constexpr Instant begin_at{1'767'225'600'000};

// The commands of a workload's clients and operators against a lone state, as a fresh daemon
// without nodes would get them: tasks start and are stopped, and the clock brings what is due.
std::vector<Command> commands_of(const sim::Workload& plan) {
  std::vector<Command> commands;
  for (const auto& node : plan.nodes) {
    commands.push_back(AttachNode{node.name, "here", {}, {}});
    for (const DeviceFacts& facts : node.devices) {
      commands.push_back(AttachDevice{node.name, facts});
    }
  }
  for (RateCard card : plan.cards) {
    card.effective_from = begin_at;
    commands.push_back(PublishRateCard{card});
  }
  std::uint64_t tenants = 0;
  for (const auto& tenant : plan.tenants) {
    commands.push_back(CreateTenant{tenant.spec});
    commands.push_back(TopUp{TenantId{++tenants}, tenant.wallet, ""});
  }
  for (const sim::Act& act : plan.acts) {
    const TaskId task{act.which + 1};
    if (act.kind == sim::ActKind::submit) {
      commands.push_back(SubmitTask{TenantId{act.which + 1}, act.spec});
    }
    if (act.kind == sim::ActKind::stop) commands.push_back(StopTask{task});
    if (act.kind == sim::ActKind::pause) commands.push_back(PauseTask{task});
    if (act.kind == sim::ActKind::resume) commands.push_back(ResumeTask{task});
    if (act.kind == sim::ActKind::invoice) commands.push_back(IssueInvoice{TenantId{1}});
    // A node that starts and ends the attempts of the first leases.
    commands.push_back(ReportStarted{LeaseId{act.which + 1}, Epoch{1}, begin_at});
    if (act.kind == sim::ActKind::retry) {
      ReportEnded ended;
      ended.lease = LeaseId{act.which + 1};
      ended.epoch = Epoch{1};
      ended.started_at = begin_at;
      ended.ended_at = begin_at + act.at;
      commands.push_back(ended);
    }
    commands.push_back(SchedulePass{});
    commands.push_back(TimePassed{});
  }
  return commands;
}

bool same(const Decision& a, const Decision& b) {
  if (a.subject != b.subject || a.reject != b.reject || a.events.size() != b.events.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.events.size(); ++i) {
    if (a.events[i].index() != b.events[i].index()) return false;
  }
  return true;
}

TEST(DecideProperty, ChangesNothingAndAnswersTwiceTheSame) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    State state;
    State replayed;
    State from_snapshot;
    Instant now = begin_at;
    std::size_t step = 0;
    for (const Command& command : commands_of(sim::workload_of(seed))) {
      now = now + Duration::minutes(2);
      const bool look = ++step % 16 == 0;  // digests cost more than decisions
      const std::uint64_t before = look ? digest(state) : 0;
      const Decision first = decide(state, now, command);
      const Decision second = decide(state, now, command);
      ASSERT_TRUE(same(first, second)) << "seed " << seed << ", step " << step;
      if (look) {
        ASSERT_EQ(digest(state), before) << "seed " << seed << ", step " << step;
      }
      ASSERT_TRUE(!first.reject || first.events.empty()) << "seed " << seed << ", step " << step;
      for (std::size_t i = 0; i < first.events.size(); ++i) {
        const Record record{state.sequence + 1, now, {"test", ""}, first.events[i]};
        evolve(state, record);
        evolve(from_snapshot, record);
        evolve(replayed, {record.sequence, now, {"test", ""}, second.events[i]});
      }
      if (look) from_snapshot = state_of(image_of(from_snapshot));
    }
    ASSERT_EQ(digest(state), digest(replayed)) << "seed " << seed;
    ASSERT_EQ(digest(state), digest(from_snapshot)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace loam::engine
