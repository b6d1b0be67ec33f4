// Nodes' reports that a scenario makes by hand. Pure.
#include "sim/scenario.hpp"
#include "sim/scenario_words.hpp"

namespace loam::sim {
namespace {

// "36864000", "-1".
Result<std::int64_t> parse_figure(std::string_view text) {
  constexpr std::int64_t figure_max = 1'000'000'000'000'000;
  const bool below = text.starts_with('-');
  LOAM_TRY(figure, parse_decimal(below ? text.substr(1) : text, 0, figure_max, "figure"));
  return below ? -figure : figure;
}

}  // namespace

// report TASK started|ended|services [epoch=1] [ago=5s] [began=1h] [exit=0] [as=exited]
// [mib_seconds=] [bytes=] [busy=24m]
Result<Step> read_report(Words& words) {
  LOAM_TRY(task, words.next("the task"));
  LOAM_TRY(what, words.next("started, ended or services"));
  Report report;
  report.task = task->text;
  if (what->text == "ended") {
    report.kind = Report::Kind::ended;
  } else if (what->text == "services") {
    report.kind = Report::Kind::services;
  } else if (what->text != "started") {
    return words.fault(*what, "'" + what->text + "' is not reported",
                       "write started, ended or services");
  }
  LOAM_CHECK(words.take("epoch", report.epoch, parse_count));
  LOAM_CHECK(words.take("ago", report.ago, parse_duration));
  LOAM_CHECK(words.take("began", report.began, parse_duration));
  LOAM_CHECK(words.take("exit", report.exit_code, parse_count));
  LOAM_CHECK(words.take("as", report.end, parse_name_of<AttemptEnd>));
  LOAM_CHECK(words.take("mib_seconds", report.mib_seconds, parse_figure));
  LOAM_CHECK(words.take("bytes", report.bytes, parse_figure));
  LOAM_CHECK(words.take("busy", report.busy, parse_duration));
  return Step(report);
}

Command report_of(const Report& step, LeaseId lease, Epoch last, Instant now) {
  const Epoch epoch = step.epoch ? Epoch{static_cast<std::uint32_t>(*step.epoch)} : last;
  const Instant when = now - step.ago;
  if (step.kind == Report::Kind::started) return ReportStarted{lease, epoch, when};
  ServiceReport services;
  services.use.storage_mib_ms = step.mib_seconds * 1000;
  services.use.received_bytes = step.bytes;
  if (step.kind == Report::Kind::services)
    return ReportServices{lease, epoch, when, services, step.busy};
  ReportEnded report;
  report.lease = lease;
  report.epoch = epoch;
  if (step.began) report.started_at = now - *step.began;
  report.ended_at = when;
  report.exit_code = step.exit_code;
  report.end = step.end;
  report.device_time = step.busy.value_or(Duration{});
  report.services = services;
  return report;
}

}  // namespace loam::sim
