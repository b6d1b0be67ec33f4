#include "history.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace loam::store {

TestFolder::TestFolder() {
  // In memory where there is such a place: thousands of syncs are not what is tested here.
  std::string pattern = "/dev/shm/loam-store-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    pattern = std::string(LOAM_BUILD_DIR) + "/tests/store-XXXXXX";
    LOAM_ASSERT(mkdtemp(pattern.data()) != nullptr);
  }
  path_ = pattern;
}
TestFolder::~TestFolder() {
  std::error_code fault;
  std::filesystem::remove_all(path_, fault);
}

Money usd(std::string_view amount) {
  return *Money::parse(amount, Currency("USD"));
}

std::string History::act(const Command& command, const RequestKey& key) {
  engine::Decision decision = engine::decide(state_, now, command, key);
  EXPECT_FALSE(decision.reject) << decision.reject->message;
  for (Event& event : decision.events) {
    Record record{state_.sequence + 1, now, Actor{"socket", "uid:1000"}, std::move(event)};
    engine::evolve(state_, record);
    records_.push_back(std::move(record));
  }
  return decision.subject;
}

void History::settle() {
  std::uint64_t before = 0;
  do {
    before = state_.sequence;
    act(EndLost{});
    act(TimePassed{});
    act(SchedulePass{});
  } while (state_.sequence != before);
}

std::vector<Record> History::take() {
  return std::exchange(records_, {});
}

void History::found_region() {
  act(AttachNode{"n1", "lab", MilliCpu{16'000}, Mebibytes{65'536}});
  for (const char* uuid : {"GPU-1", "GPU-2"}) {
    DeviceFacts facts;
    facts.uuid = uuid;
    facts.type = "H100-SXM";
    facts.driver_version = "1.0";
    facts.memory = Mebibytes{81'920};
    facts.factors_source = "catalogue";
    facts.factors = {MilliCe{228'000}, MilliCe{230'000}, MilliCe{231'000}, MilliCe{164'000}};
    act(AttachDevice{"n1", facts});
  }
  RateCard card;
  card.effective_from = now;
  card.on_demand = usd("0.02");
  act(PublishRateCard{card});
  for (const char* name : {"acme", "beta"}) {
    TenantSpec spec;
    spec.name = name;
    if (spec.name == "beta") spec.discount = BasisPoints{1000};
    act(CreateTenant{spec});
  }
  act(TopUp{acme, usd("100000"), "bank transfer"});
  act(TopUp{beta, usd("100000"), "bank transfer"});
}

TaskId History::submit(TenantId tenant, const std::string& name, MilliDevice share) {
  TaskSpec spec;
  spec.name = name;
  spec.command = {"/usr/bin/train", "--steps", "100 \"quoted\"\n\xc3\xa9"};
  spec.request.share = share;
  spec.attribution.project = "vision";
  spec.attribution.model = "resnet";
  spec.attribution.tags = {{"team", "blue"}};
  spec.limit = Duration::hours(24);
  return *TaskId::parse(act(SubmitTask{tenant, spec}));
}

LeaseId History::lease_of(TaskId task) const {
  const Task* found = state_.find_task(task);
  return found != nullptr && !found->leases.empty() ? found->leases.front() : LeaseId{};
}

void History::start(TaskId task) {
  const LeaseId lease = lease_of(task);
  ASSERT_TRUE(lease.valid());
  act(ReportStarted{lease, state_.find_lease(lease)->epoch, now, false});
}

void History::end(TaskId task, std::int64_t exit_code) {
  const LeaseId lease = lease_of(task);
  ASSERT_TRUE(lease.valid());
  ReportEnded report;
  report.lease = lease;
  report.epoch = state_.find_lease(lease)->epoch;
  report.started_at = state_.find_lease(lease)->started_at;
  report.ended_at = now;
  report.exit_code = exit_code;
  report.reason = exit_code == 0 ? "" : "exit status " + std::to_string(exit_code);
  report.device_time = Duration::seconds(3);
  report.memory_peak = Mebibytes{512};
  act(report);
}

void History::fail_to_start(TaskId task) {
  const LeaseId lease = lease_of(task);
  ASSERT_TRUE(lease.valid());
  ReportEnded report;
  report.lease = lease;
  report.epoch = state_.find_lease(lease)->epoch;
  report.end = AttemptEnd::unable;
  report.ended_at = now;
  report.reason = "no space left on device";
  act(report);
}

void History::scheduling() {
  SchedulingSettings settings;
  settings.queues.front().safe = Duration{0};
  settings.classes.push_back({"premium", 10, Duration::minutes(1), {}});
  settings.weights.push_back({"acme", "vision", 3});
  act(SetScheduling{settings});
  const auto sell_at = [&](const char* price) {
    RateCard card;
    card.effective_from = now;
    card.on_demand = usd(price);
    Price premium;
    premium.service_class = "premium";
    premium.tiers = {{0, card.on_demand}};
    card.terms.prices = {premium};
    act(PublishRateCard{card});
  };
  sell_at("0.02");
  std::vector<TaskId> low;
  for (const char* name : {"low-one", "low-two"}) {
    low.push_back(submit(acme, name, whole_device));
    settle();
    start(low.back());
  }
  // A higher class may have the place, but cannot pay when it is free: prices have risen.
  TenantSpec tenant;
  tenant.name = "gamma";
  act(CreateTenant{tenant});
  act(TopUp{TenantId{3}, usd("6"), "cash"});
  TaskSpec high;
  high.name = "high";
  high.command = {"/bin/work"};
  high.request.share = whole_device;
  high.service_class = "premium";
  const TaskId poor = *TaskId::parse(act(SubmitTask{TenantId{3}, high}));
  pass(Duration::seconds(1));
  settle();
  sell_at("20");
  pass(Duration::seconds(1));
  for (const TaskId task : low) {
    const Task* alive = state_.find_task(task);
    if (alive->state == TaskState::stopping) end(task, 143);
  }
  settle();
  pass(Duration::minutes(2));  // longer than its class promises
  settle();
  act(StopTask{poor});
  for (const TaskId task : low) act(StopTask{task});
  pass(Duration::seconds(1));
  for (const TaskId task : low) {
    if (lease_of(task).valid()) end(task, 143);
  }
  // A node that is not able to start what it is given.
  const TaskId unlucky = submit(acme, "unlucky");
  for (int i = 0; i < 3; ++i) {
    settle();
    fail_to_start(unlucky);
    pass(Duration::seconds(20));
  }
  pass(Duration::minutes(6));
  settle();
  start(unlucky);
  pass(Duration::seconds(1));
  end(unlucky);
}

TaskId History::whole_task(TenantId tenant, const std::string& name, Duration run) {
  const TaskId task = submit(tenant, name);
  settle();
  pass(Duration{40});
  start(task);
  // Metering is hourly: the clock is looked at at least that often.
  while (run > Duration::minutes(30)) {
    pass(Duration::minutes(30));
    run = run - Duration::minutes(30);
    settle();
  }
  pass(run);
  end(task);
  settle();
  return task;
}

void History::everything() {
  found_region();
  whole_task(acme, "hours", Duration::minutes(150));
  // Paused and resumed, then stopped by its tenant.
  const TaskId paused = submit(beta, "paused");
  settle();
  start(paused);
  pass(Duration::seconds(90));
  act(PauseTask{paused});
  pass(Duration::seconds(1));
  end(paused, 143);
  pass(Duration::minutes(5));
  act(ResumeTask{paused});
  settle();
  start(paused);
  pass(Duration::seconds(30));
  act(StopTask{paused});
  pass(Duration{250});
  end(paused, 143);
  // A device is lost under a task that may restart; it goes on elsewhere and fails there.
  TaskSpec spec;
  spec.name = "survivor";
  spec.command = {"/bin/work"};
  spec.request.ce = MilliCe{50'000};
  spec.restarts_max = 1;
  const TaskId survivor = *TaskId::parse(
      act(SubmitTask{acme, spec}, RequestKey{"socket:uid:1000", "key-1", "fingerprint"}));
  settle();
  start(survivor);
  pass(Duration::minutes(1));
  const DeviceId lost = state_.find_lease(lease_of(survivor))->slices.front().device;
  act(ReportDeviceHealth{lost, DeviceHealth::lost, "fell off the bus", now - Duration{500}});
  settle();
  start(survivor);
  act(DrainDevice{state_.find_lease(lease_of(survivor))->slices.front().device, true});
  pass(Duration::minutes(1));
  end(survivor, 7);
  // A price change, a changed tenant, an invoice, and a day later the key is forgotten.
  TenantSpec changed = state_.tenant(beta).spec;
  changed.discount = BasisPoints{1500};
  changed.quota.tasks = 4;
  act(ChangeTenant{beta, changed});
  act(IssueInvoice{acme});
  pass(Duration::hours(25));
  settle();
  // Everything is well again.
  for (const Device& device : std::vector<Device>(state_.devices)) {
    act(DrainDevice{device.id, false});
    act(ReportDeviceHealth{device.id, DeviceHealth::healthy, "", {}});
  }
}

void History::money() {
  act(CreditInvoice{InvoiceId{1}, usd("0.5"), "goodwill"});
  // A card with everything, a budget that is passed, asked for, approved and removed, and spot.
  Budget budget;
  budget.name = "vision";
  budget.scope = {acme, "vision", std::nullopt, std::nullopt};
  budget.monthly = usd("300");
  budget.channels = {"http://127.0.0.1:9/budget"};
  RateCard card;
  card.on_demand = usd("2");
  card.terms.granularity = Granularity::minute;
  card.terms.windows = {{"day", {}, "", Duration::hours(8), Duration::hours(20)},
                        {"night", {}, "", Duration::hours(20), Duration::hours(8)}};
  Price day;
  day.tariff = Tariff::time_of_day;
  day.window = "day";
  day.tiers = {{0, usd("3")}, {100'000, usd("2.5")}};
  Price night = day;
  night.window = "night";
  night.tiers = {{0, usd("1")}};
  card.terms.prices = {day, night};
  card.terms.taxes = {{"VAT", 190'000}};
  card.terms.spot.sold = true;
  act(PublishRateCard{card});
  settle();
  const TaskId dear = submit(acme, "dear");
  settle();
  start(dear);
  act(SetBudget{budget});
  for (int half_hours = 0; half_hours < 3; ++half_hours) {
    pass(Duration::minutes(30));
    settle();
  }
  end(dear, 0);
  settle();
  act(AnswerBudget{"vision", true, {"ann", now + Duration::hours(24), usd("100000")}});
  settle();
  act(RemoveBudget{"vision"});
  act(IssueInvoice{acme});
}

void History::tokens() {
  RateCard card;
  card.on_demand = usd("2");
  card.terms.taxes = {{"VAT", 190'000}};
  card.terms.tokens = {{"*", usd("0.15"), std::nullopt, usd("0.60")}};
  act(PublishRateCard{card});
  settle();
  now = now + Duration::minutes(1);  // what follows was used under this card
  TokenUse use;
  use.caller = beta;
  use.owner = acme;
  use.project = use.environment = "default";
  use.model = "tiny";
  use.from = now - Duration::minutes(1);
  use.to = now;
  use.requests = 3;
  use.prompt_tokens = 1200;
  use.cached_tokens = 200;
  use.generated_tokens = 300;
  use.tags = {{"team", "red"}};
  use.owner_project = "serving";
  use.owner_tags = {{"team", "green"}};
  act(RecordTokens{"gateway-1", 100, {use}});
  act(RecordTokens{"gateway-1", 100, {use}});
  use.caller = acme;
  act(RecordTokens{"gateway-1", 200, {use}});
  settle();
}

void History::commitments() {
  RateCard card;
  card.on_demand = usd("2");
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, usd("1.30")}};
  card.terms.services.storage = usd("0.1");
  card.terms.services.network = usd("0.02");
  card.terms.prices = {commitment};
  card.terms.taxes = {{"VAT", 190'000}};
  act(PublishRateCard{card});
  settle();
  BuyCommitment order;
  order.tenant = acme;
  order.ce = MilliCe{10'000};
  order.attribution.project = "vision";
  order.attribution.tags = {{"plan", "yearly"}};
  act(order);
  // The wallet reaches for the first month of this one, not for the second.
  order.tenant = beta;
  order.ce = MilliCe{80'000};
  order.until = now + Duration::hours(24 * 60);
  act(order);
  const TaskId covered = submit(acme, "covered");
  settle();
  start(covered);
  pass(Duration::minutes(30));
  act(ReportShortfall{lease_of(covered), state_.find_lease(lease_of(covered))->epoch, 0,
                      now - Duration::minutes(1), now, BasisPoints{10'000}, BasisPoints{7'500}});
  act(ReportServices{lease_of(covered),
                     state_.find_lease(lease_of(covered))->epoch,
                     now,
                     {{1024 * 3'600'000LL, 1 << 30, 1 << 20}, Mebibytes{64}},
                     Duration::minutes(12)});
  for (int half_hours = 0; half_hours < 3; ++half_hours) {
    pass(Duration::minutes(30));
    settle();
  }
  end(covered, 0);
  settle();
  pass(Duration::minutes(70));
  settle();
  pass(Duration::hours(24 * 32));
  settle();
  act(IssueInvoice{acme});
}

void History::payments() {
  pass(Duration::minutes(1));
  RateCard card;
  card.on_demand = usd("2");
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, usd("1.30")}};
  card.terms.prices = {commitment};
  card.terms.taxes = {{"VAT", 190'000}};
  card.terms.lost_work.device_lost = InterruptionRule::free;
  act(PublishRateCard{card});
  settle();
  const TaskId lost = submit(acme, "lost");
  settle();
  start(lost);
  pass(Duration::minutes(30));
  const DeviceId device = state_.find_lease(lease_of(lost))->slices.front().device;
  act(ReportDeviceHealth{device, DeviceHealth::lost, "fell off the bus", now});
  settle();
  act(IssueInvoice{acme});
  act(PayOut{acme, usd("1.5"), "what is left"});
  act(ReverseTransaction{TransactionId{2}, "typed twice"});
  BuyCommitment order;
  order.tenant = acme;
  order.ce = MilliCe{1'000};
  order.from = now + Duration::hours(24 * 10);
  const auto id = CommitmentId::parse(act(order));
  ASSERT_TRUE(id.has_value());
  act(CancelCommitment{*id, "not needed"});
}

void History::months() {
  const std::size_t before = state_.invoices.size();
  TenantSpec spec;
  spec.name = "kolkata";
  spec.payment = PaymentMode::postpaid;
  spec.currency = Currency("USD");
  spec.credit_limit = usd("100000");
  spec.billing_zone = "Asia/Kolkata";
  spec.invoicing = Invoicing::monthly;
  const auto tenant = TenantId::parse(act(CreateTenant{spec}));
  ASSERT_TRUE(tenant.has_value());
  now = engine::month_end(state_, *tenant, now) - Duration::minutes(30);
  settle();
  TaskSpec task;
  task.name = "versioned";
  task.command = {"true"};
  task.request.share = MilliDevice{400};
  task.attribution.model = "llama";
  task.attribution.model_version = "3.1";
  task.purchase_model = PurchaseModel::on_demand;
  task.group = "nightly";
  const auto id = TaskId::parse(act(SubmitTask{*tenant, task}));
  ASSERT_TRUE(id.has_value());
  settle();
  start(*id);
  pass(Duration::minutes(45));
  end(*id);
  pass(Duration::minutes(45));
  settle();
  EXPECT_EQ(state_.invoices.size(), before + 1);
}

void History::sellers() {
  pass(Duration::minutes(1));
  RateCard card;
  card.on_demand = usd("2");
  Price commitment;
  commitment.purchase_model = PurchaseModel::commitment;
  commitment.tiers = {{0, usd("1")}};
  card.terms.prices = {commitment};
  card.terms.spot.sold = true;
  act(PublishRateCard{card});
  settle();
  act(SetSeller{{"Loam Lab GmbH", "Beispielweg 1\nBerlin", "DE123", "net", 14}});
  act(TopUp{acme, usd("1000"), "for a commitment"});
  BuyCommitment order;
  order.tenant = acme;
  order.spend = usd("0.5");
  act(order);
  TaskSpec task;
  task.name = "resold";
  task.command = {"true"};
  task.request.share = MilliDevice{300};
  task.purchase_model = PurchaseModel::spot;
  const auto id = TaskId::parse(act(SubmitTask{acme, task}));
  ASSERT_TRUE(id.has_value());
  act(PauseTask{*id});
  act(ResumeTask{*id, PurchaseModel::on_demand});
  settle();
  start(*id);
  pass(Duration::minutes(10));
  const Lease& lease = *state_.find_lease(lease_of(*id));
  ReportEnded ended;
  ended.lease = lease.id;
  ended.epoch = lease.epoch;
  ended.started_at = lease.started_at;
  ended.ended_at = now;
  ended.output = 1'250'500;
  act(ended);
  settle();
  pass(Duration::hours(2));
  settle();
  act(IssueInvoice{acme});
}

void History::reservations() {
  pass(Duration::minutes(1));
  for (const Device& device : std::vector<Device>(state_.devices)) {
    act(DrainDevice{device.id, false});
    act(ReportDeviceHealth{device.id, DeviceHealth::healthy, "", {}});
  }
  RateCard card;
  card.on_demand = usd("0.02");
  Price reservation;
  reservation.purchase_model = PurchaseModel::reservation;
  reservation.tiers = {{0, usd("0.03")}};
  card.terms.prices = {reservation};
  card.terms.reservation_unused = BasisPoints{5000};
  card.terms.taxes = {{"VAT", 190'000}};
  act(PublishRateCard{card});
  settle();
  act(TopUp{acme, usd("1000"), "for a reservation"});
  MakeReservation asked;
  asked.tenant = acme;
  asked.order.attribution.project = "vision";
  asked.order.attribution.tags = {{"plan", "night"}};
  asked.order.request.ce = MilliCe{100'000};
  asked.order.to = now + Duration::hours(2);
  const auto id = ReservationId::parse(act(asked));
  ASSERT_TRUE(id.has_value());
  // It goes to the other device.
  const DeviceId device =
      state_.reservations.at(*id).reservation.members.front().slices.front().device;
  act(DrainDevice{device, true});
  act(DrainDevice{device, false});
  TaskSpec task;
  task.name = "reserved";
  task.command = {"true"};
  task.request.ce = MilliCe{40'000};
  task.purchase_model = PurchaseModel::reservation;
  task.reservation = *id;
  const auto on_it = TaskId::parse(act(SubmitTask{acme, task}));
  ASSERT_TRUE(on_it.has_value());
  settle();
  start(*on_it);
  pass(Duration::minutes(30));
  end(*on_it);
  for (int half_hours = 0; half_hours < 7; ++half_hours) {
    settle();
    pass(Duration::minutes(30));
  }
  settle();
  act(IssueInvoice{acme});
}

std::unique_ptr<SqliteJournal> open_good(const std::string& folder) {
  auto journal = SqliteJournal::open(folder);
  EXPECT_TRUE(journal.ok()) << to_text(journal.error());
  return journal.ok() ? std::move(*journal) : nullptr;
}

void run_sql(const std::string& path, const std::string& sql) {
  auto database = Database::open(path, OpenMode::read_write);
  ASSERT_TRUE(database.ok()) << to_text(database.error());
  const auto done = database->execute(sql);
  ASSERT_TRUE(done.ok()) << to_text(done.error());
}

}  // namespace loam::store
