#include "sim/workload.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "schedule/order/discipline.hpp"
#include "sim/program.hpp"

namespace loam::sim {
namespace {

constexpr std::int64_t hour_ms = 3'600'000;

DeviceFacts device_type(Random& random, std::size_t index) {
  // Worth and memory of cards of several generations, and one oddly small one.
  constexpr std::int64_t worth[] = {100'000, 228'000, 33'333, 113, 57'250};
  constexpr std::int64_t memory[] = {81'920, 81'559, 24'576, 1'000, 49'140};
  DeviceFacts facts;
  facts.type = "type" + std::to_string(index);
  facts.driver_version = "1";
  facts.factors_source = "workload";
  const std::size_t pick = random.below(std::size(worth));
  facts.memory = Mebibytes{memory[pick]};
  const MilliCe ce{worth[pick]};
  facts.factors = {ce, MilliCe{ce.value * 9 / 10 + 1}, MilliCe{ce.value + 7},
                   MilliCe{ce.value / 2 + 1}};
  return facts;
}

Money units(Currency currency, std::int64_t milli) {
  return Money(Int128{Money::units_per_one / 1000} * milli, currency);
}

void plan_pool(Workload& plan, Random& random) {
  std::vector<DeviceFacts> types;
  for (std::int64_t i = random.between(1, 3); i > 0; --i) {
    types.push_back(device_type(random, types.size()));
  }
  for (std::int64_t n = random.between(1, 4); n > 0; --n) {
    Workload::NodePlan node;
    node.name = "n" + std::to_string(plan.nodes.size() + 1);
    for (std::int64_t d = random.between(1, 4); d > 0; --d) {
      DeviceFacts facts = types[random.below(types.size())];
      facts.uuid = node.name + "-gpu" + std::to_string(node.devices.size());
      node.devices.push_back(facts);
    }
    plan.nodes.push_back(std::move(node));
  }
}

void plan_tenants(Workload& plan, Random& random) {
  const Currency currencies[] = {Currency("USD"), Currency("JPY"), Currency("KWD")};
  for (const Currency currency : currencies) {
    RateCard card;
    card.currency = currency;
    card.on_demand = units(currency, random.between(0, 900)).times_ratio(1, 7, Rounding::down);
    card.ce_per_gibibyte = MilliCe{random.chance(200) ? 0 : 1250};
    sell_classes(card);
    plan.cards.push_back(std::move(card));
  }
  for (std::int64_t i = random.between(2, 5); i > 0; --i) {
    Workload::TenantPlan tenant;
    TenantSpec& spec = tenant.spec;
    spec.name = "tenant" + std::to_string(plan.tenants.size() + 1);
    spec.currency = currencies[random.chance(700) ? 0 : random.below(3)];
    spec.payment = random.chance(500) ? PaymentMode::prepaid : PaymentMode::postpaid;
    spec.credit_limit = Money::zero(spec.currency);
    if (spec.payment == PaymentMode::postpaid) {
      spec.credit_limit = units(spec.currency, random.between(0, 200'000));
    }
    tenant.wallet = units(spec.currency, random.between(1, 200'000));
    if (random.chance(300)) spec.discount = BasisPoints{random.between(0, 10'000)};
    if (random.chance(300)) spec.quota.ce = MilliCe{random.between(0, 300'000)};
    if (random.chance(200)) spec.quota.memory = Mebibytes{random.between(0, 200'000)};
    if (random.chance(200)) spec.quota.tasks = random.between(0, 5);
    if (random.chance(200)) spec.quota.queued = random.between(1, 10);
    plan.tenants.push_back(tenant);
  }
}

void plan_scheduling(Workload& plan, Random& random) {
  const auto& names = schedule::discipline_names();
  plan.scheduling.queues.clear();
  for (const char* name : {"first", "second"}) {
    QueueSettings queue;
    queue.name = name;
    queue.discipline = names[random.below(names.size())];
    queue.weight = random.between(1, 3);
    if (random.chance(200)) queue.rank = random.between(0, 1);
    if (random.chance(300)) queue.safe = Duration{random.between(0, 1'200'000)};
    if (random.chance(300)) queue.preemptions = random.between(0, 3);
    if (random.chance(300)) queue.ageing = Duration{random.between(0, 3'600'000)};
    if (random.chance(200)) queue.overdue = Duration{random.between(1, 24 * hour_ms)};
    plan.scheduling.queues.push_back(queue);
    if (random.chance(600)) break;
  }
  plan.scheduling.classes.push_back({"premium", 10, std::nullopt, {}});
  plan.scheduling.classes.push_back({"economy", -10, std::nullopt, {}});
  for (const auto& tenant : plan.tenants) {
    if (random.chance(300))
      plan.scheduling.weights.push_back({tenant.spec.name, {}, random.between(1, 5)});
  }
}

Program plan_program(Random& random, Duration limit) {
  Program program;
  program.run = Duration{limit.ms * random.between(0, 1300) / 1000};
  if (random.chance(100)) program.exit_code = random.between(1, 255);
  if (random.chance(300)) program.launch = Duration{random.between(0, 20'000)};
  if (random.chance(300)) program.stop = Duration{random.between(0, 90'000)};
  program.deaf = random.chance(50);
  if (random.chance(30)) program.refused = "no such program";
  if (random.chance(50)) program.unable = random.between(1, 20);
  if (random.chance(50)) program.start_delay = Duration{random.between(0, 300'000)};
  if (random.chance(50)) program.report_delay = Duration{random.between(0, 300'000)};
  program.reports_twice = random.chance(50);
  if (random.chance(200)) {
    program.storage = Mebibytes{random.between(0, 200'000)};
    program.network_bytes = random.between(0, 50'000'000'000);
  }
  return program;
}

TaskSpec plan_task(Random& random, const Workload& plan, std::size_t number) {
  TaskSpec spec;
  spec.name = "c" + std::to_string(number);
  spec.limit = Duration{random.between(1, random.chance(800) ? hour_ms : 3 * hour_ms)};
  spec.grace = Duration{random.chance(300) ? 0 : random.between(0, 60'000)};
  spec.restarts_max = random.between(0, 3);
  ResourceRequest& request = spec.request;
  if (random.chance(500)) {
    request.ce = MilliCe{random.chance(300) ? 33'333 : random.between(1, 120'000)};
  } else {
    request.share = MilliDevice{random.chance(200) ? 1000 : random.between(1, 700)};
  }
  if (random.chance(300)) request.memory = Mebibytes{random.between(1, 60'000)};
  const Workload::NodePlan& node = plan.nodes[random.below(plan.nodes.size())];
  const std::size_t index = random.below(node.devices.size());
  if (random.chance(100)) request.device = node.name + "/" + std::to_string(index);
  if (random.chance(100)) request.device_type = node.devices[index].type;
  if (request.device.empty()) {
    if (random.chance(100)) request.devices = random.between(2, 3);
    if (random.chance(100)) spec.gang = random.between(2, 4);
  }
  if (random.chance(300)) spec.service_class = random.chance(500) ? "premium" : "economy";
  if (random.chance(400))
    spec.queue = plan.scheduling.queues[random.below(plan.scheduling.queues.size())].name;
  request.work_class = static_cast<WorkClass>(random.below(4));
  if (random.chance(300)) spec.attribution.project = "project" + std::to_string(random.below(3));
  spec.command = command_of(plan_program(random, spec.limit));
  return spec;
}

// Adds a fault with its end, so that nothing stays broken until the healing.
void add_pair(Workload& plan, Random& random, Duration at, ActKind start, ActKind end,
              std::size_t which, std::int64_t longest_ms) {
  plan.acts.push_back({at, start, which, random.between(0, 60'000), {}});
  plan.acts.push_back({at + Duration{random.between(1, longest_ms)}, end, which, 0, {}});
}

void plan_fault(Workload& plan, Random& random, Duration at, std::size_t devices) {
  switch (random.below(9)) {
    case 0:
      return add_pair(plan, random, at, ActKind::lose, ActKind::rejoin, random.below(devices),
                      hour_ms);
    case 1:
      return add_pair(plan, random, at, ActKind::drain, ActKind::undrain, random.below(devices),
                      hour_ms);
    case 2:
      return add_pair(plan, random, at, ActKind::down, ActKind::up, 0, hour_ms);
    case 3:
      return add_pair(plan, random, at, ActKind::journal_full, ActKind::journal_ok, 0, 600'000);
    case 4:
      return plan.acts.push_back({at, ActKind::kill, 0, 0, {}});
    case 5:
      return plan.acts.push_back({at, ActKind::kill_before_effects, 0, 0, {}});
    case 6:
      return plan.acts.push_back({at, ActKind::tear, 0, random.between(0, 3000), {}});
    case 7:
      return plan.acts.push_back({at,
                                  ActKind::step_clock,
                                  0,
                                  random.between(1, random.chance(500) ? 5'000 : hour_ms),
                                  {}});
    default:
      return plan.acts.push_back({at, ActKind::snapshot, 0, 0, {}});
  }
}

// Commitments and shortfalls come from numbers of their own, so that older seeds stay what they
// were beside them.
void plan_commitments(Workload& plan, std::uint64_t seed, std::int64_t horizon_ms) {
  Random random(Random(~seed).next());
  const auto when = [&] { return Duration{random.between(0, horizon_ms)}; };
  if (random.chance(500)) {
    for (RateCard& card : plan.cards) {
      Price price;
      price.purchase_model = PurchaseModel::commitment;
      price.tiers = {
          {0, card.on_demand.times_ratio(random.between(0, 100), 100'000, Rounding::up)}};
      card.terms.prices.push_back(std::move(price));
    }
    for (std::int64_t i = random.between(1, 4); i > 0; --i) {
      plan.acts.push_back({when(),
                           ActKind::commit,
                           random.below(plan.tenants.size()),
                           random.between(1, 150'000),
                           {}});
    }
  }
  for (std::int64_t i = random.between(0, 6); i > 0; --i)
    plan.acts.push_back(
        {when(), ActKind::shortfall, random.below(60), random.between(0, 9'999), {}});
}

// Payments out, payments turned round, commitments cancelled; taxes, and rules for lost work.
void plan_payments(Workload& plan, std::uint64_t seed, std::int64_t horizon_ms) {
  Random random(Random(~seed ^ 0x5bd1'e995).next());
  const auto when = [&] { return Duration{random.between(0, horizon_ms)}; };
  constexpr InterruptionRule rules[] = {InterruptionRule::ran, InterruptionRule::free,
                                        InterruptionRule::first_hour_free};
  for (RateCard& card : plan.cards) {
    card.terms.lost_work = {rules[random.below(3)], rules[random.below(3)]};
    if (random.chance(300)) card.terms.taxes = {{"VAT", random.between(1, 250'000)}};
    const auto up_to_a_thousandth = [&] {
      return Money(random.between(1, Money::units_per_one / 1000), card.currency);
    };
    if (random.chance(400)) card.terms.services.storage = up_to_a_thousandth();
    if (random.chance(400)) card.terms.services.network = up_to_a_thousandth();
  }
  for (std::int64_t i = random.between(0, 4); i > 0; --i) {
    plan.acts.push_back({when(),
                         ActKind::pay_out,
                         random.below(plan.tenants.size()),
                         random.between(1, 500'000),
                         {}});
  }
  for (std::int64_t i = random.between(0, 2); i > 0; --i)
    plan.acts.push_back({when(), ActKind::reverse, random.below(16), 0, {}});
  if (random.chance(300)) plan.acts.push_back({when(), ActKind::cancel, random.below(3), 0, {}});
}

// Months that end while the workload runs, which begins with the year in UTC; closed unasked for
// some; alike.
void plan_months(Workload& plan, std::uint64_t seed) {
  constexpr const char* zones[] = {"UTC", "Atlantic/Azores", "America/Sao_Paulo",
                                   "America/St_Johns", "America/New_York"};
  Random random(Random(~seed ^ 0x3c6e'f372).next());
  for (auto& tenant : plan.tenants) {
    tenant.spec.billing_zone = zones[random.below(5)];
    if (random.chance(500)) tenant.spec.invoicing = Invoicing::monthly;
  }
}

// Cohorts with stock that idles, quotas in devices and bounds on what is lent and borrowed; alike.
void plan_cohorts(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x636f'686f'7274'7300).next());
  if (!random.chance(400)) return;
  const std::size_t members = std::min<std::size_t>(plan.tenants.size(), random.between(2, 3));
  const std::size_t first = random.below(plan.tenants.size() - members + 1);
  const auto part = [&](std::int64_t most) { return BasisPoints{random.between(0, most)}; };
  for (std::size_t i = 0; i < members; ++i) {
    Quota& quota = plan.tenants[first + i].spec.quota;
    quota.cohort = "lab";
    quota.devices = MilliDevice{random.chance(300) ? 0 : random.between(0, 3'000)};
    if (random.chance(300)) quota.borrow = part(20'000);
    if (random.chance(300)) quota.lend = part(10'000);
  }
  if (random.chance(500)) return;
  Workload::TenantPlan idle;  // runs nothing
  idle.spec.name = "idle";
  idle.spec.currency = plan.tenants.front().spec.currency;
  idle.spec.credit_limit = Money::zero(idle.spec.currency);
  idle.spec.quota.cohort = "lab";
  idle.spec.quota.devices = MilliDevice{random.between(500, 4'000)};
  idle.wallet = units(idle.spec.currency, 1);
  plan.tenants.push_back(std::move(idle));
}

// Queues that have some devices only, classes that promise a wait, quotas of a month, and how
// devices are chosen; alike.
void plan_selectors(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x7365'6c65'6374'0000).next());
  for (QueueSettings& queue : plan.scheduling.queues) {
    if (!random.chance(200)) continue;
    const auto& devices = plan.nodes[random.below(plan.nodes.size())].devices;
    queue.device_types.push_back(devices[random.below(devices.size())].type);
  }
  for (ServiceClass& known : plan.scheduling.classes) {
    if (!random.chance(300)) continue;
    known.wait = Duration{random.between(0, hour_ms)};
    if (random.chance(500)) {
      known.late.push_back({LateStepKind::on_demand, Duration{random.between(0, hour_ms)}, {}});
      known.late.push_back({LateStepKind::split, known.late.back().after, {}});
      known.late.push_back({LateStepKind::larger_queue, known.late.back().after,
                            plan.scheduling.queues.back().name});
    }
  }
  for (Workload::TenantPlan& tenant : plan.tenants) {
    if (random.chance(100)) tenant.spec.quota.ce_hours_month = random.between(1'000, 1'000'000);
  }
  const char* policies[] = {"best_fit", "spread", "fragmentation", "random"};
  if (random.chance(200)) plan.scheduling.placement = policies[random.below(std::size(policies))];
}

// Cards that sell spot, and tasks that buy it; alike.
void plan_spot(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x7370'6f74'0000'0000).next());
  if (!random.chance(500)) return;
  for (RateCard& card : plan.cards) {
    card.terms.spot.sold = true;
    card.terms.spot.interrupted = static_cast<InterruptionRule>(random.below(3));
  }
  for (Act& act : plan.acts) {
    if (act.kind != ActKind::submit || !random.chance(300)) continue;
    act.spec.purchase_model = random.chance(800) ? PurchaseModel::spot : PurchaseModel::hybrid;
  }
}

// Cards whose price changes with what a tenant used of the month; alike.
void plan_tiers(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x7469'6572'7300'0000).next());
  if (!random.chance(300)) return;
  for (RateCard& card : plan.cards) {
    Price price;
    price.tiers = {{0, card.on_demand}};
    for (std::int64_t i = random.between(1, 3); i > 0; --i) {
      const Money above = card.on_demand.times_ratio(random.between(20, 150), 100, Rounding::down);
      price.tiers.push_back(
          {price.tiers.back().above_milli_ce_hours + random.between(1, 60'000), above});
    }
    card.terms.prices.push_back(std::move(price));
  }
}

// Spot tasks that have a deadline, from one that nothing meets to hours of slack; alike.
void plan_deadlines(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x6465'6164'6c69'6e65).next());
  constexpr SpotPolicy policies[] = {SpotPolicy::reserve, SpotPolicy::uniform_progress,
                                     SpotPolicy::greedy};
  for (Act& act : plan.acts) {
    TaskSpec& spec = act.spec;
    const bool spot = spec.purchase_model == PurchaseModel::spot;
    if (act.kind != ActKind::submit || !spot || !random.chance(500)) continue;
    spec.deadline = workload_start + act.at + spec.limit + Duration{random.between(0, 5 * hour_ms)};
    if (random.chance(300)) spec.changeover = Duration{random.between(0, 600'000)};
    if (random.chance(300)) spec.spot_policy = policies[random.below(std::size(policies))];
  }
}

// Tasks that do not wait for ever, and a pool where none does; alike.
void plan_waits(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x7761'6974'0000'0000).next());
  if (!random.chance(300)) return;
  if (random.chance(300)) plan.scheduling.hold_expires = Duration{random.between(1, 8 * hour_ms)};
  for (Act& act : plan.acts) {
    if (act.kind == ActKind::submit && random.chance(300))
      act.spec.wait_at_most = Duration{random.between(1, 4 * hour_ms)};
  }
}

// Cards that sell reservations, reservations made, used and cancelled; alike. Their tasks are
// numbered behind all others, so that nothing said of those means them.
void plan_reservations(Workload& plan, std::uint64_t seed, std::int64_t horizon_ms) {
  Random random(Random(seed ^ 0x7265'7365'7276'6500).next());
  if (!random.chance(500)) return;
  const auto when = [&] { return Duration{random.between(0, horizon_ms)}; };
  for (RateCard& card : plan.cards) {
    Price price;
    price.purchase_model = PurchaseModel::reservation;
    price.tiers = {{0, card.on_demand.times_ratio(random.between(50, 200), 100, Rounding::down)}};
    card.terms.prices.push_back(std::move(price));
    if (random.chance(300)) card.terms.reservation_unused = BasisPoints{random.between(0, 10'000)};
  }
  const std::int64_t reservations = random.between(1, 6);
  for (std::int64_t i = 0; i < reservations; ++i) {
    TaskSpec spec = plan_task(random, plan, 0);
    spec.name = "reserved";
    spec.limit = Duration{random.between(1, 4 * hour_ms)};
    spec.request.cpu = MilliCpu{4 * spec.request.cpu.value};  // so that several may share it
    spec.request.host_memory = Mebibytes{4 * spec.request.host_memory.value};
    const std::int64_t ahead = random.chance(200) ? 0 : random.between(1, 3 * hour_ms);
    plan.acts.push_back({when(), ActKind::reserve, random.below(plan.tenants.size()), ahead, spec});
  }
  constexpr std::size_t first_name = 1000;
  for (std::int64_t i = random.between(0, 15); i > 0; --i) {
    const std::size_t number = first_name + static_cast<std::size_t>(i);
    TaskSpec spec = plan_task(random, plan, number);
    spec.purchase_model = PurchaseModel::reservation;
    spec.service_class = "standard";
    plan.acts.push_back({when(), ActKind::submit, random.below(plan.tenants.size()),
                         random.between(1, 1000), std::move(spec)});
    for (const ActKind kind : {ActKind::retry, ActKind::stop, ActKind::pause, ActKind::resume}) {
      if (random.chance(150)) plan.acts.push_back({when(), kind, number, 0, {}});
    }
  }
  for (std::int64_t i = random.between(0, 2); i > 0; --i)
    plan.acts.push_back({when(), ActKind::unreserve, random.below(6), 0, {}});
}

// Copies of checkpoints, where some are sold; alike.
void plan_backups(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x636f'7069'6573'0000).next());
  if (!random.chance(300)) return;
  for (RateCard& card : plan.cards) {
    if (random.chance(500)) card.terms.services.backup = card.terms.services.storage;
  }
  for (Act& act : plan.acts) {
    if (act.kind == ActKind::submit && act.spec.gang == 1 && random.chance(400))
      act.spec.backups = random.between(1, 3);
  }
}

// Running tasks that may be moved for others; alike.
void plan_moves(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x6d6f'7665'7300'0000).next());
  if (!random.chance(600)) return;
  DefragSettings& defrag = plan.scheduling.defrag;
  defrag.moves_per_hour = random.between(1, random.chance(500) ? 4 : 40);
  defrag.moves_at_once = random.between(1, 4);
  defrag.lost_work_max = Duration{random.between(0, 2 * hour_ms)};
}

// Devices lent more than once, and tasks that bear it; alike.
void plan_oversubscription(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x6c65'6e74'0000'0000).next());
  if (!random.chance(400)) return;
  Oversubscription& lent = plan.scheduling.oversubscription;
  if (random.chance(800)) lent.ce_permille = random.between(1000, random.chance(800) ? 2500 : 8000);
  if (random.chance(600)) lent.memory_permille = random.between(1000, 3000);
  for (Act& act : plan.acts) {
    const bool asks = act.kind == ActKind::submit || act.kind == ActKind::reserve;
    if (asks && random.chance(600)) act.spec.request.mode = ShareMode::burstable;
  }
}

// Tasks that are done in pieces; alike.
void plan_segments(Workload& plan, std::uint64_t seed) {
  Random random(Random(seed ^ 0x7365'676d'656e'7400).next());
  if (!random.chance(400)) return;
  constexpr std::int64_t minute_ms = 60'000;
  for (Act& act : plan.acts) {
    if (act.kind != ActKind::submit || !random.chance(200)) continue;
    const std::int64_t most = std::min<std::int64_t>(5, act.spec.limit.ms / minute_ms);
    if (most > 1) act.spec.segments = random.between(2, most);
  }
}

}  // namespace

const char* name_of(ActKind kind) {
  constexpr const char* names[] = {"submit",
                                   "retry",
                                   "stop",
                                   "pause",
                                   "resume",
                                   "drain",
                                   "undrain",
                                   "lose",
                                   "rejoin",
                                   "kill",
                                   "down",
                                   "up",
                                   "kill before effects",
                                   "tear",
                                   "journal full",
                                   "journal ok",
                                   "step clock",
                                   "publish price",
                                   "top up",
                                   "invoice",
                                   "snapshot",
                                   "stale report",
                                   "commit",
                                   "shortfall",
                                   "pay out",
                                   "reverse",
                                   "cancel",
                                   "reserve",
                                   "unreserve"};
  return names[static_cast<std::size_t>(kind)];
}

void sell_classes(RateCard& card) {
  for (const auto& [name, percent] : {std::pair("premium", 150), std::pair("economy", 50)}) {
    Price price;
    price.service_class = name;
    price.tiers = {{0, card.on_demand.times_ratio(percent, 100, Rounding::down)}};
    card.terms.prices.push_back(std::move(price));
  }
}

Workload workload_of(std::uint64_t seed) {
  // Mixed first: states of the generator that lie close together give sequences that overlap.
  Random random(Random(seed).next());
  Workload plan;
  plan_pool(plan, random);
  plan_tenants(plan, random);
  plan_scheduling(plan, random);
  if (random.chance(700)) plan.reports.dropped_permille = random.below(200);
  if (random.chance(700)) plan.reports.doubled_permille = random.below(200);
  if (random.chance(700)) plan.reports.delay_max = Duration{random.between(0, 10'000)};
  if (random.chance(500)) plan.reports.launch_max = Duration{random.between(0, 30'000)};

  std::size_t devices = 0;
  for (const auto& node : plan.nodes) devices += node.devices.size();
  const std::int64_t horizon_ms = random.between(1, 8) * hour_ms;
  const auto when = [&] { return Duration{random.between(0, horizon_ms)}; };
  const auto tasks = static_cast<std::size_t>(random.between(5, 60));
  for (std::size_t i = 0; i < tasks; ++i) {
    plan.acts.push_back({when(), ActKind::submit, random.below(plan.tenants.size()), 0,
                         plan_task(random, plan, i)});
    const ActKind later[] = {ActKind::retry, ActKind::stop, ActKind::pause, ActKind::resume,
                             ActKind::stale_report};
    for (const ActKind kind : later) {
      if (random.chance(250)) plan.acts.push_back({when(), kind, random.below(tasks), 0, {}});
    }
  }
  for (std::int64_t i = random.between(0, 20); i > 0; --i)
    plan_fault(plan, random, when(), devices);
  for (std::int64_t i = random.between(0, 10); i > 0; --i) {
    const ActKind money[] = {ActKind::publish_price, ActKind::top_up, ActKind::invoice};
    plan.acts.push_back({when(),
                         money[random.below(3)],
                         random.below(plan.tenants.size()),
                         random.between(1, 50'000),
                         {}});
  }
  plan_commitments(plan, seed, horizon_ms);
  plan_payments(plan, seed, horizon_ms);
  plan_cohorts(plan, seed);
  plan_months(plan, seed);
  plan_spot(plan, seed);
  plan_tiers(plan, seed);
  plan_backups(plan, seed);
  plan_deadlines(plan, seed);
  plan_selectors(plan, seed);
  plan_reservations(plan, seed, horizon_ms);
  plan_segments(plan, seed);
  plan_moves(plan, seed);
  plan_waits(plan, seed);
  plan_oversubscription(plan, seed);
  std::stable_sort(plan.acts.begin(), plan.acts.end(),
                   [](const Act& a, const Act& b) { return a.at < b.at; });
  return plan;
}

}  // namespace loam::sim
