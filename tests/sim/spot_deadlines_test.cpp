// Spot under a deadline in a whole pool: where there is room on demand, or spot that can be made to
// leave, no deadline that could be met is missed, whatever spot does and however often the daemon
// dies. And the auditor sees where a task waits too long for spot (rule 15).
#include <algorithm>
#include <map>

#include "base/random.hpp"
#include "sim/audited_world.hpp"
#include "sim/broken_run.hpp"
#include "sim/program.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;

const Currency usd("USD");
constexpr TenantId firm{1};
constexpr TenantId spot{2};
constexpr TenantId due{3};

void set_up(World& world, int devices) {
  world.ask(AttachNode{"n1", "here", MilliCpu{64'000}, Mebibytes{524'288}});
  for (int i = 0; i < devices; ++i) {
    DeviceFacts facts;
    facts.uuid = "gpu-" + std::to_string(i);
    facts.type = "a100";
    facts.memory = Mebibytes{81'920};
    const MilliCe worth{100'000};
    facts.factors = {worth, worth, worth, worth};
    world.ask(AttachDevice{"n1", facts});
  }
  SchedulingSettings settings;
  // All of spot can be made to leave at any time.
  settings.queues.front().safe = Duration{};
  settings.queues.front().preemptions = 0;
  world.ask(SetScheduling{settings});
  RateCard card;
  card.on_demand = Money(Money::units_per_one, usd);
  card.terms.spot.sold = true;
  card.terms.spot.ceiling = BasisPoints{5'000};  // so that it pays to go back
  card.effective_from = run_start;
  world.ask(PublishRateCard{card});
  for (const char* name : {"firm", "spot", "due"}) {
    TenantSpec tenant;
    tenant.name = name;
    tenant.payment = PaymentMode::postpaid;
    tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000, usd);
    world.ask(CreateTenant{tenant});
  }
}

TaskSpec whole_device_for(Duration limit, const Program& program) {
  TaskSpec spec;
  spec.command = command_of(program);
  spec.request.share = whole_device;
  spec.limit = limit;
  return spec;
}

// What became of the tasks with a deadline.
struct Outcome {
  std::size_t ended = 0;
  std::size_t missed = 0;
  std::size_t at_risk = 0;
  std::size_t turned = 0;
  std::size_t went_back = 0;
  std::size_t only_on_spot = 0;
};

// Four devices; of the two tasks of the tenant firm and the two with a deadline that there are at
// most, each has a place on demand. Spot comes and goes with all the others.
class Pool {
 public:
  Pool(std::uint64_t seed, SpotPolicy policy)
      : random_(Random(seed).next()), policy_(policy), world_(run_start, seed) {
    world_.on_record([this](const Record& record) { hear(record); });
    set_up(world_, 4);
  }

  Outcome live(Duration length) {
    const Instant end = run_start + length;
    while (world_.clock().true_now() < end) {
      step();
      world_.advance_to(world_.clock().true_now() + Duration{random_.between(0, 600'000)});
      world_.audit();
    }
    world_.advance_to(end + Duration::hours(24));
    world_.audit();
    EXPECT_EQ(world_.broken(), "");
    return outcome_;
  }

 private:
  std::int64_t alive(TenantId tenant) const {
    const auto& tasks = world_.state().tasks;
    return std::count_if(tasks.begin(), tasks.end(),
                         [&](const auto& entry) { return entry.second.tenant == tenant; });
  }

  Program program(Duration run) {
    Program made;
    made.run = run;
    made.launch = Duration{random_.between(0, 20'000)};
    made.stop = Duration{random_.between(0, 120'000)};
    return made;
  }

  void step() {
    const Duration limit{random_.between(60'000, 7'200'000)};
    const Duration run{limit.ms * random_.between(300, 1'000) / 1'000};
    switch (random_.below(8)) {
      case 0:
        world_.kill();
        return world_.start();
      case 1:
        return world_.journal().keep_snapshot(world_.state());
      case 2:
      case 3:
        if (alive(firm) < 2) world_.ask(SubmitTask{firm, whole_device_for(limit, program(run))});
        return;
      case 4:
      case 5: {
        if (alive(spot) > 8) return;
        TaskSpec spec = whole_device_for(limit, program(run));
        spec.purchase_model = PurchaseModel::spot;
        world_.ask(SubmitTask{spot, spec});
        return;
      }
      default:
        if (alive(due) < 2) submit_due(whole_device_for(limit, program(run)));
    }
  }

  void submit_due(TaskSpec spec) {
    constexpr Duration changeover = Duration::minutes(3);  // the notice, and a minute by default
    spec.purchase_model = PurchaseModel::spot;
    spec.spot_policy = policy_;
    const std::int64_t slack_ms = random_.chance(300) ? 0 : random_.between(0, 3 * 3'600'000);
    // Rounded to its ticks, it can just be met.
    spec.deadline = world_.clock().now() + spec.limit + changeover + Duration{slack_ms + 2'000};
    const engine::Answer answer = world_.ask(SubmitTask{due, spec});
    EXPECT_TRUE(answer.ok()) << (answer.reject ? answer.reject->message : "unanswered");
  }

  void hear(const Record& record) {
    if (const auto* accepted = std::get_if<TaskAccepted>(&record.event)) {
      if (accepted->tenant == due) deadlines_[accepted->task] = *accepted->spec->deadline;
    } else if (const auto* granted = std::get_if<LeaseGranted>(&record.event)) {
      if (granted->purchase_model != PurchaseModel::spot) off_spot_.insert(granted->task);
    } else if (const auto* noticed = std::get_if<DeadlineNoticed>(&record.event)) {
      ++(noticed->kind == DeadlineNoticeKind::on_demand ? outcome_.turned : outcome_.at_risk);
    } else if (const auto* requeued = std::get_if<TaskRequeued>(&record.event)) {
      outcome_.went_back += requeued->purchase_model == PurchaseModel::spot ? 1 : 0;
    } else if (const auto* finished = std::get_if<TaskFinished>(&record.event)) {
      const auto deadline = deadlines_.find(finished->task);
      if (deadline == deadlines_.end()) return;
      ++outcome_.ended;
      outcome_.missed += record.at > deadline->second ? 1 : 0;
      outcome_.only_on_spot += off_spot_.count(finished->task) == 0 ? 1 : 0;
      deadlines_.erase(deadline);
    }
  }

  Random random_;
  SpotPolicy policy_;
  AuditedWorld world_;
  std::map<TaskId, Instant> deadlines_;
  std::set<TaskId> off_spot_;
  Outcome outcome_;
};

TEST(SpotDeadlines, NoneThatCouldBeMetIsMissedWhileThereIsRoomOnDemand) {
  for (const SpotPolicy policy :
       {SpotPolicy::reserve, SpotPolicy::uniform_progress, SpotPolicy::greedy}) {
    Outcome all;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Outcome one = Pool(seed, policy).live(Duration::hours(24));
      ASSERT_EQ(one.missed, 0U) << "seed " << seed;
      ASSERT_EQ(one.at_risk, 0U) << "seed " << seed;
      all.ended += one.ended;
      all.turned += one.turned;
      all.went_back += one.went_back;
      all.only_on_spot += one.only_on_spot;
    }
    // Else nothing was tried.
    EXPECT_GT(all.ended, 100U);
    EXPECT_GT(all.turned, 20U);
    EXPECT_GT(all.only_on_spot, 20U);
    if (policy == SpotPolicy::greedy) {
      EXPECT_EQ(all.went_back, 0U) << "greedy stays on demand";
    } else {
      EXPECT_GT(all.went_back, 0U);
    }
  }
}

// One device, held by spot without a deadline; a task with one is turned and ends in time.
std::vector<Record> good_run() {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  set_up(world, 1);
  Program program;
  program.run = Duration::hours(8);
  TaskSpec other = whole_device_for(Duration::hours(10), program);
  other.purchase_model = PurchaseModel::spot;
  world.ask(SubmitTask{spot, other});
  program.run = Duration::hours(1);
  TaskSpec with_deadline = whole_device_for(Duration::hours(2), program);
  with_deadline.purchase_model = PurchaseModel::spot;
  with_deadline.deadline = run_start + Duration::hours(4);
  world.ask(SubmitTask{due, with_deadline});
  world.advance_to(run_start + Duration::hours(24));
  return records;
}

TEST(AuditorOfDeadlines, FindsNothingInARunThatIsRight) {
  EXPECT_EQ(verdict_on(good_run()), "");
}

TEST(AuditorOfDeadlines, Rule15ADeadlineThatCannotBeMet) {
  EXPECT_THAT(
      verdict_after<SpotPlanned>(good_run(), [](SpotPlanned& e) { e.changeover += 3 * 3'600; }),
      HasSubstr("rule 15: t2 was accepted, and cannot meet its deadline"));
}

TEST(AuditorOfDeadlines, Rule15ANoticeThatIsNoneOfTheTasks) {
  EXPECT_THAT(
      verdict_after<DeadlineNoticed>(good_run(), [](DeadlineNoticed& e) { e.task = TaskId{1}; }),
      HasSubstr("rule 15: t1 is told of a deadline that is none of its"));
  EXPECT_THAT(verdict_after<DeadlineNoticed>(
                  good_run(), [](DeadlineNoticed& e) { e.kind = DeadlineNoticeKind::at_risk; }),
              HasSubstr("rule 15: t2 is told of a deadline that is none of its"));
}

// The daemon goes on deciding, and not that.
TEST(AuditorOfDeadlines, Rule15AWaitForSpotThatIsTooLong) {
  const std::vector<Record> records = good_run();
  const auto turned = std::find_if(records.begin(), records.end(), [](const Record& record) {
    return std::holds_alternative<DeadlineNoticed>(record.event);
  });
  ASSERT_NE(turned, records.end());
  // Two hours of work and three minutes for the change.
  const Instant latest = run_start + Duration::minutes(4 * 60 - 2 * 60 - 3);
  ASSERT_LT(turned->at, latest);
  for (const Duration late : {Duration::minutes(1), Duration::minutes(2)}) {
    Auditor auditor;
    std::for_each(records.begin(), turned, [&](const Record& record) { auditor.hear(record); });
    Record other = *turned;
    other.at = latest + late;
    other.event = RequestsForgotten{run_start - Duration::hours(24)};
    auditor.hear(other);
    auditor.compare({});
    const std::string too_long = "t2 waits for spot, and only on demand would meet its deadline";
    if (late > Duration::minutes(1)) {
      EXPECT_THAT(auditor.broken(), HasSubstr("rule 15: " + too_long));
    } else {
      EXPECT_THAT(auditor.broken(), ::testing::Not(HasSubstr(too_long)));
    }
  }
}

}  // namespace
}  // namespace loam::sim
