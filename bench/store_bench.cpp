// The store: durable commands by group commit, what projections cost, how long an append waits
// while a snapshot is written, and pages of many tasks.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "bench/bench.hpp"
#include "domain/event_codec.hpp"
#include "engine/loop.hpp"
#include "engine/snapshot.hpp"
#include "store/journal.hpp"
#include "store/queries.hpp"
#include "store/schema.hpp"
#include "store/snapshots.hpp"

namespace loam::bench {
namespace {

constexpr std::size_t clients = 64;
constexpr Instant start{1'772'409'600'000};

// A data folder on the disk that the journal would be on: the current one, not a tmpfs.
class Folder {
 public:
  Folder() {
    std::string pattern = "loam-bench-XXXXXX";
    if (const char* made = mkdtemp(pattern.data())) path_ = made;
  }
  ~Folder() {
    std::error_code fault;
    if (!path_.empty()) std::filesystem::remove_all(path_, fault);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class StepClock final : public engine::Clock {
 public:
  Instant now() override { return at; }
  Instant at = start;
};

// Keeps what is to be launched; the next batch reports it.
class Launches final : public engine::Executor {
 public:
  void launch(const engine::State&, const engine::LaunchEffect& effect) override {
    waiting.push_back(effect);
  }
  void stop(const engine::State&, const engine::StopEffect&) override {}
  std::vector<engine::LaunchEffect> waiting;
};

class MemoryJournal final : public engine::Journal {
 public:
  Result<void> append(std::span<const Record> records) override {
    kept.insert(kept.end(), records.begin(), records.end());
    return {};
  }
  Result<void> replay(std::uint64_t, const std::function<Result<void>(const Record&)>&) override {
    return {};
  }
  Result<engine::StateImage> load_snapshot() override { return engine::StateImage{}; }
  std::vector<Record> kept;
};

// 64 clients that submit tasks, and the node that reports their starts and ends: each round is one
// batch of up to 64 of each.
class Traffic {
 public:
  explicit Traffic(engine::Journal& journal) : loop_(clock_, journal, launches_) {}

  Result<void> found() {
    LOAM_CHECK(loop_.recover());
    send(AttachNode{"n1", "lab", {}, {}});
    for (std::size_t i = 0; i < clients; ++i) {
      DeviceFacts facts;
      facts.uuid = "GPU-" + std::to_string(i);
      facts.type = "H100-SXM";
      facts.memory = Mebibytes{81'920};
      facts.factors = {MilliCe{228'000}, MilliCe{228'000}, MilliCe{228'000}, MilliCe{228'000}};
      send(AttachDevice{"n1", facts});
    }
    RateCard card;
    card.effective_from = start;
    card.on_demand = *Money::parse("0.02", Currency("USD"));
    send(PublishRateCard{card});
    TenantSpec tenant;
    tenant.name = "acme";
    send(CreateTenant{tenant});
    send(TopUp{TenantId{1}, *Money::parse("1000000000", Currency("USD")), "bench"});
    loop_.run(std::exchange(batch_, {}));
    return refused_ == 0 ? Result<void>() : invalid("the engine refused the set-up");
  }

  // Returns the commands that were made durable.
  std::size_t round() {
    clock_.at = clock_.at + Duration{20};
    for (const engine::LaunchEffect& ended : running_) {
      ReportEnded report;
      report.lease = ended.lease;
      report.epoch = ended.epoch;
      report.started_at = report.ended_at = clock_.at;
      send(report);
    }
    running_ = std::exchange(launches_.waiting, {});
    for (const engine::LaunchEffect& launched : running_)
      send(ReportStarted{launched.lease, launched.epoch, clock_.at});
    for (std::size_t i = 0; i < clients; ++i) {
      TaskSpec spec;
      spec.name = "step";
      spec.command = {"/usr/bin/train", "--config", "/data/experiment.toml"};
      spec.request.share = whole_device;
      send(SubmitTask{TenantId{1}, spec},
           RequestKey{"socket:uid:1000", "key-" + std::to_string(++keys_), "fingerprint"});
    }
    const std::size_t sent = batch_.size();
    loop_.run(std::exchange(batch_, {}));
    return sent;
  }

  std::size_t refused() const { return refused_; }
  const engine::State& state() const { return loop_.state(); }

 private:
  void send(Command command, RequestKey key = {}) {
    batch_.push_back({std::move(command), Actor{"socket", "uid:1000"}, std::move(key),
                      [this](const engine::Answer& answer) { refused_ += answer.ok() ? 0 : 1; }});
  }

  StepClock clock_;
  Launches launches_;
  engine::Loop loop_;
  std::vector<engine::Submission> batch_;
  std::vector<engine::LaunchEffect> running_;
  std::size_t refused_ = 0;
  std::uint64_t keys_ = 0;
};

// Records as traffic makes them, for appending again and again.
Result<std::vector<Record>> recorded(int rounds) {
  MemoryJournal journal;
  Traffic traffic(journal);
  LOAM_CHECK(traffic.found());
  for (int i = 0; i < rounds; ++i) traffic.round();
  return std::move(journal.kept);
}

// Calls `append` with batches of 64 records; returns each call's milliseconds.
Result<std::vector<double>> append_all(
    const std::vector<Record>& records,
    const std::function<Result<void>(std::span<const Record>)>& append) {
  std::vector<double> milliseconds;
  Result<void> done;
  for (std::size_t at = 0; at < records.size() && done.ok(); at += clients) {
    const std::size_t count = std::min(clients, records.size() - at);
    milliseconds.push_back(
        1e3 * seconds_of([&] { done = append(std::span(records).subspan(at, count)); }));
  }
  if (!done) return done.error();
  return milliseconds;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

// The same rows, chained and durable, without projections.
Result<std::vector<double>> append_bare(const std::vector<Record>& records) {
  Folder folder;
  std::vector<std::string> notes;
  const std::string path = folder.path() + "/bare.db";
  LOAM_CHECK(store::create_journal_file(path, notes));
  LOAM_TRY(database, store::Database::open(path, store::OpenMode::read_write));
  LOAM_CHECK(database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"));
  LOAM_TRY(insert, database.prepare("INSERT INTO journal VALUES(?,?,?,?,?,?,?,?)"));
  store::ChainHash hash = store::chain_start;
  return append_all(records, [&](std::span<const Record> batch) -> Result<void> {
    LOAM_CHECK(database.execute("BEGIN IMMEDIATE"));
    for (const Record& record : batch) {
      const EncodedEvent encoded = encode(record.event);
      const store::ChainRow row{static_cast<std::int64_t>(record.sequence),
                                record.at.ms,
                                record.actor.issuer,
                                record.actor.subject,
                                encoded.type,
                                encoded.version,
                                encoded.payload};
      hash = store::chain_hash(hash, row);
      LOAM_CHECK(insert.run(row.sequence, row.at_ms, row.issuer, row.subject, row.type, row.version,
                            row.payload, store::Blob(hash)));
    }
    return database.execute("COMMIT");
  });
}

Result<std::unique_ptr<store::SqliteJournal>> fresh_journal(const Folder& folder) {
  if (folder.path().empty())
    return Error{ErrorKind::unavailable, "cannot make a folder here", "run where you may write"};
  return store::SqliteJournal::open(folder.path() + "/data");
}

LOAM_BENCHMARK(store, {{"store.durable_commands_per_second", "1/s", at_least(5'000)},
                       {"store.records_per_second", "1/s"},
                       {"store.append_ms_p50", "ms"},
                       {"store.append_ms_p99", "ms"},
                       {"store.projection_cost", "ratio"},
                       {"store.replay_records_per_second", "1/s"}}) {
  {
    Folder folder;
    LOAM_TRY(journal, fresh_journal(folder));
    Traffic traffic(*journal);
    LOAM_CHECK(traffic.found());
    std::size_t commands = 0;
    double seconds = 0;
    report.progress("64 clients");
    while (seconds < 3) seconds += seconds_of([&] { commands += traffic.round(); });
    if (traffic.refused() > 0) return invalid("the engine refused commands of the benchmark");
    report.set("store.durable_commands_per_second", static_cast<double>(commands) / seconds,
               "engine, journal and projections; 64 clients and their node; one sync a batch");
  }
  LOAM_TRY(records, recorded(200));
  report.progress("appends");
  LOAM_TRY(bare, append_bare(records));
  Folder folder;
  LOAM_TRY(journal, fresh_journal(folder));
  LOAM_TRY(whole, append_all(records, [&](auto batch) { return journal->append(batch); }));
  report.set("store.records_per_second", 1e3 * static_cast<double>(records.size()) / sum(whole),
             "batches of 64 records");
  report.set("store.append_ms_p50", percentile(whole, 50), "64 records");
  report.set("store.append_ms_p99", percentile(whole, 99), "64 records, checkpoints included");
  report.set("store.projection_cost", sum(whole) / sum(bare),
             "time of an append with projections, against the bare journal");
  std::size_t replayed = 0;
  const double seconds = seconds_of([&] {
    static_cast<void>(journal->replay(0, [&](const Record&) -> Result<void> {
      ++replayed;
      return {};
    }));
  });
  report.set("store.replay_records_per_second", static_cast<double>(replayed) / seconds,
             "chain checked, events decoded");
  return {};
}

// A snapshot of this size is what 100,000 devices come to.
constexpr std::size_t snapshot_bytes = 48 << 20;

LOAM_BENCHMARK(store_snapshot, {{"store_snapshot.append_ms_p50", "ms"},
                                {"store_snapshot.append_ms_p99", "ms"},
                                {"store_snapshot.seconds", "s"}}) {
  LOAM_TRY(records, recorded(400));
  Folder folder;
  LOAM_TRY(journal, fresh_journal(folder));
  const std::size_t first = std::min<std::size_t>(records.size(), 6'400);
  LOAM_CHECK(append_all({records.begin(), records.begin() + static_cast<std::ptrdiff_t>(first)},
                        [&](auto batch) { return journal->append(batch); }));
  engine::StateImage image;
  image.sequence = static_cast<std::int64_t>(first);
  // A state as large as asked for: what is in it does not matter to the file.
  for (std::size_t size = 0; size < snapshot_bytes; size += 1'100) {
    engine::RequestImage request;
    request.scope = std::string(1'000, 's');
    request.key = std::to_string(size);
    image.requests.push_back(std::move(request));
  }
  std::atomic<bool> done{false};
  Result<void> saved;
  double seconds = 0;
  std::thread saver([&] {
    seconds = seconds_of([&] { saved = journal->save_snapshot(image); });
    done = true;
  });
  std::vector<double> milliseconds;
  Result<void> appended;
  for (std::size_t at = first; at < records.size() && !done && appended.ok(); at += clients) {
    const std::size_t count = std::min(clients, records.size() - at);
    milliseconds.push_back(1e3 * seconds_of([&] {
                             appended = journal->append(std::span(records).subspan(at, count));
                           }));
  }
  saver.join();
  LOAM_CHECK(saved);
  LOAM_CHECK(appended);
  report.set("store_snapshot.append_ms_p50", percentile(milliseconds, 50),
             "appends of 64 records while a snapshot of 48 MiB is written");
  report.set("store_snapshot.append_ms_p99", percentile(milliseconds, 99));
  report.set("store_snapshot.seconds", seconds, "encoding and writing it meanwhile");
  return {};
}

// Fills the projections with copies of one real task.
Result<void> multiply_tasks(const std::string& path, int count) {
  LOAM_TRY(database, store::Database::open(path, store::OpenMode::read_write));
  const std::string n = std::to_string(count);
  LOAM_CHECK(database.execute("PRAGMA synchronous=OFF; BEGIN"));
  for (const auto& [table, id] : {std::pair("tasks", "id"), std::pair("leases", "id"),
                                  std::pair("usage", "id"), std::pair("slices", "lease_id")}) {
    const std::string copy = "copy_" + std::string(table);
    LOAM_CHECK(database.execute("CREATE TEMP TABLE " + copy + " AS SELECT * FROM main." + table +
                                " WHERE " + id + " = 1"));
    std::string change = "UPDATE " + copy + " SET " + id + " = " + id + " + 1";
    if (std::string_view(table) == "leases") change += ", task_id = task_id + 1";
    if (std::string_view(table) == "tasks") change += ", lease_id = lease_id + 1";
    if (std::string_view(table) == "usage")
      change += ", task_id = task_id + 1, lease_id = lease_id + 1";
    LOAM_CHECK(database.execute("DELETE FROM main." + std::string(table)));
    LOAM_TRY(insert,
             database.prepare("INSERT INTO main." + std::string(table) + " SELECT * FROM " + copy));
    LOAM_TRY(step, database.prepare(change));
    for (int i = 0; i < count; ++i) {
      LOAM_CHECK(insert.run());
      LOAM_CHECK(step.run());
    }
  }
  return database.execute("COMMIT");
}

LOAM_BENCHMARK(task_pages, {{"task_pages.newest_ms_p99", "ms", at_most(100)},
                            {"task_pages.deep_ms_p99", "ms", at_most(100)},
                            {"task_pages.alive_ms_p99", "ms", at_most(100)},
                            {"task_pages.name_ms_p99", "ms", at_most(100)},
                            {"task_pages.bill_ms", "ms"}}) {
  constexpr int tasks = 100'000;
  constexpr std::int64_t page = 100;
  Folder folder;
  LOAM_TRY(journal, fresh_journal(folder));
  Traffic traffic(*journal);
  LOAM_CHECK(traffic.found());
  for (int i = 0; i < 3; ++i) traffic.round();
  report.progress("making 100,000 tasks");
  LOAM_CHECK(multiply_tasks(journal->path(), tasks));
  store::Queries queries(journal->path());
  const auto pages = [&](const store::TaskFilter& filter, TaskId after) -> Result<double> {
    std::vector<double> milliseconds;
    for (int i = 0; i < 50; ++i) {
      Result<store::TaskPage> answer = store::TaskPage{};
      milliseconds.push_back(1e3 *
                             seconds_of([&] { answer = queries.list_tasks(filter, after, page); }));
      if (!answer) return answer.error();
    }
    return percentile(std::move(milliseconds), 99);
  };
  LOAM_TRY(newest, pages({TenantId{1}, {}, {}, {}}, {}));
  LOAM_TRY(deep, pages({TenantId{1}, {}, {}, {}}, TaskId{tasks / 2}));
  LOAM_TRY(alive, pages({{}, {TaskState::running, TaskState::waiting}, {}, {}}, {}));
  LOAM_TRY(name, pages({TenantId{1}, {TaskState::finished}, "no-such", {}}, {}));
  report.set("task_pages.newest_ms_p99", newest, "100 of 100,000 tasks");
  report.set("task_pages.deep_ms_p99", deep, "the page at the 50,000th");
  report.set("task_pages.alive_ms_p99", alive, "the live ones");
  report.set("task_pages.name_ms_p99", name, "a name that no task has: all are looked at");
  Result<store::Bill> bill = store::Bill{};
  const double seconds =
      seconds_of([&] { bill = queries.bill(TenantId{1}, Instant{}, Instant::never()); });
  LOAM_CHECK(bill);
  report.set("task_pages.bill_ms", 1e3 * seconds, "one tenant's bill over 100,000 tasks");
  return {};
}

}  // namespace
}  // namespace loam::bench
