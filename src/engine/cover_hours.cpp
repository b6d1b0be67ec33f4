#include "engine/cover_hours.hpp"

#include <algorithm>

#include "billing/attribution.hpp"
#include "billing/commitments.hpp"

namespace loam::engine {
namespace {

bool same_line(const AdjustmentLine& a, const AdjustmentLine& b) {
  return a.lease == b.lease && a.card == b.card && a.month_end == b.month_end && a.key == b.key;
}

AdjustmentLine negative(AdjustmentLine line) {
  line.milli_ce_ms = -line.milli_ce_ms;
  line.list = -line.list;
  line.net = -line.net;
  return line;
}

}  // namespace

Instant hour_of(Instant instant) {
  return Instant{instant.ms / cover_interval.ms * cover_interval.ms};
}

CoverPiece piece_of(const UsageRecord& record, const Lease& lease, const Task& task,
                    const billing::Period& period, PurchaseModel model) {
  CoverPiece piece;
  piece.lease = lease.id;
  piece.since = lease.started_at;
  piece.from = period.from;
  piece.to = period.to;
  piece.ce = record.billable_ce;
  piece.list = record.list;
  piece.net = record.net;
  piece.length = record.length();
  piece.key = billing::key_of(task.spec->attribution);
  piece.key.kind = InvoiceLineKind::covered;
  piece.key.purchase_model = model;
  piece.key.tariff = record.tariff;
  piece.key.window = record.window;
  piece.key.unit_price = record.unit_price;
  piece.card = record.card;
  piece.month_end = record.month_end;
  return piece;
}

bool trim_pieces(CoverHours& hours, LeaseId lease, Instant end) {
  bool changed = false;
  for (auto at = hours.lower_bound(hour_of(end)); at != hours.end(); ++at) {
    CoverHour& of = at->second;
    for (CoverPiece& piece : of.pieces) {
      if (piece.lease != lease || piece.to <= end) continue;
      piece.to = std::max(piece.from, end);
      changed = of.due = true;
    }
    std::erase_if(of.pieces, [](const CoverPiece& piece) { return piece.to <= piece.from; });
  }
  return changed;
}

AdjustmentLine given_back(const CoverPiece& piece, Int128 milli_ce_ms) {
  AdjustmentLine line;
  line.lease = piece.lease;
  line.key = piece.key;
  line.card = piece.card;
  line.month_end = piece.month_end;
  line.milli_ce_ms = static_cast<std::int64_t>(milli_ce_ms);
  line.list = billing::covered_part(piece.list, milli_ce_ms, piece.ce, piece.length);
  line.net = billing::covered_part(piece.net, milli_ce_ms, piece.ce, piece.length);
  return negative(line);
}

void add_to(std::vector<AdjustmentLine>& lines, const AdjustmentLine& line) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const AdjustmentLine& each) {
    return same_line(each, line);
  });
  if (found == lines.end()) {
    lines.push_back(line);
    return;
  }
  found->milli_ce_ms += line.milli_ce_ms;
  found->list += line.list;
  found->net += line.net;
}

std::vector<AdjustmentLine> change_from(const std::vector<AdjustmentLine>& given,
                                        std::vector<AdjustmentLine> lines) {
  for (const AdjustmentLine& line : given) add_to(lines, negative(line));
  std::erase_if(lines, [](const AdjustmentLine& line) {
    return line.milli_ce_ms == 0 && line.net.is_zero() && line.list.is_zero();
  });
  return lines;
}

void forget_hours(CoverHours& hours, Instant before) {
  while (!hours.empty() && !hours.begin()->second.due &&
         hours.begin()->first + cover_hours_kept < before)
    hours.erase(hours.begin());
}

}  // namespace loam::engine
