#include "sim/seeds.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <iterator>
#include <map>
#include <optional>

#include "base/random.hpp"
#include "domain/event_codec.hpp"
#include "engine/months.hpp"
#include "engine/queries.hpp"
#include "sim/audited_world.hpp"
#include "sim/workload.hpp"

namespace loam::sim {
namespace {

constexpr Instant start = workload_start;
constexpr Duration drain_step = Duration::minutes(10);
constexpr Duration drain_max = Duration::hours(24 * 60);  // far above what any workload needs
constexpr std::int64_t plenty = 1'000'000'000;

// For the abort handler: what was being simulated.
std::uint64_t seed_now = 0;
std::size_t step_now = 0;

std::string repeat_with(std::uint64_t seed) {
  return "repeat it with: ./dev sim " + std::to_string(seed);
}

void say_seed(int) {
  char text[160];
  const int size = std::snprintf(text, sizeof text,
                                 "aborted while simulating seed %llu, step %zu; repeat it with: "
                                 "./dev sim %llu\n",
                                 static_cast<unsigned long long>(seed_now), step_now,
                                 static_cast<unsigned long long>(seed_now));
  if (size > 0) {
    const auto written = ::write(STDERR_FILENO, text, static_cast<std::size_t>(size));
    static_cast<void>(written);
  }
  std::signal(SIGABRT, SIG_DFL);
}

class SeedRun {
 public:
  SeedRun(std::uint64_t seed, const Workload& plan)
      : seed_(seed), plan_(plan), world_(start, Random(~seed).next()) {
    world_.on_record([this](const Record& record) {
      remember(record);
      const auto* accepted = std::get_if<TaskAccepted>(&record.event);
      if (accepted == nullptr) return;
      const auto [known, fresh] = tasks_.try_emplace(accepted->spec->name, accepted->task);
      if (!fresh) fail("rule 11: the request " + accepted->spec->name + " made two tasks");
    });
  }

  Result<SeedReport> run() {
    set_up();
    for (step_ = 0; step_ < plan_.acts.size() && failure_.empty(); ++step_) {
      step_now = step_;
      const Act& act = plan_.acts[step_];
      retry_until(start + act.at);
      move_to(start + act.at);
      perform(act);
      world_.advance_to(world_.clock().true_now());
      audit();
    }
    if (failure_.empty()) heal();
    if (failure_.empty()) drain();
    if (!failure_.empty()) {
      return Error{ErrorKind::internal, failure_, repeat_with(seed_)};
    }
    return SeedReport{seed_, world_.auditor().tasks_accepted(), world_.auditor().records(),
                      world_.restarts(), engine::digest(world_.state())};
  }

  std::size_t batches() const { return world_.batches(); }

  // What happened last, an event a line; money apart, which follows from the rest.
  std::string last_records() const {
    std::string text;
    for (const Record& record : last_) {
      const EncodedEvent event = encode(record.event);
      text += "\n  " + std::to_string(record.sequence) + " " + to_text(record.at) + " " +
              event.type + " " + event.payload;
    }
    return text;
  }

 private:
  void remember(const Record& record) {
    constexpr std::size_t remembered_max = 40;
    if (std::holds_alternative<TransactionPosted>(record.event) ||
        std::holds_alternative<UsageRated>(record.event)) {
      return;
    }
    if (last_.size() == remembered_max) last_.pop_front();
    last_.push_back(record);
  }

  void fail(const std::string& what) {
    if (!failure_.empty()) return;
    const std::string doing =
        step_ < plan_.acts.size()
            ? std::string(name_of(plan_.acts[step_].kind)) + " at " + to_text(plan_.acts[step_].at)
            : "draining";
    failure_ = "seed " + std::to_string(seed_) + ", step " + std::to_string(step_) + " (" + doing +
               "): " + what;
  }

  void audit() {
    world_.audit();
    if (!world_.broken().empty()) fail(world_.broken());
  }

  void move_to(Instant when) {
    if (when > world_.clock().true_now()) world_.advance_to(when);
  }

  void set_up() {
    for (const Workload::NodePlan& node : plan_.nodes) {
      world_.ask(AttachNode{node.name, "here", MilliCpu{64'000}, Mebibytes{524'288}});
      for (const DeviceFacts& facts : node.devices) world_.ask(AttachDevice{node.name, facts});
    }
    world_.ask(SetScheduling{plan_.scheduling});
    for (RateCard card : plan_.cards) {
      card.effective_from = world_.clock().now();
      world_.ask(PublishRateCard{card});
    }
    for (const Workload::TenantPlan& tenant : plan_.tenants) {
      world_.ask(CreateTenant{tenant.spec});
      world_.ask(TopUp{TenantId{++tenants_}, tenant.wallet, "set-up"});
    }
    world_.executor().set_faults(plan_.reports);
    audit();
  }

  // A client that got no answer sends the same again.
  void retry_until(Instant when) {
    while (!unanswered_.empty() && unanswered_.begin()->first <= when) {
      const auto [due, act] = *unanswered_.begin();
      unanswered_.erase(unanswered_.begin());
      move_to(due);
      submit(*act);
      audit();
    }
  }

  // What is to run on a reservation asks for a part of one that its tenant has.
  TaskSpec asked_by(const Act& act) const {
    TaskSpec spec = act.spec;
    if (spec.purchase_model != PurchaseModel::reservation || !world_.up()) return spec;
    std::vector<const Reservation*> known;
    for (const auto& [id, book] : world_.state().reservations) {
      const Reservation& reservation = book.reservation;
      if (reservation.tenant.value == act.which + 1 && reservation.ended_at == Instant::never())
        known.push_back(&reservation);
    }
    if (known.empty()) return spec;
    const Reservation& on = *known[static_cast<std::size_t>(act.at.ms) % known.size()];
    const auto part = [&](auto& amount) {
      if (amount) amount->value = std::max<std::int64_t>(1, amount->value * act.amount / 1000);
    };
    spec.reservation = on.id;
    const ResourceRequest by_default;
    spec.request = on.order.request;
    spec.request.device.clear();
    spec.request.cpu = by_default.cpu;
    spec.request.host_memory = by_default.host_memory;
    spec.tariff = on.order.tariff;
    spec.queue = on.order.queue;
    spec.gang = std::min(spec.gang, on.order.gang);
    part(spec.request.share);
    part(spec.request.ce);
    part(spec.request.memory);
    return spec;
  }

  void reserve(const Act& act) {
    const Instant now = world_.clock().now();
    ReservationOrder order;
    order.attribution = act.spec.attribution;
    order.request = act.spec.request;
    order.gang = act.spec.gang;
    order.queue = act.spec.queue;
    if (act.amount > 0) order.from = now + Duration{act.amount};
    order.to = now + Duration{act.amount} + act.spec.limit;
    world_.ask(MakeReservation{TenantId{act.which + 1}, order});
  }

  void submit(const Act& act) {
    const TenantId tenant{act.which + 1};
    const RequestKey key{tenant.text(), act.spec.name, "asked for " + act.spec.name};
    const engine::Answer answer = world_.ask(SubmitTask{tenant, asked_by(act)}, key);
    if (answer.error) {
      unanswered_.emplace(world_.clock().true_now() + Duration::seconds(7), &act);
      return;
    }
    if (answer.reject) {
      const auto made = subjects_.find(act.spec.name);
      if (made != subjects_.end()) fail("rule 11: " + act.spec.name + " was accepted before");
      return;
    }
    const auto [subject, fresh] = subjects_.try_emplace(act.spec.name, answer.subject);
    if (!fresh && subject->second != answer.subject) {
      fail("rule 11: " + act.spec.name + " was " + subject->second + " and is " + answer.subject);
    }
    sent_.try_emplace(act.spec.name, &act);
  }

  std::optional<TaskId> task_of(const Act& act) const {
    const auto found = tasks_.find("c" + std::to_string(act.which));
    return found == tasks_.end() ? std::nullopt : std::optional(found->second);
  }

  void perform(const Act& act) {
    switch (act.kind) {
      case ActKind::submit:
        return submit(act);
      case ActKind::retry:
        if (const auto sent = sent_.find("c" + std::to_string(act.which)); sent != sent_.end()) {
          submit(*sent->second);
        }
        return;
      case ActKind::stop:
        if (const auto task = task_of(act)) world_.ask(StopTask{*task});
        return;
      case ActKind::pause:
        if (const auto task = task_of(act)) world_.ask(PauseTask{*task});
        return;
      case ActKind::resume:
        if (const auto task = task_of(act)) world_.ask(ResumeTask{*task});
        return;
      case ActKind::stale_report:
        return report_stale(act);
      case ActKind::shortfall:
        return report_shortfall(act);
      case ActKind::commit: {
        BuyCommitment order;
        order.tenant = TenantId{act.which + 1};
        // A quarter of them of money, worth about as much.
        if (act.amount % 4 == 0) {
          const Currency currency = plan_.tenants[act.which].spec.currency;
          order.spend = Money(Int128{Money::units_per_one / 1'000'000} * act.amount, currency);
        } else {
          order.ce = MilliCe{act.amount};
        }
        world_.ask(order);
        return;
      }
      case ActKind::pay_out:
        return perform_money(act);
      case ActKind::reverse:
        return reverse_payment(act);
      case ActKind::cancel:
        world_.ask(CancelCommitment{CommitmentId{act.which + 1}, "workload"});
        return;
      case ActKind::reserve:
        return reserve(act);
      case ActKind::unreserve:
        world_.ask(CancelReservation{ReservationId{act.which + 1}, "workload"});
        return;
      default:
        return act.kind >= ActKind::publish_price && act.kind <= ActKind::invoice
                   ? perform_money(act)
                   : perform_fault(act);
    }
  }

  void reverse_payment(const Act& act) {
    if (!world_.up() || world_.state().payments.empty()) return;
    auto at = world_.state().payments.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(act.which % world_.state().payments.size()));
    world_.ask(ReverseTransaction{at->first, "workload"});
  }

  // The last minute of whatever runs; what does not is refused.
  void report_shortfall(const Act& act) {
    if (!world_.up() || world_.state().leases.empty()) return;
    auto at = world_.state().leases.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(act.which % world_.state().leases.size()));
    ReportShortfall report;
    report.lease = at->first;
    report.epoch = at->second.epoch;
    report.to = world_.clock().now();
    report.from = report.to - Duration::minutes(1);
    report.promised = BasisPoints{10'000};
    report.delivered = BasisPoints{act.amount};
    world_.ask(report);
  }

  // An old epoch changes nothing: neither does a lease that was never given out.
  void report_stale(const Act& act) {
    const auto task = task_of(act);
    if (!task || !world_.up()) return;
    const Task* alive = world_.state().find_task(*task);
    if (alive == nullptr || alive->leases.empty()) return;
    ReportEnded report;
    report.lease = alive->leases.front();
    report.epoch = Epoch{alive->epoch.value - 1};
    report.ended_at = world_.clock().now();
    const engine::Answer answer = world_.ask(report);
    if (answer.ok()) fail("rule 4: a report of an old epoch was taken for " + task->text());
  }

  void perform_money(const Act& act) {
    const TenantId tenant{act.which + 1};
    const Currency currency = plan_.tenants[act.which].spec.currency;
    const Money amount = Money(Int128{Money::units_per_one / 1000} * act.amount, currency);
    if (act.kind == ActKind::top_up) world_.ask(TopUp{tenant, amount, "workload"});
    if (act.kind == ActKind::pay_out) world_.ask(PayOut{tenant, amount, "workload"});
    if (act.kind == ActKind::invoice) {
      // Half of them for the month that the workload may see the end of.
      std::optional<Instant> month;
      if (act.amount % 2 == 0 && world_.up())
        month = engine::month_end(world_.state(), tenant, start);
      world_.ask(IssueInvoice{tenant, month});
    }
    if (act.kind == ActKind::publish_price) {
      RateCard card;
      card.currency = currency;
      card.on_demand = amount.times_ratio(1, 250, Rounding::down);
      sell_classes(card);
      card.effective_from = world_.clock().now() + Duration{act.amount * 40};
      world_.ask(PublishRateCard{card});
    }
  }

  void perform_fault(const Act& act) {
    const DeviceId device{act.which + 1};
    switch (act.kind) {
      case ActKind::drain:
      case ActKind::undrain:
        world_.ask(DrainDevice{device, act.kind == ActKind::drain});
        return;
      case ActKind::lose:
        lost_.insert(device);
        return world_.report_health(device, DeviceHealth::lost, world_.clock().now(), "it died");
      case ActKind::rejoin:
        if (lost_.erase(device) == 0) return;
        return world_.report_health(device, DeviceHealth::healthy, world_.clock().now(), "back");
      case ActKind::kill:
        if (!world_.up()) return;
        world_.kill();
        world_.start();
        return world_.check_replay();
      case ActKind::down:
        if (world_.up()) world_.kill();
        return;
      case ActKind::up:
        if (!world_.up()) world_.start();
        return;
      case ActKind::kill_before_effects:
        return world_.die_before_effects();
      case ActKind::tear:
        return world_.journal().tear_next(static_cast<std::size_t>(act.amount));
      case ActKind::journal_full:
      case ActKind::journal_ok:
        return world_.journal().set_full(act.kind == ActKind::journal_full);
      case ActKind::step_clock:
        return world_.clock().step(Duration{act.amount});
      case ActKind::snapshot:
        if (world_.up()) world_.journal().keep_snapshot(world_.state());
        return;
      default:
        return;
    }
  }

  // What an operator does who gets no answer: a fault armed before the healing (a torn append) may
  // still end the daemon under the command.
  void insist(const Command& command) {
    constexpr int tries_max = 10;
    for (int i = 0; i < tries_max; ++i) {
      if (!world_.up()) world_.start();
      const engine::Answer answer = world_.ask(command);
      if (answer.ok() || answer.reject) return;
    }
  }

  void heal() {
    step_ = plan_.acts.size();
    world_.journal().set_full(false);
    world_.executor().set_faults({});
    if (!world_.up()) world_.start();
    retry_until(world_.clock().true_now() + Duration::minutes(1));
    for (const Device& device : std::vector<Device>(world_.state().devices)) {
      world_.report_health(device.id, DeviceHealth::healthy, world_.clock().now(), "healed");
      insist(DrainDevice{device.id, false});
    }
    for (std::size_t i = 0; i < plan_.tenants.size(); ++i) {
      // As it is now: a torn journal may have forgotten a change of the plan's.
      TenantSpec spec = i < world_.state().tenants.size() ? world_.state().tenants[i].spec
                                                          : plan_.tenants[i].spec;
      spec.quota = {};
      insist(ChangeTenant{TenantId{i + 1}, spec});
      insist(TopUp{TenantId{i + 1}, Money(Int128{Money::units_per_one} * plenty, spec.currency),
                   "healed"});
    }
    audit();
  }

  void drain() {
    const Instant give_up = world_.clock().true_now() + drain_max;
    while (failure_.empty() && !world_.state().tasks.empty()) {
      for (const auto& [name, id] : tasks_) {
        const Task* task = world_.state().find_task(id);
        if (task == nullptr || task->state != TaskState::paused) continue;
        // What is no longer sold, or whose reservation is over, is gone on with on demand.
        const bool reserved = task->spec->reservation.valid();
        const auto answer = world_.ask(ResumeTask{id});
        if (answer.reject && (reserved || answer.reject->code == RejectCode::not_sold))
          world_.ask(ResumeTask{id, PurchaseModel::on_demand});
      }
      world_.advance_to(world_.clock().true_now() + drain_step);
      audit();
      world_.auditor().check_nothing_idles();
      if (world_.clock().true_now() > give_up) return fail(why_not_drained());
    }
    while (failure_.empty() && !world_.state().reservation_dues.empty()) {
      world_.advance_to(world_.clock().true_now() + drain_step);
      audit();
      if (world_.clock().true_now() > give_up)
        return fail("rule 14: nothing runs any more and reservations do not end");
    }
    world_.advance_to(world_.clock().true_now() + drain_step);
    for (std::size_t i = 0; i < plan_.tenants.size(); ++i) {
      world_.ask(IssueInvoice{TenantId{i + 1}});
    }
    world_.auditor().check_drained();
    world_.check_nodes();
    world_.check_notices();
    world_.check_replay();
    audit();
  }

  std::string why_not_drained() {
    const Task& task = world_.state().tasks.begin()->second;
    const std::string why = task.state == TaskState::waiting
                                ? engine::why_waits(world_.state(), task).words
                                : "in state " + std::to_string(static_cast<int>(task.state));
    return "rule 3: nothing is broken any more and " + task.id.text() + " (" + task.spec->name +
           ") still does not end: " + why + "; " +
           std::to_string(world_.state().scheduler.waiting()) + " waiting";
  }

  std::uint64_t seed_;
  const Workload& plan_;
  AuditedWorld world_;
  std::size_t step_ = 0;
  std::uint64_t tenants_ = 0;
  std::map<std::string, TaskId> tasks_;
  std::map<std::string, std::string> subjects_;
  std::map<std::string, const Act*> sent_;
  std::multimap<Instant, const Act*> unanswered_;
  std::set<DeviceId> lost_;
  std::deque<Record> last_;
  std::string failure_;
};

struct PlanRun {
  Result<SeedReport> report;
  std::size_t batches;
  std::string last_records;  // where a rule broke
};

PlanRun run_plan(std::uint64_t seed, const Workload& plan) {
  SeedRun run(seed, plan);
  Result<SeedReport> report = run.run();
  std::string last = report ? std::string() : run.last_records();
  return {std::move(report), run.batches(), std::move(last)};
}

// A workload that breaks a rule, and what was needed to find it.
struct Shrunk {
  Workload plan;
  std::string failure;
  std::size_t runs = 0;
  bool cut_short = false;
};

// A run that does not drain is simulated for weeks, and one whose journal is full for hours reloads
// its state again and again: beyond this the reader waits longer than a shorter workload is worth.
constexpr std::size_t shrinking_runs_max = 300;
constexpr std::size_t shrinking_batches_max = 100'000;

// Leaves out ever smaller pieces of the workload as long as something still breaks (delta
// debugging, Zeller & Hildebrandt 2002, in its simplest form).
Shrunk shrunk(std::uint64_t seed, Workload plan, std::string failure) {
  Shrunk least{std::move(plan), std::move(failure), 0, false};
  std::size_t batches = 0;
  for (std::size_t piece = least.plan.acts.size() / 2; piece > 0; piece /= 2) {
    for (std::size_t at = 0; at < least.plan.acts.size();) {
      if (least.runs == shrinking_runs_max || batches > shrinking_batches_max) {
        least.cut_short = true;
        return least;
      }
      Workload fewer = least.plan;
      const std::size_t end = std::min(at + piece, fewer.acts.size());
      fewer.acts.erase(fewer.acts.begin() + static_cast<std::ptrdiff_t>(at),
                       fewer.acts.begin() + static_cast<std::ptrdiff_t>(end));
      ++least.runs;
      const PlanRun run = run_plan(seed, fewer);
      batches += run.batches;
      if (run.report.ok()) {
        at += piece;
      } else {
        least.plan = std::move(fewer);
        least.failure = run.report.error().message;
      }
    }
  }
  return least;
}

}  // namespace

Result<SeedReport> run_seed(std::uint64_t seed) {
  seed_now = seed;
  const Workload plan = workload_of(seed);
  Result<SeedReport> first = run_plan(seed, plan).report;
  if (first) {
    const Result<SeedReport> second = run_plan(seed, plan).report;
    if (second && second->digest == first->digest && second->records == first->records) {
      return first;
    }
    return Error{ErrorKind::internal,
                 "seed " + std::to_string(seed) + ": rule 12: run twice, it ended differently",
                 repeat_with(seed)};
  }
  const Shrunk least = shrunk(seed, plan, first.error().message);
  const std::string found = least.cut_short
                                ? "a shorter workload that breaks a rule, found before shrinking "
                                  "stopped after " +
                                      std::to_string(least.runs) + " runs ("
                                : "the shortest workload found that breaks a rule (";
  return Error{ErrorKind::internal,
               first.error().message + "\n" + found + least.failure + "):" + described(least.plan) +
                   "\nwhat happened last in it:" + run_plan(seed, least.plan).last_records + "\n",
               repeat_with(seed)};
}

std::string to_text(const SeedsSummary& summary) {
  return std::to_string(summary.seeds) + " seeds: " + std::to_string(summary.tasks) + " tasks, " +
         std::to_string(summary.records) + " records, " + std::to_string(summary.restarts) +
         " restarts; rules 1 to 16 held";
}

Result<SeedsSummary> run_seeds(
    const std::vector<std::uint64_t>& seeds,
    const std::function<void(std::size_t done, std::size_t all)>& progress) {
  std::signal(SIGABRT, say_seed);
  SeedsSummary summary;
  for (const std::uint64_t seed : seeds) {
    LOAM_TRY(report, run_seed(seed));
    ++summary.seeds;
    summary.tasks += report.tasks;
    summary.records += report.records;
    summary.restarts += report.restarts;
    progress(summary.seeds, seeds.size());
  }
  std::signal(SIGABRT, SIG_DFL);
  return summary;
}

}  // namespace loam::sim
