#include "api/fake_daemon.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "billing/lease_rating.hpp"
#include "billing/record_parts.hpp"

namespace loam::api::testing {

Result<void> MemoryJournal::append(std::span<const Record> fresh) {
  if (full) return Error{ErrorKind::unavailable, "the disk is full", "make room"};
  records.insert(records.end(), fresh.begin(), fresh.end());
  return {};
}

Result<void> MemoryJournal::replay(std::uint64_t after,
                                   const std::function<Result<void>(const Record&)>& each) {
  for (const Record& record : records) {
    if (record.sequence > after) LOAM_CHECK(each(record));
  }
  return {};
}

FakeDaemon::FakeDaemon() : loop_(clock, journal, executor) {
  loop_.on_record([this](const Record& record) {
    project(record);
    if (on_record) on_record(record);
  });
}

engine::Answer FakeDaemon::run(Command command) {
  engine::Answer answer;
  post(std::move(command), {"test", "test"}, {},
       [&](const engine::Answer& given) { answer = given; });
  return answer;
}

void FakeDaemon::furnish() {
  run(AttachNode{"n1", "here", MilliCpu{64'000}, Mebibytes{262'144}});
  DeviceFacts facts;
  facts.uuid = "gpu-1";
  facts.type = "A100-SXM-80GB";
  facts.memory = Mebibytes{81'920};
  facts.factors_source = "catalogue";
  facts.factors = {MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}, MilliCe{100'000}};
  run(AttachDevice{"n1", facts});
  for (const char* name : {"acme", "beta"}) {
    TenantSpec spec;
    spec.name = name;
    spec.currency = Currency("USD");
    spec.credit_limit = Money::zero(spec.currency);
    const auto id = TenantId::parse(run(CreateTenant{spec}).subject);
    run(TopUp{*id, *Money::parse("1000", spec.currency), "first"});
  }
  RateCard card;
  card.on_demand = *Money::parse("0.02", card.currency);
  run(PublishRateCard{card});
}

void FakeDaemon::start(TaskId task) {
  LeaseId lease;
  Epoch epoch;
  read([&](const engine::State& state, Instant) {
    lease = state.tasks.at(task).leases.front();
    epoch = state.tasks.at(task).epoch;
  });
  run(ReportStarted{lease, epoch, clock.now()});
}

void FakeDaemon::end(TaskId task, Duration device_time, std::optional<std::int64_t> output) {
  ends_with_ = {device_time, output};
  end(task);
  ends_with_.reset();
}

void FakeDaemon::end(TaskId task, std::int64_t exit_code) {
  ReportEnded report;
  read([&](const engine::State& state, Instant) {
    report.lease = state.tasks.at(task).leases.front();
    report.epoch = state.tasks.at(task).epoch;
    report.started_at = state.leases.at(report.lease).started_at;
  });
  report.ended_at = clock.now();
  report.exit_code = exit_code;
  report.device_time = Duration{(report.ended_at - report.started_at).ms / 2};
  if (ends_with_) std::tie(report.device_time, report.output) = *ends_with_;
  run(report);
}

void FakeDaemon::post(Command command, Actor actor, RequestKey key,
                      std::function<void(const engine::Answer&)> reply) {
  const std::lock_guard lock(mutex_);
  ++commands_;
  std::vector<engine::Submission> batch;
  batch.push_back({std::move(command), std::move(actor), std::move(key), std::move(reply)});
  loop_.run(std::move(batch));
}

void FakeDaemon::read(const std::function<void(const engine::State&, Instant)>& look) {
  const std::lock_guard lock(mutex_);
  look(loop_.state(), clock.now());
}

Result<std::vector<TaskRecord>> FakeDaemon::tasks(const TaskFilter& filter) {
  const std::lock_guard lock(mutex_);
  std::vector<TaskRecord> found;
  for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
    const TaskRecord& record = task->second;
    const bool state_fits =
        filter.states.empty() ||
        std::count(filter.states.begin(), filter.states.end(), record.state) > 0;
    if ((filter.tenant && record.tenant != *filter.tenant) || !state_fits ||
        (!filter.name.empty() && record.spec.name != filter.name) ||
        (filter.before.valid() && !(record.id < filter.before))) {
      continue;
    }
    if (static_cast<std::int64_t>(found.size()) == filter.limit) break;
    found.push_back(record);
  }
  return found;
}

Result<std::optional<TaskRecord>> FakeDaemon::task(TaskId id) {
  const std::lock_guard lock(mutex_);
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? std::nullopt : std::optional(found->second);
}

Result<void> FakeDaemon::usage(TenantId tenant, Instant from, Instant to, const EachUsage& each) {
  const std::lock_guard lock(mutex_);
  for (const UsageRecord& record : usage_) {
    if (record.tenant != tenant || !billing::part_in(record, {from, to})) continue;
    const auto [measured, busy] = measured_in(
        record.lease, {std::min(record.from, record.to), std::max(record.from, record.to)});
    each(record, {isolation_of_.at(record.lease), region_of(record.lease), measured, busy});
  }
  return {};
}

void FakeDaemon::measure(LeaseId lease, Instant to, Duration device_time) {
  std::vector<Measure>& known = measures_[lease];
  Duration before;
  for (const Measure& each : known) before += each.device_time;
  const Instant from = known.empty() ? *leases_.at(lease).lease.started_at : known.back().period.to;
  if (from < to) known.push_back({{from, to}, device_time - before});
}

std::pair<Duration, Duration> FakeDaemon::measured_in(LeaseId lease,
                                                      const billing::Period& period) const {
  std::pair<Duration, Duration> sum;
  const auto known = measures_.find(lease);
  if (known == measures_.end()) return sum;
  for (const Measure& each : known->second) {
    const Duration part =
        std::min(each.period.to, period.to) - std::max(each.period.from, period.from);
    if (part.ms <= 0) continue;
    sum.first += part;
    sum.second += Duration{each.device_time.ms * part.ms / (each.period.to - each.period.from).ms};
  }
  return sum;
}

Result<std::vector<LeaseUse>> FakeDaemon::leases(const LeaseFilter& filter) {
  const std::lock_guard lock(mutex_);
  std::vector<LeaseUse> found;
  const bool timed = filter.from != Instant{} || filter.to != Instant::never();
  for (auto at = leases_.rbegin(); at != leases_.rend(); ++at) {
    LeaseUse use = at->second;
    const bool meets = use.lease.started_at && *use.lease.started_at < filter.to &&
                       (!use.lease.ended_at || *use.lease.ended_at > filter.from);
    const bool of_these =
        filter.tasks.empty() || std::count(filter.tasks.begin(), filter.tasks.end(), use.task) > 0;
    if ((filter.tenant && use.tenant != *filter.tenant) || !of_these || (timed && !meets) ||
        (filter.before.valid() && !(at->first < filter.before)))
      continue;
    if (static_cast<std::int64_t>(found.size()) == filter.limit) break;
    std::tie(use.lease.measured, use.lease.device_time) =
        measured_in(at->first, {filter.from, filter.to});
    for (const UsageRecord& record : usage_) {
      if (record.lease == at->first) use.net += record.net;
    }
    found.push_back(std::move(use));
  }
  return found;
}

Result<std::vector<CapacityPiece>> FakeDaemon::capacity(Instant from, Instant to) {
  const std::lock_guard lock(mutex_);
  std::vector<CapacityPiece> pieces;
  for (const auto& [device, steps] : capacity_) {
    const Device& known = loop_.state().device(device);
    const std::string name = device_name(loop_.state().node(known.node), known);
    for (auto step = steps.begin(); step != steps.end(); ++step) {
      const Instant begin = std::max(step->first, from);
      const Instant end =
          std::next(step) == steps.end() ? to : std::min(std::next(step)->first, to);
      if (begin < end && step->second.value > 0) pieces.push_back({name, begin, end, step->second});
    }
  }
  return pieces;
}

Result<std::vector<AdjustmentRecord>> FakeDaemon::adjustments(TenantId tenant, Instant from,
                                                              Instant to) {
  const std::lock_guard lock(mutex_);
  std::vector<AdjustmentRecord> found;
  for (const auto& [of, record] : adjustments_) {
    if (of == tenant && record.from >= from && record.from < to) found.push_back(record);
  }
  return found;
}

Result<std::vector<ReservationRecord>> FakeDaemon::reservations(std::optional<TenantId> tenant) {
  const std::lock_guard lock(mutex_);
  std::vector<ReservationRecord> found;
  for (const auto& [id, book] : loop_.state().reservations) {
    if (tenant && book.reservation.tenant != *tenant) continue;
    ReservationRecord record{book.reservation, {}, {}, {}};
    for (const PromisedMember& member : book.reservation.members) {
      for (const PromisedSlice& slice : member.slices) {
        const Device& device = loop_.state().device(slice.device);
        record.devices += (record.devices.empty() ? "" : ", ") +
                          device_name(loop_.state().node(device.node), device) + " " +
                          decimal_text(slice.share.value, 3);
      }
    }
    if (const auto end = reservation_ends_.find(id); end != reservation_ends_.end())
      std::tie(record.end, record.reason) = end->second;
    found.push_back(std::move(record));
  }
  return found;
}

Result<std::vector<TransactionRecord>> FakeDaemon::transactions(TenantId tenant,
                                                                TransactionId before,
                                                                std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<TransactionRecord> found;
  for (auto at = transactions_.rbegin(); at != transactions_.rend(); ++at) {
    if (at->transaction.tenant != tenant || (before.valid() && !(at->transaction.id < before)))
      continue;
    if (static_cast<std::int64_t>(found.size()) == limit) break;
    found.push_back(*at);
  }
  return found;
}

Result<std::vector<InvoiceRecord>> FakeDaemon::invoices(std::optional<TenantId> tenant,
                                                        InvoiceId before, std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<InvoiceRecord> found;
  for (auto at = invoices_.rbegin(); at != invoices_.rend(); ++at) {
    if ((tenant && at->invoice.tenant != *tenant) || (before.valid() && !(at->invoice.id < before)))
      continue;
    if (static_cast<std::int64_t>(found.size()) == limit) break;
    found.push_back(*at);
  }
  return found;
}

Result<std::optional<InvoiceRecord>> FakeDaemon::invoice(InvoiceId id) {
  const std::lock_guard lock(mutex_);
  for (const InvoiceRecord& record : invoices_) {
    if (record.invoice.id == id) return std::optional(record);
  }
  return std::optional<InvoiceRecord>();
}

Result<std::vector<CreditNoteRecord>> FakeDaemon::credit_notes(const CreditNoteFilter& filter) {
  const std::lock_guard lock(mutex_);
  std::vector<CreditNoteRecord> found;
  for (const CreditNoteRecord& record : credit_notes_) {
    const CreditNote& note = record.note;
    if ((!filter.tenant.valid() || note.tenant == filter.tenant) &&
        (!filter.invoice.valid() || note.invoice == filter.invoice) &&
        (!filter.only.valid() || note.id == filter.only))
      found.push_back(record);
  }
  return found;
}

Result<std::vector<SpotPriceRecord>> FakeDaemon::spot_prices(Currency currency, Instant from,
                                                             Instant to, std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<SpotPriceRecord> found;
  for (const SpotPriceRecord& record : spot_prices_) {
    if (record.from >= to || record.price.currency() != currency) continue;
    if (static_cast<std::int64_t>(found.size()) == limit) break;
    found.push_back(record);
    if (record.from <= from) break;
  }
  return found;
}

Result<std::vector<BudgetNotice>> FakeDaemon::budget_notices(const std::string& budget,
                                                             std::int64_t limit) {
  const std::lock_guard lock(mutex_);
  std::vector<BudgetNotice> found;
  for (auto at = notices_.rbegin(); at != notices_.rend(); ++at) {
    if (at->budget == budget && static_cast<std::int64_t>(found.size()) < limit)
      found.push_back(*at);
  }
  return found;
}

Result<Party> FakeDaemon::buyer(TenantId tenant, Instant at) {
  const std::lock_guard lock(mutex_);
  Party party;
  for (const auto& [since, known] : buyers_) {
    if (since.first == tenant && since.second <= at) party = known;
  }
  return party;
}

Result<void> FakeDaemon::set_buyer(TenantId tenant, const Party& party, Instant now) {
  const std::lock_guard lock(mutex_);
  if (party.empty()) {
    std::erase_if(buyers_, [&](const auto& entry) { return entry.first.first == tenant; });
  } else {
    buyers_[{tenant, now}] = party;
  }
  return {};
}

Result<void> FakeDaemon::channel_allowed(const std::string& channel) {
  if (channel.starts_with("http://")) return {};
  return Error{ErrorKind::permission_denied, "'" + channel + "' may not be told", "use a webhook"};
}

Result<LogPiece> FakeDaemon::read_log(TaskId task, LogStream stream, std::int64_t offset,
                                      std::int64_t bytes_max) {
  const std::lock_guard lock(mutex_);
  const std::string& text = logs[{task, stream}];
  const auto size = static_cast<std::int64_t>(text.size());
  LogPiece piece;
  piece.offset = std::min(std::max(offset, log_start), std::max(offset, size));
  if (piece.offset < size)
    piece.bytes =
        text.substr(static_cast<std::size_t>(piece.offset), static_cast<std::size_t>(bytes_max));
  piece.next_offset = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
  const auto record = tasks_.find(task);
  piece.ended = piece.next_offset >= size && record != tasks_.end() &&
                record->second.state == TaskState::finished;
  return piece;
}

Result<void> FakeDaemon::calibrate(
    const std::string& uuid, const std::function<void(double, const std::string&)>& progress) {
  progress(0.5, "matrix products");
  progress(1.0, "copies");
  if (uuid == "broken") return Error{ErrorKind::unavailable, "the device does not answer", {}};
  return {};
}

std::optional<LeaseLive> FakeDaemon::live(LeaseId lease) {
  const std::lock_guard lock(mutex_);
  const auto found = measured.find(lease);
  return found == measured.end() ? std::nullopt : std::optional(found->second);
}

Result<void> FakeDaemon::mount_allowed(const std::string& tenant, bool by_operator,
                                       const Mount& mount) {
  if (mounts_of_operators.count(mount.source) > 0 && by_operator) return {};
  if (mounts_of_operators.count(mount.source) + mounts_refused.count(mount.source) == 0) return {};
  return Error{ErrorKind::permission_denied, tenant + " may not mount " + mount.source,
               "choose a folder below /srv"};
}

Result<BackupDone> FakeDaemon::backup(const std::string& path) {
  if (path == "/exists") return Error{ErrorKind::conflict, path + " exists", "choose another"};
  return BackupDone{4096, static_cast<std::int64_t>(journal.records.size())};
}

void FakeDaemon::project(const Record& record) {
  const auto with_lease = [&](LeaseId lease) -> TaskRecord& {
    return tasks_.at(task_of_.at(lease));
  };
  if (const auto* e = std::get_if<TaskAccepted>(&record.event)) {
    TaskRecord task;
    task.id = e->task;
    task.tenant = e->tenant;
    task.spec = *e->spec;
    task.submitted_at = record.at;
    tasks_[e->task] = task;
    queued_[e->task] = record.at;
  } else if (const auto* e = std::get_if<LeaseGranted>(&record.event)) {
    task_of_[e->lease] = e->task;
    isolation_of_[e->lease] = e->isolation;
    TaskRecord& task = tasks_.at(e->task);
    task.state = TaskState::starting;
    task.attempts = e->epoch.value;
    task.lease = LeaseRecord{e->lease,       e->ce,
                             e->billable_ce, boost::describe::enum_to_string(e->isolation, "?"),
                             e->slices,      std::nullopt,
                             std::nullopt,   Duration{0},
                             Duration{0}};
    leases_[e->lease] = {*task.lease,
                         e->task,
                         task.tenant,
                         task.spec.name,
                         queued_.at(e->task),
                         record.at,
                         StopReason::none,
                         TaskOutcome::none,
                         Money::zero(loop_.state().tenant(task.tenant).spec.currency),
                         {}};
  } else if (const auto* e = std::get_if<AttemptStarted>(&record.event)) {
    TaskRecord& task = with_lease(e->lease);
    isolation_of_[e->lease] = e->isolation;
    task.state = TaskState::running;
    task.lease->started_at = e->started_at;
    leases_.at(e->lease).lease.started_at = e->started_at;
    if (!task.started_at) task.started_at = e->started_at;
  } else if (const auto* e = std::get_if<StopRequested>(&record.event)) {
    with_lease(e->lease).state = TaskState::stopping;
    leases_.at(e->lease).stop_reason = e->reason;
  } else if (const auto* e = std::get_if<UsageRated>(&record.event)) {
    usage_.push_back(e->record);
    TaskRecord& task = tasks_.at(e->record.task);
    task.billed_time += e->record.length();
    task.list += e->record.list;
    task.net += e->record.net;
    read([&](const engine::State& state, Instant) {
      task.tax += billing::tax_on(state.card(e->record.card).terms(), e->record.net);
    });
  } else if (const auto* e = std::get_if<LeaseEnded>(&record.event)) {
    TaskRecord& task = with_lease(e->lease);
    task.lease->ended_at = e->ended_at;
    LeaseUse& use = leases_.at(e->lease);
    use.lease.ended_at = e->ended_at;
    use.outcome = e->verdict.outcome;
    use.output = e->output;
    const bool told = e->device_time.ms > 0 || isolation_of_.at(e->lease) != Isolation::advisory;
    if (use.lease.started_at && told) measure(e->lease, e->ended_at, e->device_time);
    std::tie(task.lease->measured, task.lease->device_time) =
        measured_in(e->lease, {Instant{}, Instant::never()});
    if (e->output) task.output = task.output.value_or(0) + *e->output;
    if (task.lease->started_at) task.run_time += e->ended_at - *task.lease->started_at;
  } else if (const auto* e = std::get_if<TaskRequeued>(&record.event)) {
    tasks_.at(e->task).state = TaskState::waiting;
    queued_[e->task] = record.at;
    if (e->purchase_model) tasks_.at(e->task).spec.purchase_model = *e->purchase_model;
  } else if (const auto* e = std::get_if<TaskPaused>(&record.event)) {
    tasks_.at(e->task).state = TaskState::paused;
  } else if (const auto* e = std::get_if<TaskFinished>(&record.event)) {
    TaskRecord& task = tasks_.at(e->task);
    task.state = TaskState::finished;
    task.outcome = e->outcome;
    task.exit_code = e->exit_code;
    task.reason = e->reason;
    task.finished_at = record.at;
  } else if (const auto* e = std::get_if<TransactionPosted>(&record.event)) {
    transactions_.push_back({record.at, e->transaction});
  } else if (const auto* e = std::get_if<InvoiceIssued>(&record.event)) {
    invoices_.push_back(
        {record.at, e->invoice, usage_.empty() ? UsageId{} : usage_.back().id, record.sequence});
  } else if (const auto* e = std::get_if<CreditNoteIssued>(&record.event)) {
    credit_notes_.push_back({record.at, e->note});
  } else if (const auto* e = std::get_if<SpotPriceMoved>(&record.event)) {
    spot_prices_.insert(spot_prices_.begin(), {record.at, e->price, e->supply, e->demand});
  } else if (const auto* e = std::get_if<BudgetNoticed>(&record.event)) {
    notices_.push_back(e->notice);
  }
  project_besides(record);
}

AdjustmentRecord& FakeDaemon::adjust(const Record& record, TenantId tenant,
                                     const billing::Period& period, const AdjustmentLine& line) {
  AdjustmentRecord made{period.from, period.to, {}, line.lease, line, record.sequence};
  if (line.lease.valid()) {
    made.task = task_of_.at(line.lease);
    made.region = region_of(line.lease);
  }
  return adjustments_.emplace_back(tenant, std::move(made)).second;
}

std::string FakeDaemon::region_of(LeaseId lease) const {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.lease.slices.empty()) return {};
  const Device& device = loop_.state().device(found->second.lease.slices.front().device);
  return loop_.state().node(device.node).region;
}

void FakeDaemon::serve(DeviceId id, Instant at) {
  const Device& device = loop_.state().device(id);
  capacity_[id][at] = device.placeable() ? device.facts->factors.general : MilliCe{0};
}

void FakeDaemon::project_besides(const Record& record) {
  const auto credit = [&](const auto& event) {
    AdjustmentRecord& made = adjust(record, event.tenant, {event.from, event.to}, event.line);
    made.lease = event.lease;
    made.task = event.task;
    made.region = region_of(event.lease);
  };
  if (const auto* e = std::get_if<CommitmentBought>(&record.event)) {
    commitment_tags_[e->commitment.id] = e->commitment.attribution.tags;
  } else if (const auto* e = std::get_if<CommitmentCharged>(&record.event)) {
    AdjustmentRecord& made = adjust(record, e->tenant, {e->from, e->to}, e->line);
    made.commitment = e->commitment;
    made.tags = commitment_tags_.at(e->commitment);
  } else if (const auto* e = std::get_if<LostWorkCredited>(&record.event)) {
    credit(*e);
  } else if (const auto* e = std::get_if<ShortfallCredited>(&record.event)) {
    credit(*e);
  } else if (const auto* e = std::get_if<UseCovered>(&record.event)) {
    for (const AdjustmentLine& line : e->lines)
      adjust(record, e->tenant, {e->hour, e->hour + Duration::hours(1)}, line);
  } else if (const auto* e = std::get_if<ServicesUsed>(&record.event)) {
    for (const AdjustmentLine& line : e->lines) {
      AdjustmentRecord& made = adjust(record, e->tenant, {e->from, e->to}, line);
      made.task = e->task;
      made.region = region_of(e->lease.valid() ? e->lease : tasks_.at(e->task).lease->id);
    }
    if (e->lease.valid() && e->device_time) measure(e->lease, e->to, *e->device_time);
  } else if (const auto* e = std::get_if<DeviceAttached>(&record.event)) {
    capacity_[e->device][record.at] = e->facts.factors.general;
  } else if (const auto* e = std::get_if<DeviceHealthChanged>(&record.event)) {
    // What drains is out of service at once here: no test runs on it meanwhile.
    serve(e->device, e->health == DeviceHealth::lost ? e->seen_at : record.at);
  } else if (const auto* e = std::get_if<DeviceDrainChanged>(&record.event)) {
    serve(e->device, record.at);
  } else if (const auto* e = std::get_if<TokensUsed>(&record.event)) {
    for (const AdjustmentLine& line : e->charged)
      adjust(record, e->use.caller, {e->use.from, e->use.to}, line).tags = e->use.tags;
    for (const AdjustmentLine& line : e->earned)
      adjust(record, e->use.owner, {e->use.from, e->use.to}, line).tags = e->use.owner_tags;
  } else if (const auto* e = std::get_if<ReservationEnded>(&record.event)) {
    reservation_ends_[e->reservation] = {e->end, e->reason};
  } else if (const auto* e = std::get_if<ReservationCharged>(&record.event)) {
    for (const AdjustmentLine& line : e->lines) {
      AdjustmentRecord& made = adjust(record, e->tenant, {e->from, e->to}, line);
      made.reservation = e->reservation;
      read([&](const engine::State& state, Instant) {
        const Reservation& reservation = state.reservations.at(e->reservation).reservation;
        made.tags = reservation.order.attribution.tags;
        const DeviceId first = reservation.members.front().slices.front().device;
        if (made.region.empty()) made.region = state.node(state.device(first).node).region;
      });
    }
  }
}

}  // namespace loam::api::testing
