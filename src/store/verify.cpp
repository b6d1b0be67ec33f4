#include "store/verify.hpp"

#include <map>

#include "base/money.hpp"
#include "store/columns.hpp"
#include "store/journal_reader.hpp"
#include "store/projector.hpp"
#include "store/schema.hpp"
#include "store/snapshots.hpp"

namespace loam::store {

namespace {

// A file with more faults than this is not better known by listing them all.
constexpr std::size_t problems_max = 20;

class Verification {
 public:
  Verification(Database& file, Database& fresh) : file_(file), fresh_(fresh) {
    report_.path = file.path();
  }

  Result<VerifyReport> run() {
    LOAM_CHECK(check_structure());
    LOAM_TRY(whole, check_records());
    if (whole) {
      LOAM_CHECK(check_projections());
      LOAM_CHECK(check_transactions());
      LOAM_CHECK(check_usage());
      LOAM_CHECK(check_invoices());
    }
    LOAM_CHECK(check_snapshots());
    return std::move(report_);
  }

 private:
  void problem(std::string text) {
    if (report_.problems.size() < problems_max) report_.problems.push_back(std::move(text));
  }
  void checked(std::string text) { report_.checked.push_back(std::move(text)); }
  // Turns damage into a finding; other failures stay failures.
  template <class T>
  bool damaged(const Result<T>& result) {
    if (result.ok() || result.error().kind == ErrorKind::unavailable) return false;
    problem(result.error().message);
    return true;
  }

  Result<void> check_structure() {
    LOAM_TRY(rows, file_.prepare("PRAGMA integrity_check(20)"));
    bool good = true;
    while (true) {
      auto more = rows.step();
      if (damaged(more)) return {};
      if (!more) return more.error();
      if (!*more) break;
      if (rows.text(0) == "ok") continue;
      good = false;
      problem("SQLite: " + std::string(rows.text(0)));
    }
    if (good) checked("the file's structure (SQLite integrity check)");
    return {};
  }

  // Reads every record into fresh projections. False: the rest cannot be checked.
  Result<bool> check_records() {
    LOAM_CHECK(fresh_.execute("BEGIN"));
    LOAM_CHECK(create_core(fresh_));
    LOAM_CHECK(create_projections(fresh_));
    LOAM_TRY(projector, Projector::prepare(fresh_));
    auto opened = JournalReader::open(file_, 0);
    if (damaged(opened)) return false;
    if (!opened) return opened.error();
    JournalReader reader = std::move(*opened);
    while (true) {
      auto more = reader.next();
      if (damaged(more)) return false;
      if (!more) return more.error();
      if (!*more) break;
      auto record = reader.record();
      if (damaged(record)) return false;
      if (!record) return record.error();
      auto applied = projector.apply(*record);
      if (!applied) {
        if (applied.error().kind != ErrorKind::corrupt) return applied.error();
        problem("record " + std::to_string(record->sequence) + ": " + applied.error().message);
        return false;
      }
      if (record->sequence == 1) report_.first = record->at;
      report_.records = record->sequence;
      report_.last = record->at;
    }
    LOAM_CHECK(fresh_.execute("COMMIT"));
    report_.head = store::to_text(reader.hash());
    checked(std::to_string(report_.records) +
            " records: hash chain, numbering, order of time, every event readable");
    return true;
  }

  Result<void> check_projections() {
    auto marked = read_meta(file_, meta_key::projection_sequence, "0");
    if (damaged(marked)) return {};
    if (!marked) return marked.error();
    if (*marked != std::to_string(report_.records)) {
      problem("the projections stand at record " + *marked + ", the journal at " +
              std::to_string(report_.records));
      return {};
    }
    bool good = true;
    for (const ProjectionTable& table : projection_tables()) {
      LOAM_TRY(same, same_rows(table));
      good = good && same;
    }
    if (good) checked("the projections, against new ones made from the journal");
    return {};
  }

  static std::string cell(const Statement& row, int column) {
    return row.is_null(column) ? "NULL" : "'" + std::string(row.text(column)) + "'";
  }

  Result<bool> same_rows(const ProjectionTable& table) {
    const std::string name = table.name;
    const std::string sql = "SELECT * FROM " + name + " ORDER BY " + table.order;
    auto prepared = file_.prepare(sql);
    if (!prepared) {
      problem("the projection '" + name + "' is not readable: " + prepared.error().message);
      return false;
    }
    Statement found = std::move(*prepared);
    LOAM_TRY(expected, fresh_.prepare(sql));
    for (std::int64_t at = 1;; ++at) {
      auto there = found.step();
      if (damaged(there)) return false;
      if (!there) return there.error();
      LOAM_TRY(wanted, expected.step());
      const std::string place = "row " + std::to_string(at) + " of the projection '" + name + "'";
      if (*there != wanted) {
        problem(place + (wanted ? " is missing" : " is not in the journal"));
        return false;
      }
      if (!wanted) return true;
      for (int column = 0; column < expected.columns(); ++column) {
        const std::string have = cell(found, column);
        const std::string want = cell(expected, column);
        if (have == want) continue;
        problem(place + " holds " + have + " where the journal gives " + want);
        return false;
      }
    }
  }

  // Every transaction's postings sum to zero in each currency.
  Result<void> check_transactions() {
    LOAM_TRY(rows, fresh_.prepare("SELECT transaction_id, currency, amount FROM postings "
                                  "ORDER BY transaction_id, currency"));
    std::map<Currency, Money> sums;
    std::int64_t current = 0;
    std::int64_t transactions = 0;
    bool good = true;
    const auto close = [&] {
      for (const auto& [currency, sum] : sums) {
        if (sum.is_zero()) continue;
        good = false;
        problem("the postings of transaction x" + std::to_string(current) + " sum to " +
                loam::to_text(sum) + ", not to zero");
      }
      sums.clear();
    };
    while (true) {
      LOAM_TRY(more, rows.step());
      if (!more) break;
      Columns columns(rows);
      const std::int64_t transaction = columns.integer();
      if (transaction != current) {
        close();
        current = transaction;
        ++transactions;
      }
      const Currency currency = columns.currency();
      const Money amount = columns.money(currency);
      LOAM_CHECK(columns.done("a posting"));
      auto [sum, is_new] = sums.try_emplace(currency, Money::zero(currency));
      sum->second += amount;
    }
    close();
    if (good) checked(std::to_string(transactions) + " transactions: postings sum to zero");
    return {};
  }

  // The usage records of a lease tile its run time: no gap, no overlap.
  Result<void> check_usage() {
    LOAM_TRY(rows, fresh_.prepare("SELECT u.lease_id, u.from_ms, u.to_ms, l.started_ms, l.ended_ms "
                                  "FROM usage u LEFT JOIN leases l ON l.id = u.lease_id "
                                  "ORDER BY u.lease_id, u.from_ms, u.to_ms"));
    std::int64_t current = 0;
    Instant expected;
    Instant ended = Instant::never();
    std::int64_t records = 0;
    bool good = true;
    const auto fault = [&](const std::string& what) {
      good = false;
      problem("lease l" + std::to_string(current) + ": " + what);
    };
    const auto close = [&] {
      if (current != 0 && ended != Instant::never() && expected != ended)
        fault("billed until " + loam::to_text(expected) + ", but it ended at " +
              loam::to_text(ended));
    };
    while (true) {
      LOAM_TRY(more, rows.step());
      if (!more) break;
      Columns columns(rows);
      const std::int64_t lease = columns.integer();
      const Instant from = columns.instant();
      const Instant to = columns.instant();
      const Instant started = columns.instant();
      if (lease != current) {
        close();
        current = lease;
        expected = started;
        ended = columns.instant();
      }
      if (from != expected)
        fault("usage from " + loam::to_text(from) + " does not follow " + loam::to_text(expected));
      if (to < from) fault("usage that ends before it begins");
      expected = to;
      ++records;
    }
    close();
    LOAM_TRY(unbilled,
             fresh_.prepare("SELECT id FROM leases WHERE ended_ms > started_ms AND id NOT "
                            "IN (SELECT lease_id FROM usage)"));
    while (true) {
      LOAM_TRY(more, unbilled.step());
      if (!more) break;
      current = unbilled.integer(0);
      fault("ran and was never billed");
    }
    if (good) checked(std::to_string(records) + " usage records tile their leases");
    return {};
  }

  // The payable amounts of an invoice's lines and its taxes sum to its total.
  Result<void> check_invoices() {
    LOAM_TRY(rows,
             fresh_.prepare("SELECT i.id, i.currency, i.total, l.payable FROM invoices i LEFT JOIN "
                            "(SELECT invoice_id, payable FROM invoice_lines UNION ALL "
                            "SELECT invoice_id, amount FROM invoice_taxes) l "
                            "ON l.invoice_id = i.id"));
    std::map<std::int64_t, std::pair<Money, Money>> invoices;  // total, sum of lines
    while (true) {
      LOAM_TRY(more, rows.step());
      if (!more) break;
      Columns columns(rows);
      const std::int64_t id = columns.integer();
      const Currency currency = columns.currency();
      const Money total = columns.money(currency);
      const Money payable = columns.is_null() ? Money::zero(currency) : columns.money(currency);
      LOAM_CHECK(columns.done("invoice inv-" + std::to_string(id)));
      auto [entry, is_new] = invoices.try_emplace(id, total, Money::zero(currency));
      entry->second.second += payable;
    }
    bool good = true;
    for (const auto& [id, sums] : invoices) {
      if (sums.first == sums.second) continue;
      good = false;
      problem("the lines of invoice inv-" + std::to_string(id) + " sum to " +
              loam::to_text(sums.second) + ", its total is " + loam::to_text(sums.first));
    }
    if (good)
      checked(std::to_string(invoices.size()) + " invoices: lines and taxes sum to the total");
    return {};
  }

  Result<void> check_snapshots() {
    auto sequences = snapshot_sequences(file_);
    if (damaged(sequences)) return {};
    if (!sequences) return sequences.error();
    bool good = true;
    for (const std::int64_t sequence : *sequences) {
      auto text = read_snapshot_text(file_, sequence);
      if (damaged(text)) {
        good = false;
        continue;
      }
      if (!text) return text.error();
    }
    if (good) checked(std::to_string(sequences->size()) + " snapshots are whole");
    return {};
  }

  Database& file_;
  Database& fresh_;
  VerifyReport report_;
};

}  // namespace

Result<VerifyReport> verify_journal(const std::string& path) {
  LOAM_CHECK(check_journal_file(path));
  LOAM_TRY(file, Database::open(path, OpenMode::read_only));
  LOAM_CHECK(check_versions(file));
  LOAM_CHECK(file.execute("BEGIN"));
  LOAM_TRY(fresh, Database::temporary());
  return Verification(file, fresh).run();
}

}  // namespace loam::store
