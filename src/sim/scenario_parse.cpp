// Reads statements. One function a verb; the table at the end is the language.
#include <algorithm>
#include <array>

#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {
namespace {

Result<Step> read_clock(Words& words) {
  LOAM_TRY(word, words.next("the instant"));
  LOAM_TRY(start, words.placed(*word, parse_instant(word->text)));
  return Step(SetClock{start});
}

Result<Step> read_device(Words& words) {
  LOAM_TRY(name, words.next("the name of the device type"));
  DefineDevice device;
  device.facts.type = name->text;
  device.facts.backend = Backend::simulated;
  device.facts.driver_version = "1";
  device.facts.factors_source = "scenario";
  CeFactors& factors = device.facts.factors;
  const Word* ce = words.attribute("ce");
  if (ce == nullptr)
    return words.fault_here("ce= is missing", "say what the device is worth: ce=100");
  LOAM_TRY(worth, words.placed(*ce, parse_ce(ce->text)));
  factors = {worth, worth, worth, worth};
  LOAM_CHECK(words.take("train", factors.train, parse_ce));
  LOAM_CHECK(words.take("prefill", factors.prefill, parse_ce));
  LOAM_CHECK(words.take("decode", factors.decode, parse_ce));
  const Word* memory = words.attribute("memory");
  if (memory == nullptr) return words.fault_here("memory= is missing", "say it: memory=80GiB");
  LOAM_TRY(size, words.placed(*memory, parse_memory(memory->text)));
  device.facts.memory = size;
  return Step(std::move(device));
}

constexpr std::int64_t devices_a_node_max = 1000;

Result<Step> read_node(Words& words) {
  LOAM_TRY(name, words.next("the name of the node"));
  AddNode node;
  node.node = {name->text, "here", MilliCpu{64'000}, Mebibytes{512 * 1024}};
  LOAM_CHECK(words.take("region", node.node.region, parse_text));
  LOAM_CHECK(words.take("labels", node.node.labels, parse_list));
  LOAM_CHECK(words.take("cpu", node.node.cpu, parse_cpu));
  LOAM_CHECK(words.take("memory", node.node.memory, parse_memory));
  LOAM_CHECK(words.take("sandboxed", node.node.sandboxed, parse_yes));
  const Word* devices = words.attribute("devices");
  std::string_view rest = devices == nullptr ? std::string_view{} : devices->text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t star = part.find('*');
    std::int64_t count = 1;
    if (star != std::string_view::npos) {
      LOAM_TRY(given, words.placed(*devices, parse_decimal(part.substr(star + 1), 0,
                                                           devices_a_node_max, "device count")));
      count = given;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      node.device_types.emplace_back(part.substr(0, star));
    }
  }
  LOAM_CHECK(read_links(words, node));
  return Step(std::move(node));
}

Result<Step> read_rate(Words& words) {
  SetRate rate;
  LOAM_TRY(model, words.next("the purchase model"));
  LOAM_TRY(known, words.placed(*model, parse_name_of<PurchaseModel>(model->text)));
  rate.model = known;
  LOAM_TRY(amount, words.next("the price"));
  LOAM_TRY(unit, words.next("the unit (USD/ce_hour)"));
  const std::size_t slash = std::min(unit->text.find('/'), unit->text.size());
  if (unit->text.substr(slash) != "/ce_hour") {
    return words.fault(*unit, "'" + unit->text + "' is not a unit of price", "use USD/ce_hour");
  }
  LOAM_TRY(currency, words.placed(*unit, Currency::parse(unit->text.substr(0, slash))));
  LOAM_TRY(price, words.placed(*amount, Money::parse(amount->text, currency)));
  rate.amount = amount_text(price);
  rate.currency = currency.code();
  LOAM_CHECK(read_terms(words, rate.terms, price));
  LOAM_CHECK(words.take("ce_per_gibibyte", rate.ce_per_gibibyte, [](std::string_view text) {
    return text == "0" ? Result<MilliCe>(MilliCe{0}) : parse_ce(text);
  }));
  if (const Word* from = words.attribute("from")) {
    if (from->text.starts_with('+')) {
      LOAM_TRY(after, words.placed(*from, parse_duration(std::string_view(from->text).substr(1))));
      rate.from_after = after;
    } else {
      LOAM_TRY(instant, words.placed(*from, parse_instant(from->text)));
      rate.from = instant;
    }
  }
  return Step(std::move(rate));
}

Result<Step> read_tenant_as(Words& words, bool change) {
  LOAM_TRY(name, words.next("the name of the tenant"));
  MakeTenant tenant;
  tenant.change = change;
  TenantSpec& spec = tenant.spec;
  spec.name = name->text;
  const Word* currency = words.attribute("currency");
  if (currency != nullptr) {
    LOAM_TRY(known, words.placed(*currency, Currency::parse(currency->text)));
    spec.currency = known;
  }
  // Without a word about money there is more than any scenario spends.
  spec.payment = PaymentMode::postpaid;
  spec.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000'000, spec.currency);
  Money wallet = Money::zero(spec.currency);
  if (const Word* word = words.attribute("wallet")) {
    LOAM_TRY(amount, words.placed(*word, parse_amount(word->text)));
    spec.payment = PaymentMode::prepaid;
    spec.currency = amount.currency();
    spec.credit_limit = Money::zero(amount.currency());
    wallet = amount;
    tenant.wallet = amount;
  }
  if (const Word* word = words.attribute("credit")) {
    LOAM_TRY(amount, words.placed(*word, parse_amount(word->text)));
    spec.payment = PaymentMode::postpaid;
    spec.currency = amount.currency();
    spec.credit_limit = amount;
    if (tenant.wallet && tenant.wallet->currency() != amount.currency()) {
      return words.fault(*word, "the wallet and the credit are of different currencies",
                         "a tenant has one currency");
    }
  }
  LOAM_CHECK(words.take("discount", spec.discount, parse_percent));
  LOAM_CHECK(read_invoicing(words, spec));
  const auto zero_or = [](auto parse) {
    return [parse](std::string_view text) -> decltype(parse(text)) {
      using Value = typename decltype(parse(text))::value_type;
      if (text == "0") return Value{0};
      return parse(text);
    };
  };
  LOAM_CHECK(words.take("quota_ce", spec.quota.ce, zero_or(parse_ce)));
  LOAM_CHECK(words.take("quota_memory", spec.quota.memory, zero_or(parse_memory)));
  LOAM_CHECK(words.take("quota_tasks", spec.quota.tasks, parse_count));
  LOAM_CHECK(words.take("quota_queued", spec.quota.queued, parse_count));
  if (const Word* word = words.attribute("quota_devices")) {
    LOAM_TRY(devices, words.placed(*word, parse_count(word->text)));
    spec.quota.devices = whole_device * devices;
  }
  LOAM_CHECK(words.take("quota_longest", spec.quota.longest, parse_duration));
  LOAM_CHECK(words.take("quota_ce_hours", spec.quota.ce_hours_month, parse_ce_hours));
  LOAM_CHECK(words.take("cohort", spec.quota.cohort, parse_text));
  LOAM_CHECK(words.take("borrow", spec.quota.borrow, parse_percent));
  LOAM_CHECK(words.take("lend", spec.quota.lend, parse_percent));
  return Step(std::move(tenant));
}

Result<Step> read_tenant(Words& words) {
  return read_tenant_as(words, false);
}
Result<Step> read_change(Words& words) {
  return read_tenant_as(words, true);
}

Result<std::vector<WorkClass>> parse_work_classes(std::string_view text) {
  LOAM_TRY(names, parse_list(text));
  std::vector<WorkClass> classes;
  for (const std::string& name : names) {
    LOAM_TRY(known, parse_name_of<WorkClass>(name));
    classes.push_back(known);
  }
  return classes;
}

Result<Step> read_queue(Words& words) {
  LOAM_TRY(name, words.next("the name of the queue"));
  SetQueue step;
  QueueSettings& queue = step.queue;
  queue.name = name->text;
  const auto time = [](std::string_view text) {
    return text == "0" ? Result<Duration>(Duration{}) : parse_duration(text);
  };
  LOAM_CHECK(words.take("discipline", queue.discipline, parse_text));
  LOAM_CHECK(words.take("rank", queue.rank, parse_level));
  LOAM_CHECK(words.take("weight", queue.weight, parse_count));
  LOAM_CHECK(words.take("barred", queue.barred_environments, parse_list));
  LOAM_CHECK(words.take("safe", queue.safe, time));
  LOAM_CHECK(words.take("preemptions", queue.preemptions, parse_count));
  LOAM_CHECK(words.take("window", queue.preemption_window, time));
  LOAM_CHECK(words.take("ageing", queue.ageing, time));
  LOAM_CHECK(words.take("overdue", queue.overdue, time));
  LOAM_CHECK(words.take("types", queue.device_types, parse_list));
  LOAM_CHECK(words.take("region", queue.region, parse_text));
  LOAM_CHECK(words.take("labels", queue.labels, parse_list));
  LOAM_CHECK(words.take("work_classes", queue.work_classes, parse_work_classes));
  return Step(std::move(step));
}

Result<Step> read_class(Words& words) {
  LOAM_TRY(name, words.next("the name of the service class"));
  SetClass step;
  step.service_class.name = name->text;
  LOAM_CHECK(words.take("level", step.service_class.level, parse_level));
  LOAM_CHECK(words.take("wait", step.service_class.wait, parse_duration));
  if (const Word* word = words.attribute("late")) {
    LOAM_TRY(list, words.placed(*word, parse_list(word->text)));
    for (const std::string& text : list) {
      LOAM_TRY(late, words.placed(*word, parse_late_step(text)));
      step.service_class.late.push_back(late);
    }
  }
  return Step(std::move(step));
}

Result<Step> read_placement(Words& words) {
  LOAM_TRY(name, words.next("the policy, such as packing_value"));
  return Step(SetPlacement{name->text});
}

Result<Step> read_hold_expires(Words& words) {
  LOAM_TRY(word, words.next("how long a task may wait (2h), or never"));
  if (word->text == "never") return Step(SetHoldExpires{});
  LOAM_TRY(after, words.placed(*word, parse_duration(word->text)));
  return Step(SetHoldExpires{after});
}

Result<Step> read_defrag(Words& words) {
  SetDefrag step;
  LOAM_CHECK(words.take("moves", step.defrag.moves_per_hour, parse_count));
  LOAM_CHECK(words.take("at_once", step.defrag.moves_at_once, parse_count));
  LOAM_CHECK(words.take("lost", step.defrag.lost_work_max, parse_duration));
  return Step(std::move(step));
}

Result<Step> read_weight(Words& words) {
  LOAM_TRY(name, words.next("the tenant, or tenant/project"));
  SetWeight step;
  const std::size_t slash = name->text.find('/');
  step.weight.tenant = name->text.substr(0, slash);
  if (slash != std::string::npos) step.weight.project = name->text.substr(slash + 1);
  LOAM_TRY(word, words.next("the weight"));
  LOAM_TRY(weight, words.placed(*word, parse_count(word->text)));
  step.weight.weight = weight;
  return Step(std::move(step));
}

}  // namespace

Result<void> read_request(Words& words, ResourceRequest& request) {
  LOAM_CHECK(words.take("share", request.share, parse_share));
  LOAM_CHECK(words.take("memory", request.memory, parse_memory));
  LOAM_CHECK(words.take("bandwidth", request.bandwidth, parse_share));
  LOAM_CHECK(words.take("device", request.device, parse_text));
  LOAM_CHECK(words.take("type", request.device_type, parse_text));
  LOAM_CHECK(words.take("region", request.region, parse_text));
  LOAM_CHECK(words.take("labels", request.labels, parse_list));
  LOAM_CHECK(words.take("class", request.work_class, parse_name_of<WorkClass>));
  LOAM_CHECK(words.take("isolation", request.isolation, parse_name_of<Isolation>));
  LOAM_CHECK(words.take("mode", request.mode, parse_name_of<ShareMode>));
  LOAM_CHECK(words.take("cpu", request.cpu, parse_cpu));
  LOAM_CHECK(words.take("host_memory", request.host_memory, parse_memory));
  if (words.attribute("devices") != nullptr) {
    LOAM_CHECK(words.take("devices", request.devices, parse_count));
    // Whole devices, unless their share is said.
    if (!request.share && !request.ce) request.share = whole_device;
  }
  return {};
}

namespace {

Result<void> read_terms(Words& words, Submit& submit) {
  TaskSpec& spec = submit.spec;
  LOAM_CHECK(words.take("limit", spec.limit, parse_duration));
  LOAM_CHECK(words.take("grace", spec.grace, parse_duration));
  LOAM_CHECK(words.take("restarts", spec.restarts_max, parse_count));
  LOAM_CHECK(words.take("gang", spec.gang, parse_count));
  LOAM_CHECK(words.take("segments", spec.segments, parse_count));
  LOAM_CHECK(words.take("deadline", spec.deadline, parse_instant));
  LOAM_CHECK(words.take("changeover", spec.changeover, parse_duration));
  LOAM_CHECK(words.take("backups", spec.backups, parse_count));
  LOAM_CHECK(words.take("wait_at_most", spec.wait_at_most, parse_duration));
  LOAM_CHECK(words.take("spot_policy", spec.spot_policy, parse_name_of<SpotPolicy>));
  LOAM_CHECK(words.take("recurrence", spec.recurrence, parse_text));
  LOAM_CHECK(words.take("image", spec.image, parse_text));
  LOAM_CHECK(words.take("tariff", spec.tariff, parse_name_of<Tariff>));
  LOAM_CHECK(words.take("service_class", spec.service_class, parse_text));
  LOAM_CHECK(words.take("queue", spec.queue, parse_text));
  LOAM_CHECK(words.take("project", spec.attribution.project, parse_text));
  LOAM_CHECK(words.take("environment", spec.attribution.environment, parse_text));
  LOAM_CHECK(read_group(words, spec));
  LOAM_CHECK(words.take("key", submit.key, parse_text));
  if (const Word* secret = words.attribute("secret")) spec.secrets["SECRET"] = secret->text;
  if (words.attribute("port") != nullptr) {
    std::int64_t port = 0;
    LOAM_CHECK(words.take("port", port, parse_count));
    spec.ports.push_back(port);
  }
  return {};
}

Result<Submit> read_task(Words& words, bool named) {
  Submit submit;
  if (named) {
    LOAM_TRY(name, words.next("the name of the task"));
    submit.spec.name = name->text;
  } else {
    LOAM_CHECK(words.take("name", submit.spec.name, parse_text));
  }
  LOAM_TRY(tenant, words.next("the tenant"));
  submit.tenant = tenant->text;
  LOAM_CHECK(read_reservation(words, submit.spec));
  if (const Word* model = words.next_if_any()) {
    LOAM_TRY(known, words.placed(*model, parse_name_of<PurchaseModel>(model->text)));
    submit.spec.purchase_model = known;
  }
  std::optional<AskedCe> asked;
  LOAM_CHECK(words.take("ce", asked, parse_asked_ce));
  if (asked) {
    submit.spec.request.ce = asked->ce;
    submit.spec.auto_ce = asked->auto_ce;
  }
  LOAM_CHECK(read_request(words, submit.spec.request));
  LOAM_CHECK(read_terms(words, submit));
  LOAM_CHECK(read_program(words, submit.spec));
  return submit;
}

Result<Step> read_submit(Words& words) {
  LOAM_TRY(submit, read_task(words, true));
  return Step(std::move(submit));
}
Result<Step> read_quote(Words& words) {
  LOAM_TRY(submit, read_task(words, false));
  submit.quote_only = true;
  return Step(std::move(submit));
}

template <TaskVerb verb>
Result<Step> read_ask(Words& words) {
  LOAM_TRY(task, words.next("the task"));
  AskOfTask ask{verb, task->text};
  if constexpr (verb == TaskVerb::resume)
    LOAM_CHECK(words.take("purchase", ask.purchase, parse_name_of<PurchaseModel>));
  return Step(std::move(ask));
}

template <bool draining>
Result<Step> read_drain(Words& words) {
  LOAM_TRY(device, words.next("the device (n1/0)"));
  return Step(Drain{device->text, draining});
}

Result<Step> read_topup(Words& words) {
  LOAM_TRY(tenant, words.next("the tenant"));
  LOAM_TRY(word, words.next("the amount (100USD)"));
  LOAM_TRY(amount, words.placed(*word, parse_amount(word->text)));
  return Step(Pay{tenant->text, amount, false});
}

Result<Step> read_fault_daemon(Words& words) {
  LOAM_TRY(word, words.next("killed, killed_before_effects, down or up"));
  constexpr std::array<std::pair<std::string_view, DaemonFault>, 4> names{
      {{"killed", DaemonFault::killed},
       {"down", DaemonFault::down},
       {"up", DaemonFault::up},
       {"killed_before_effects", DaemonFault::killed_before_effects}}};
  for (const auto& [name, fault] : names) {
    if (name == word->text) return Step(FaultDaemon{fault});
  }
  return words.fault(*word, "'" + word->text + "' does not happen to a daemon",
                     "use killed, killed_before_effects, down or up");
}

Result<Step> read_fault_journal(Words& words) {
  if (words.attribute("torn") != nullptr) {
    std::int64_t bytes = 0;
    LOAM_CHECK(words.take("torn", bytes, parse_count));
    return Step(FaultJournal{false, static_cast<std::size_t>(bytes)});
  }
  LOAM_TRY(word, words.next("full, ok or torn=BYTES"));
  if (word->text != "full" && word->text != "ok") {
    return words.fault(*word, "'" + word->text + "' does not happen to a journal",
                       "use full, ok or torn=BYTES");
  }
  return Step(FaultJournal{word->text == "full", std::nullopt});
}

Result<Step> read_fault(Words& words) {
  LOAM_TRY(what, words.next("daemon, journal, clock or a device (n1/0)"));
  if (what->text == "daemon") return read_fault_daemon(words);
  if (what->text == "journal") return read_fault_journal(words);
  if (what->text == "clock") {
    LOAM_TRY(word, words.next("the step (+1h or -1h)"));
    const bool back = word->text.starts_with('-');
    if (!back && !word->text.starts_with('+')) {
      return words.fault(*word, "'" + word->text + "' is not a step", "write +1h or -1h");
    }
    LOAM_TRY(by, words.placed(*word, parse_duration(std::string_view(word->text).substr(1))));
    return Step(FaultClock{back ? Duration{0} - by : by});
  }
  FaultDevice fault;
  fault.name = what->text;
  LOAM_TRY(health, words.next("lost or healthy"));
  LOAM_TRY(known, words.placed(*health, parse_name_of<DeviceHealth>(health->text)));
  fault.health = known;
  LOAM_CHECK(words.take("unseen", fault.unseen, parse_duration));
  return Step(std::move(fault));
}

Result<Step> read_snapshot(Words&) {
  return Step(TakeSnapshot{});
}

Result<Step> read_expect(Words& words) {
  Expect expect{words.rest()};
  if (expect.words.empty()) {
    return words.fault_here("what is expected is missing", "for example: expect start j1 on n1/0");
  }
  return Step(std::move(expect));
}

Result<Step> read_quiet(Words&) {
  return Step(Quiet{});
}

template <BlockKind kind>
Result<Step> read_block(Words& words) {
  LOAM_TRY(tenant, words.next("the tenant"));
  return Step(Block{kind, tenant->text, {}, 0});
}

struct Verb {
  std::string_view name;
  Result<Step> (*read)(Words&);
  bool timed;  // may follow `at`
  std::string_view usage;
};

constexpr std::array verbs{
    Verb{"clock", read_clock, false, "clock 2026-03-02T00:00:00Z"},
    Verb{"device", read_device, false, "device TYPE ce=CE memory=SIZE [train= prefill= decode=]"},
    Verb{"node", read_node, true,
         "node NAME devices=TYPE*2,TYPE [cpu= memory= region= labels=A,B sandboxed=no links=4]"},
    Verb{"rate", read_rate, true,
         "rate on_demand 0.02 USD/ce_hour [from=INSTANT|+1h] [ce_per_gibibyte=1.25] "
         "[granularity=minute] [zone=Europe/Berlin] [windows=day:08:00-20:00,night:20:00-08:00] "
         "[prices=day:0.03,night:0.01] [classes=gold:0.05] [commitment=0.013] [reservation=0.03] "
         "[unused=50%] [tiers=250:0.01] [tax=VAT:19%] "
         "[off=spring:5%] [spot=15%:100%] [interrupted=free] [displaced=free] [lost=free]"},
    Verb{"budget", read_budget, true,
         "budget NAME TENANT 100USD [project=] [environment=] [model=] [running=stop] [zone=] "
         "[wait=24h] [remind=80%] [limit=100%] [approve=120%]"},
    Verb{"approve", read_approve, true, "approve BUDGET 200USD [for=24h]"},
    Verb{"refuse", read_refuse, true, "refuse BUDGET"},
    Verb{"credit", read_credit, true, "credit TENANT [5USD]"},
    Verb{"commit", read_commit, true,
         "commit TENANT ce=10 [months=1|3|12] [from=INSTANT] [until=INSTANT] [anchor=INSTANT] "
         "[project=]"},
    Verb{"reserve", read_reserve, true,
         "reserve TENANT ce=|share=|devices= [memory=] [gang=] [device=] [cpu=] [host_memory=] "
         "[tariff=] [queue=] [project=] [from=1h|+1h|INSTANT] to="},
    Verb{"cancel", read_cancel, true, "cancel COMMITMENT|RESERVATION"},
    Verb{"shortfall", read_shortfall, true,
         "shortfall TASK for=60s promised=50% got=40% [ago=0s] [slice=0] [epoch=1]"},
    Verb{"tenant", read_tenant, true,
         "tenant NAME [wallet=100USD] [credit=50USD] [currency=USD] [discount=10%] [quota_ce=] "
         "[quota_memory=] [quota_tasks=] [quota_queued=] [quota_devices=] [quota_longest=] "
         "[quota_ce_hours=] [cohort=] [borrow=50%] [lend=50%] [zone=UTC] [invoicing=monthly]"},
    Verb{"change", read_change, true, "change NAME, then what tenant takes"},
    Verb{"queue", read_queue, true,
         "queue NAME [discipline=] [rank=] [weight=] [barred=A,B] [work_classes=A,B] [safe=] "
         "[preemptions=] [window=] "
         "[ageing=] [overdue=] [types=A,B] [region=] [sandboxed=no] [labels=A,B]"},
    Verb{"class", read_class, true,
         "class NAME [level=] [wait=] [late=on_demand:10m,larger_queue/QUEUE:20m,split:30m]"},
    Verb{"placement", read_placement, true, "placement best_fit"},
    Verb{"hold_expires", read_hold_expires, true, "hold_expires 2h|never"},
    Verb{"defrag", read_defrag, true, "defrag moves=4 [at_once=2] [lost=10m]"},
    Verb{"oversubscribe", read_oversubscribe, true, "oversubscribe [ce=1.5] [memory=1.2]"},
    Verb{"weight", read_weight, true, "weight TENANT[/PROJECT] 3"},
    Verb{
        "submit", read_submit, true,
        "submit TASK TENANT [on_demand] ce=|share=|devices= [memory=] [limit=] [run=] [exit=] ..."},
    Verb{"quote", read_quote, true, "quote TENANT, then what submit takes"},
    Verb{"stop", read_ask<TaskVerb::stop>, true, "stop TASK"},
    Verb{"pause", read_ask<TaskVerb::pause>, true, "pause TASK"},
    Verb{"resume", read_ask<TaskVerb::resume>, true, "resume TASK [purchase=on_demand]"},
    Verb{"drain", read_drain<true>, true, "drain n1/0"},
    Verb{"undrain", read_drain<false>, true, "undrain n1/0"},
    Verb{"topup", read_topup, true, "topup TENANT 100USD"},
    Verb{"refund", read_refund, true, "refund TENANT 100USD"},
    Verb{"reverse", read_reverse, true, "reverse TENANT [x3]"},
    Verb{"invoice", read_invoice, true, "invoice TENANT [month=2026-03]"},
    Verb{"report", read_report, true,
         "report TASK started|ended|services [epoch=1] [ago=5s] [began=1h] [exit=0] [as=exited] "
         "[mib_seconds=] [bytes=] [busy=24m]"},
    Verb{
        "fault", read_fault, true,
        "fault DEVICE lost|healthy [unseen=5s] | fault daemon killed|killed_before_effects|down|up "
        "| fault journal full|ok|torn=BYTES | fault clock +1h|-1h"},
    Verb{"snapshot", read_snapshot, true, "snapshot"},
    Verb{"expect", read_expect, false, "expect start TASK on DEVICE, and the like"},
    Verb{"quiet", read_quiet, false, "quiet"},
    Verb{"bill", read_block<BlockKind::bill>, false, "bill TENANT, then indented lines"},
    Verb{"ledger", read_block<BlockKind::ledger>, false, "ledger TENANT, then indented lines"},
    Verb{"issued", read_block<BlockKind::issued>, false, "issued TENANT, then indented lines"},
};

std::string verb_names() {
  std::string names;
  for (const Verb& verb : verbs) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

Result<At> read_at(Words& words) {
  LOAM_TRY(word, words.next("the time"));
  return words.placed(*word, parse_at(word->text));
}

Result<Statement> read_statement(std::string_view file, Line line) {
  Statement statement;
  statement.line = std::move(line);
  Words words(file, statement.line);
  LOAM_TRY(first, words.next("a statement"));
  const Word* name = first;
  if (first->text == "at") {
    LOAM_TRY(at, read_at(words));
    statement.at = at;
    name = words.next_if_any();
    if (name == nullptr) {
      LOAM_CHECK(words.finish("at TIME [STATEMENT]"));
      return statement;
    }
  }
  for (const Verb& verb : verbs) {
    if (verb.name != name->text) continue;
    if (statement.at && !verb.timed) {
      return words.fault(*name, "'" + name->text + "' does not follow 'at'",
                         "write it on a line of its own");
    }
    LOAM_TRY(step, verb.read(words));
    LOAM_CHECK(words.finish(verb.usage));
    statement.step = std::move(step);
    return statement;
  }
  return words.fault(*name, "'" + name->text + "' is not a statement",
                     "use one of: at, " + verb_names());
}

}  // namespace

Instant start_of(const Scenario& scenario) {
  constexpr std::int64_t default_start_ms = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
  if (!scenario.statements.empty()) {
    if (const auto* clock = std::get_if<SetClock>(&scenario.statements.front().step))
      return clock->start;
  }
  return Instant{default_start_ms};
}

Result<Scenario> parse_scenario(std::string_view file, std::string_view text) {
  LOAM_TRY(lines, read_lines(file, text));
  Scenario scenario;
  scenario.file = file;
  for (Line& line : lines) {
    if (line.indented) {
      Block* block = scenario.statements.empty()
                         ? nullptr
                         : std::get_if<Block>(&scenario.statements.back().step);
      if (block == nullptr) {
        return fault_at(file, line, line.words.front().column,
                        "an indented line belongs to nothing",
                        "indent only below bill, ledger or issued");
      }
      block->line_last = line.number;
      block->lines.push_back(std::move(line));
      continue;
    }
    const bool is_clock = line.words.front().text == "clock";
    if (is_clock && !scenario.statements.empty()) {
      return fault_at(file, line, 1, "the clock is set after something happened",
                      "put clock first");
    }
    LOAM_TRY(statement, read_statement(file, std::move(line)));
    if (auto* block = std::get_if<Block>(&statement.step)) block->line_last = statement.line.number;
    scenario.statements.push_back(std::move(statement));
  }
  return scenario;
}

}  // namespace loam::sim
