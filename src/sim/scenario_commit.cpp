// Commitments, reservations and shortfalls of scenarios. Pure.
#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {

// commit TENANT ce=10|spend=1USD [months=1] [from=INSTANT] [until=INSTANT] [anchor=INSTANT]
// [project=]
Result<Step> read_commit(Words& words) {
  CommitStep step;
  LOAM_TRY(tenant, words.next("the tenant"));
  step.tenant = tenant->text;
  if (words.attribute("ce") == nullptr && words.attribute("spend") == nullptr)
    return words.fault_here("ce= is missing", "say how much is committed: ce=10, or spend=1USD");
  LOAM_CHECK(words.take("ce", step.order.ce, parse_ce));
  LOAM_CHECK(words.take("spend", step.order.spend, parse_amount));
  LOAM_CHECK(words.take("months", step.order.months, parse_count));
  LOAM_CHECK(words.take("from", step.order.from, parse_instant));
  LOAM_CHECK(words.take("until", step.order.until, parse_instant));
  LOAM_CHECK(words.take("anchor", step.order.anchor, parse_instant));
  LOAM_CHECK(words.take("project", step.order.attribution.project, parse_text));
  return Step(std::move(step));
}

// reserve TENANT ce=|share=|devices= [memory=] [gang=] [device=] [cpu=] [tariff=] [queue=]
// [project=] [from=TIME] to=TIME
Result<Step> read_reserve(Words& words) {
  ReserveStep step;
  LOAM_TRY(tenant, words.next("the tenant"));
  step.tenant = tenant->text;
  ReservationOrder& order = step.order;
  LOAM_CHECK(words.take("ce", order.request.ce, parse_ce));
  LOAM_CHECK(read_request(words, order.request));
  LOAM_CHECK(words.take("gang", order.gang, parse_count));
  LOAM_CHECK(words.take("tariff", order.tariff, parse_name_of<Tariff>));
  LOAM_CHECK(words.take("queue", order.queue, parse_text));
  LOAM_CHECK(words.take("project", order.attribution.project, parse_text));
  LOAM_CHECK(words.take("from", step.from, parse_at));
  if (words.attribute("to") == nullptr)
    return words.fault_here("to= is missing", "say up to when: to=2h, or an instant");
  LOAM_CHECK(words.take("to", step.to, parse_at));
  return Step(std::move(step));
}

// reservation=rsv-1
Result<void> read_reservation(Words& words, TaskSpec& spec) {
  const Word* word = words.attribute("reservation");
  if (word == nullptr) return {};
  const auto id = ReservationId::parse(word->text);
  if (!id) return words.fault(*word, "'" + word->text + "' is no reservation", "write it as rsv-1");
  spec.reservation = *id;
  spec.purchase_model = PurchaseModel::reservation;
  return {};
}

// cancel com-1, cancel rsv-1
Result<Step> read_cancel(Words& words) {
  LOAM_TRY(word, words.next("the commitment, or the reservation"));
  CancelStep step;
  if (const auto id = CommitmentId::parse(word->text)) {
    step.commitment = *id;
  } else if (const auto reservation = ReservationId::parse(word->text)) {
    step.reservation = *reservation;
  } else {
    return words.fault(*word, "'" + word->text + "' is no commitment and no reservation",
                       "write it as com-1, or as rsv-1");
  }
  return Step(step);
}

// shortfall TASK for=60s promised=50% got=40% [ago=0s] [slice=0] [epoch=1]
Result<Step> read_shortfall(Words& words) {
  ShortfallStep step;
  LOAM_TRY(task, words.next("the task"));
  step.task = task->text;
  if (words.attribute("for") == nullptr)
    return words.fault_here("for= is missing", "say how long it lasted: for=60s");
  LOAM_CHECK(words.take("for", step.lasts, parse_duration));
  LOAM_CHECK(words.take("ago", step.ago, parse_duration));
  LOAM_CHECK(words.take("promised", step.promised, parse_percent));
  LOAM_CHECK(words.take("got", step.delivered, parse_percent));
  LOAM_CHECK(words.take("slice", step.slice, parse_count));
  LOAM_CHECK(words.take("epoch", step.epoch, parse_count));
  return Step(std::move(step));
}

BuyCommitment order_of(const CommitStep& step, TenantId tenant) {
  BuyCommitment order = step.order;
  order.tenant = tenant;
  return order;
}

MakeReservation order_of(const ReserveStep& step, TenantId tenant, Instant start, Instant now) {
  const auto instant_of = [&](const At& at) {
    if (at.kind == At::Kind::instant) return at.instant;
    return (at.kind == At::Kind::after_last ? now : start) + at.after;
  };
  MakeReservation order{tenant, step.order};
  if (step.from) order.order.from = instant_of(*step.from);
  order.order.to = instant_of(step.to);
  return order;
}

Command order_of(const CancelStep& step) {
  if (step.reservation.valid()) return CancelReservation{step.reservation, "scenario"};
  return CancelCommitment{step.commitment, "scenario"};
}

ReportShortfall report_of(const ShortfallStep& step, LeaseId lease, Epoch last, Instant now) {
  ReportShortfall report;
  report.lease = lease;
  report.epoch = step.epoch ? Epoch{static_cast<std::uint32_t>(*step.epoch)} : last;
  report.slice = step.slice;
  report.to = now - step.ago;
  report.from = report.to - step.lasts;
  report.promised = step.promised;
  report.delivered = step.delivered;
  return report;
}

}  // namespace loam::sim
