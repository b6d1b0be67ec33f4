// Rule 14, and what of rule 9 speaks of reservations: each test breaks one event of a run that is
// right, and wants it found.
#include "sim/audited_world.hpp"
#include "sim/broken_run.hpp"
#include "sim/program.hpp"

namespace loam::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Duration hour = Duration::hours(1);
constexpr TenantId acme{1};
constexpr ReservationId first{1};

Money dollars(std::int64_t amount) {
  return {Int128{Money::units_per_one} * amount, Currency("USD")};
}

void set_up_pool(World& world) {
  DeviceFacts facts;
  facts.type = "a100";
  facts.memory = Mebibytes{80 * 1024};
  facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
  world.ask(AttachNode{"n1", "here", {}, {}});
  for (const char* uuid : {"gpu-0", "gpu-1"}) {
    facts.uuid = uuid;
    world.ask(AttachDevice{"n1", facts});
  }
  RateCard card;
  card.on_demand = dollars(1);
  card.effective_from = run_start;
  card.terms.spot.sold = true;
  Price reservation;
  reservation.purchase_model = PurchaseModel::reservation;
  reservation.tiers = {{0, dollars(3)}};
  card.terms.prices = {reservation};
  card.terms.reservation_unused = BasisPoints{5'000};
  world.ask(PublishRateCard{card});
  TenantSpec tenant;
  tenant.name = "acme";
  world.ask(CreateTenant{tenant});
  world.ask(TopUp{acme, dollars(100'000), ""});
}

void reserve(World& world, MilliDevice share, Duration from, Duration to) {
  ReservationOrder order;
  order.request.share = share;
  order.request.device = "n1/0";
  order.from = run_start + from;
  order.to = run_start + to;
  world.ask(MakeReservation{acme, order});
}

void submit(World& world, MilliDevice share, Duration run, Duration limit, PurchaseModel model) {
  Program program;
  program.run = run;
  TaskSpec spec;
  spec.command = command_of(program);
  spec.request.share = share;
  spec.limit = limit;
  spec.purchase_model = model;
  if (model == PurchaseModel::reservation) spec.reservation = first;
  if (model != PurchaseModel::reservation) spec.request.device = "n1/0";
  world.ask(SubmitTask{acme, spec});
}

// A task before it, t1, and one on it, t2; then another reservation of what is left of the device.
std::vector<Record> reserved_run() {
  World world(run_start, 1);
  std::vector<Record> records;
  world.on_record([&](const Record& record) { records.push_back(record); });
  set_up_pool(world);
  reserve(world, MilliDevice{600}, hour, hour * 3);
  reserve(world, MilliDevice{400}, hour * 4, hour * 5);
  submit(world, whole_device, Duration::minutes(20), Duration::minutes(40),
         PurchaseModel::on_demand);
  world.advance_to(run_start + hour);
  submit(world, MilliDevice{300}, Duration::minutes(50), hour, PurchaseModel::reservation);
  world.advance_to(run_start + hour * 6);
  world.ask(IssueInvoice{acme});
  return records;
}

template <class E>
std::string after_reserving(const std::function<void(E&)>& change, std::size_t skip = 0) {
  return verdict_after<E>(reserved_run(), change, skip);
}

PromisedSlice& slice_of(Reservation& reservation) {
  return reservation.members.front().slices.front();
}

TEST(AuditorOfReservations, FindsNothingInARunThatIsRight) {
  EXPECT_EQ(verdict_on(reserved_run()), "");
}

TEST(AuditorOfReservations, OneThatCannotBe) {
  EXPECT_THAT(after_reserving<ReservationMade>([](auto& e) {
                e.reservation.order.from = run_start - hour;
                e.reservation.charged_to = e.reservation.order.from;
              }),
              HasSubstr("rule 14: rsv-1 begins in the past"));
  EXPECT_THAT(after_reserving<ReservationMade>([](auto& e) { e.reservation.id = first; }, 1),
              HasSubstr("was given out before"));
  EXPECT_THAT(
      after_reserving<ReservationMade>([](auto& e) { e.reservation.charged_to = run_start; }),
      HasSubstr("was charged, or ended, before it was made"));
  EXPECT_THAT(after_reserving<ReservationMade>([](auto& e) { e.reservation.members.clear(); }),
              HasSubstr("has a place for some of its members"));
}

TEST(AuditorOfReservations, TwoOfOneTimeOnOnePlace) {
  const auto at_once = [](MilliDevice share) {
    return after_reserving<ReservationMade>(
        [&](auto& e) {
          e.reservation.order.from = e.reservation.charged_to = run_start + hour * 2;
          slice_of(e.reservation).share = share;
        },
        1);
  };
  EXPECT_THAT(at_once(MilliDevice{500}), StartsWith("rule 14: more is reserved of n1/0"));
  // What fits is charged for another time than it was made for.
  EXPECT_THAT(at_once(MilliDevice{400}), HasSubstr("leaves a gap, or is charged twice"));
}

TEST(AuditorOfReservations, OthersOnWhatIsReserved) {
  // One that may run for three hours would still be there.
  EXPECT_THAT(after_reserving<TaskAccepted>([](auto& e) {
                TaskSpec spec = *e.spec;
                spec.limit = hour * 3;
                e.spec = std::make_shared<const TaskSpec>(std::move(spec));
              }),
              HasSubstr("rule 14: others have 1 and"));
  // t2 as if it were on demand, while all but what it takes is reserved.
  std::vector<Record> records = reserved_run();
  for (Record& record : records) {
    if (auto* accepted = std::get_if<TaskAccepted>(&record.event);
        accepted != nullptr && accepted->task == TaskId{2}) {
      TaskSpec spec = *accepted->spec;
      spec.reservation = {};
      spec.purchase_model = PurchaseModel::on_demand;
      accepted->spec = std::make_shared<const TaskSpec>(std::move(spec));
    }
    auto* granted = std::get_if<LeaseGranted>(&record.event);
    if (granted == nullptr || granted->task != TaskId{2}) continue;
    granted->purchase_model = PurchaseModel::on_demand;
    granted->slices.front().share = MilliDevice{500};
  }
  EXPECT_THAT(verdict_on(records), StartsWith("rule 14: others have 0.5 and"));
}

TEST(AuditorOfReservations, ALeaseBesideWhatItNames) {
  EXPECT_THAT(after_reserving<LeaseGranted>([](auto& e) { e.slices[0].device = DeviceId{2}; }, 1),
              HasSubstr("rule 14: l2 is beside what rsv-1 has"));
  EXPECT_THAT(
      after_reserving<LeaseGranted>([](auto& e) { e.slices[0].share = MilliDevice{700}; }, 1),
      HasSubstr("is beside what rsv-1 has"));
  EXPECT_THAT(after_reserving<LeaseGranted>(
                  [](auto& e) { e.purchase_model = PurchaseModel::on_demand; }, 1),
              HasSubstr("is bought as a reservation and is on none, or the other way round"));
  EXPECT_THAT(after_reserving<ReservationMade>([](auto& e) {
                e.reservation.order.from = e.reservation.charged_to = run_start + hour * 2;
              }),
              HasSubstr("is not its tenant's, or not in force"));
}

TEST(AuditorOfReservations, AnHourThatIsChargedWrong) {
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.from = e.from + Duration{1}; }),
              HasSubstr("leaves a gap, or is charged twice"));
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.to = e.to - Duration{1}; }),
              HasSubstr("is no whole hour of it, nor the rest"));
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.to = e.to + hour; }),
              HasSubstr("is charged before it is over"));
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.lines[0].milli_ce_ms += 1; }),
              HasSubstr("is not charged for what was unused"));
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.lines.clear(); }),
              HasSubstr("is not charged for what was unused"));
  EXPECT_THAT(
      after_reserving<ReservationCharged>([](auto& e) { e.lines[0].list += e.lines[0].list; }),
      HasSubstr("is not what the time is worth"));
  EXPECT_THAT(
      after_reserving<ReservationCharged>([](auto& e) { e.lines[0].key.unit_price = dollars(2); }),
      HasSubstr("which no card has for it"));
  EXPECT_THAT(after_reserving<ReservationCharged>(
                  [](auto& e) { e.lines[0].key.kind = InvoiceLineKind::fee; }),
              HasSubstr("has a line of another kind"));
  // Another net than was posted shows on the invoice.
  EXPECT_THAT(after_reserving<ReservationCharged>([](auto& e) { e.lines[0].net += dollars(1); }),
              StartsWith("rule 9"));
}

TEST(AuditorOfReservations, AnEndWithoutReason) {
  EXPECT_THAT(after_reserving<ReservationEnded>([](auto& e) { e.at = e.at - Duration{1}; }),
              HasSubstr("ends at"));
  EXPECT_THAT(after_reserving<ReservationEnded>([](auto& e) { e.end = ReservationEnd::cancelled; }),
              HasSubstr("without reason"));
  EXPECT_THAT(after_reserving<ReservationEnded>([](auto& e) { e.reservation = first; }, 1),
              HasSubstr("rsv-1 ends twice"));
}

TEST(AuditorOfReservations, MoneyThatIsHeldForNobodyOrNotThere) {
  EXPECT_THAT(after_reserving<ReservationHeld>([](auto& e) { e.held += dollars(1); }),
              HasSubstr("rule 9: rsv-1 is said to hold"));
  std::vector<Record> records = reserved_run();
  std::size_t made = 0;
  while (!std::holds_alternative<ReservationMade>(records[made].event)) ++made;
  auto& hold = std::get<TransactionPosted>(records[made + 1].event).transaction;
  ASSERT_EQ(hold.kind, TransactionKind::hold);
  for (Posting& posting : hold.postings)  // balanced, and too little
    posting.amount = posting.amount.times_ratio(1, 100, Rounding::down);
  EXPECT_THAT(verdict_on(records), StartsWith("rule 9"));
  records = reserved_run();
  std::swap(records[made].event, records[made + 1].event);
  EXPECT_THAT(verdict_on(records), HasSubstr("sets money aside for nobody"));
}

Seen seen_of(const engine::State& state) {
  Seen seen;
  seen.devices = state.devices;
  seen.tenants = state.tenants;
  for (const auto& [id, task] : state.tasks) seen.tasks.push_back(task);
  for (const auto& [id, lease] : state.leases) seen.leases.push_back(lease);
  for (const auto& [id, book] : state.reservations) seen.reservations.push_back(book.reservation);
  seen.balances = state.accounts.balances();
  return seen;
}

TEST(AuditorOfReservations, TheEnginesBooksSayAnother) {
  AuditedWorld world(run_start, 1);
  set_up_pool(world);
  reserve(world, MilliDevice{600}, hour, hour * 3);
  Seen seen = seen_of(world.state());
  world.auditor().compare(seen);
  ASSERT_EQ(world.broken(), "");
  Auditor held = world.auditor();
  seen.reservations.front().held += dollars(1);
  held.compare(seen);
  EXPECT_THAT(held.broken(), HasSubstr("rule 9: rsv-1 holds"));
  seen = seen_of(world.state());
  seen.reservations.front().charged_to = run_start;
  world.auditor().compare(seen);
  EXPECT_THAT(world.broken(), HasSubstr("rule 14: rsv-1 is another in the engine's books"));
}

// Nobody decided anything for a while: what happens next finds spot that should have left.
TEST(AuditorOfReservations, SpotThatDoesNotLeave) {
  AuditedWorld world(run_start, 1);
  set_up_pool(world);
  reserve(world, MilliDevice{600}, hour, hour * 3);
  submit(world, whole_device, hour * 4, hour * 5, PurchaseModel::spot);
  world.advance_to(run_start + Duration::minutes(57));
  ASSERT_EQ(world.state().leases.size(), 1U);
  world.audit();
  ASSERT_EQ(world.broken(), "");
  Record record;
  record.sequence = world.state().sequence + 1;
  record.at = run_start + hour + Duration::minutes(2);
  record.event = HoldsReviewed{};
  world.auditor().hear(record);
  world.auditor().compare(seen_of(world.state()));
  EXPECT_THAT(world.broken(), HasSubstr("rule 14: others have 1 and"));
}

}  // namespace
}  // namespace loam::sim
