// The golden journal: one line an event, written by this release and kept for ever. A later loam
// must read every line; until a type's version rises it must also write the same bytes.
// LOAM_UPDATE_GOLDEN=1 writes the files anew: only for a release that has not been published.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>
#include <set>

#include "billing/accounts.hpp"
#include "domain/event_codec.hpp"
#include "engine/decide.hpp"
#include "engine/snapshot.hpp"
#include "history.hpp"
#include "store/chain.hpp"
#include "store/schema.hpp"

namespace loam::store {
namespace {

namespace bj = boost::json;

const std::string golden = std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1";

std::string line_of(const Record& record) {
  const EncodedEvent encoded = encode(record.event);
  const bj::object line{{"seq", record.sequence},
                        {"at_ms", record.at.ms},
                        {"issuer", record.actor.issuer},
                        {"subject", record.actor.subject},
                        {"type", encoded.type},
                        {"version", encoded.version},
                        {"payload", bj::parse(encoded.payload)}};
  return bj::serialize(line);
}

std::string text(const bj::object& line, const char* name) {
  return std::string(line.at(name).as_string());
}

Result<Record> record_of(const bj::object& line) {
  LOAM_TRY(event,
           decode(EncodedEvent{text(line, "type"), static_cast<int>(line.at("version").as_int64()),
                               bj::serialize(line.at("payload"))}));
  return Record{static_cast<std::uint64_t>(line.at("seq").as_int64()),
                Instant{line.at("at_ms").as_int64()},
                Actor{text(line, "issuer"), text(line, "subject")}, std::move(event)};
}

std::string summary_of(const std::vector<Record>& records) {
  engine::State state;
  ChainHash hash = chain_start;
  for (const Record& record : records) {
    engine::evolve(state, record);
    const EncodedEvent encoded = encode(record.event);
    hash = chain_hash(
        hash, {static_cast<std::int64_t>(record.sequence), record.at.ms, record.actor.issuer,
               record.actor.subject, encoded.type, encoded.version, encoded.payload});
  }
  return "records " + std::to_string(records.size()) + "\nstate " +
         std::to_string(engine::digest(state)) + "\nchain " + to_text(hash) + "\n";
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(GoldenTest, EveryLineReadsWritesTheSameBytesAndReplaysToTheStatedState) {
  if (getenv("LOAM_UPDATE_GOLDEN") != nullptr) {
    History history;
    history.everything();
    history.money();
    history.scheduling();
    history.commitments();
    history.tokens();
    history.payments();
    history.months();
    history.sellers();
    history.reservations();
    history.spot_deadlines();
    history.moves();
    const std::vector<Record> records = history.take();
    std::ofstream lines(golden + ".jsonl", std::ios::binary);
    for (const Record& record : records) lines << line_of(record) << '\n';
    std::ofstream(golden + ".digest", std::ios::binary) << summary_of(records);
  }
  std::ifstream lines(golden + ".jsonl", std::ios::binary);
  ASSERT_TRUE(lines.good()) << golden;
  std::vector<Record> records;
  std::set<std::string> types;
  for (std::string line; std::getline(lines, line);) {
    auto record = record_of(bj::parse(line).as_object());
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    EXPECT_EQ(line_of(*record), line);
    types.insert(std::string(type_of(record->event)));
    records.push_back(std::move(*record));
  }
  EXPECT_EQ(types.size(), std::variant_size_v<AnyEvent>) << "not every event type is in it";
  EXPECT_EQ(summary_of(records), read_file(golden + ".digest"));
}

// Journals of earlier programs: before rate cards had windows, tiers and taxes; before there were
// queues. Their events are lifted, and the state that they make goes on as it did.
class OldJournalTest : public ::testing::TestWithParam<const char*> {};

TEST_P(OldJournalTest, IsLiftedAndReplays) {
  std::ifstream lines(std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/" + GetParam(),
                      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t old_events = 0;
  Money charged = Money::zero(Currency("USD"));
  for (std::string line; std::getline(lines, line);) {
    const bj::object json = bj::parse(line).as_object();
    auto record = record_of(json);
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    old_events += encode(record->event).version != json.at("version").as_int64() ? 1 : 0;
    const auto* usage = std::get_if<UsageRated>(&record->event);
    if (usage != nullptr && usage->record.net.currency() == charged.currency())
      charged += usage->record.net;
    if (const auto* credited = std::get_if<CreditNoteIssued>(&record->event))
      charged -= credited->note.net;
    engine::evolve(state, *record);
  }
  EXPECT_GT(old_events, 0u);
  EXPECT_FALSE(charged.is_zero());
  EXPECT_EQ(state.accounts.balance({AccountKind::revenue, {}, Currency("USD")}), charged);
}

INSTANTIATE_TEST_SUITE_P(Golden, OldJournalTest,
                         ::testing::Values("0.1-flat-rates.jsonl", "0.1-first-come.jsonl"));

TEST(GoldenTest, RateCardsFromBeforeTheyHadTermsHaveTheTermsOfThen) {
  EncodedEvent encoded = encode(RateCardPublished{});
  bj::object card = bj::parse(encoded.payload).as_object();
  card.at("card").as_object().erase("terms");
  encoded.payload = bj::serialize(card);
  encoded.version = 1;
  const auto read = decode(encoded);
  ASSERT_TRUE(read.ok()) << to_text(read.error());
  EXPECT_TRUE(std::get<RateCardPublished>(*read).card.terms == PriceTerms{});
}

// Written before rate cards priced tokens: cards of version 2 have none.
TEST(GoldenTest, AJournalFromBeforeTokensHadPricesIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-token-prices.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t cards = 0;
  for (std::string line; std::getline(lines, line);) {
    auto record = record_of(bj::parse(line).as_object());
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (const auto* published = std::get_if<RateCardPublished>(&record->event)) {
      ++cards;
      EXPECT_TRUE(published->card.terms.tokens.empty());
    }
    engine::evolve(state, *record);
  }
  EXPECT_GT(cards, 0U);
  EXPECT_TRUE(state.token_sources.empty());
}

// Written before the rounding of invoices was posted, payments could be turned round, budgets began
// with what was spent, commitments could be cancelled, and cards had rules for lost work.
TEST(GoldenTest, AJournalFromBeforeRoundingWasPostedIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-rounding.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t invoices = 0, budgets = 0, ended = 0;
  for (std::string line; std::getline(lines, line);) {
    auto record = record_of(bj::parse(line).as_object());
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (const auto* issued = std::get_if<InvoiceIssued>(&record->event)) {
      ++invoices;
      EXPECT_EQ(issued->invoice.rounding, Money::zero(issued->invoice.currency));
    }
    if (const auto* set = std::get_if<BudgetSet>(&record->event)) {
      ++budgets;
      EXPECT_EQ(set->spent, Money::zero(set->budget.monthly.currency()));
    }
    if (const auto* end = std::get_if<CommitmentEnded>(&record->event)) {
      ++ended;
      EXPECT_FALSE(end->cancelled);
    }
    if (const auto* published = std::get_if<RateCardPublished>(&record->event)) {
      EXPECT_TRUE(published->card.terms.lost_work == LostWork{});
    }
    engine::evolve(state, *record);
  }
  EXPECT_GT(invoices, 0U);
  EXPECT_GT(budgets, 0U);
  EXPECT_GT(ended, 0U);
  EXPECT_TRUE(state.accounts.balance(billing::rounding_in(Currency("USD"))).is_zero());
  EXPECT_FALSE(state.payments.empty());
  // What is invoiced from here on is what the ledger moves by.
  const auto open = std::find_if(state.open_charges.begin(), state.open_charges.end(),
                                 [](const auto& of) { return !of.second.empty(); });
  ASSERT_TRUE(open != state.open_charges.end()) << "nothing is open at its end";
  const Instant now = state.now;
  const engine::Decision decision = engine::decide(state, now, IssueInvoice{open->first});
  ASSERT_FALSE(decision.reject);
  const Invoice& next = std::get<InvoiceIssued>(decision.events.back()).invoice;
  Money charged = open->second.tax_to(next.months_to, next.currency);
  for (const InvoiceLine& line : next.lines) charged += line.net;
  EXPECT_EQ(next.total, charged + next.rounding);
}

// Written before tenants had months: what was charged belongs to none in particular, and models had
// no versions.
TEST(GoldenTest, AJournalFromBeforeTenantsHadMonthsIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-months.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t used = 0, adjusted = 0, invoices = 0, tasks = 0;
  for (std::string line; std::getline(lines, line);) {
    auto record = record_of(bj::parse(line).as_object());
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (const auto* created = std::get_if<TenantCreated>(&record->event)) {
      EXPECT_EQ(created->spec.billing_zone, "UTC");
      EXPECT_EQ(created->spec.invoicing, Invoicing::on_demand);
    }
    if (const auto* accepted = std::get_if<TaskAccepted>(&record->event)) {
      ++tasks;
      EXPECT_EQ(accepted->spec->role, GroupRole::auxiliary);
      EXPECT_EQ(accepted->spec->group + accepted->spec->attribution.model_version, "");
    }
    if (const auto* usage = std::get_if<UsageRated>(&record->event)) {
      ++used;
      EXPECT_EQ(usage->record.month_end, Instant{});
    }
    if (const auto* issued = std::get_if<InvoiceIssued>(&record->event)) {
      ++invoices;
      EXPECT_EQ(issued->invoice.months_to, issued->invoice.to);
    }
    if (const auto* covered = std::get_if<UseCovered>(&record->event)) {
      adjusted += covered->lines.size();
      for (const AdjustmentLine& each : covered->lines) EXPECT_EQ(each.month_end, Instant{});
    }
    if (const auto* tokens = std::get_if<TokensUsed>(&record->event))
      adjusted += tokens->charged.size() + tokens->earned.size();
    engine::evolve(state, *record);
  }
  EXPECT_GT(tasks * used * invoices, 0U);
  EXPECT_GT(adjusted, 1U);
  // What is open belongs to no month in particular and is on the next invoice, of a month too.
  const auto open = std::find_if(state.open_charges.begin(), state.open_charges.end(),
                                 [](const auto& of) { return !of.second.empty(); });
  ASSERT_TRUE(open != state.open_charges.end()) << "nothing is open at its end";
  EXPECT_EQ(open->second.months.size(), 1U);
  EXPECT_EQ(open->second.months.begin()->first, Instant{});
  const Instant later = state.now + Duration::hours(24 * 40);
  const Instant to = billing::month_of(billing::Zone(), later).from;
  const engine::Decision decision = engine::decide(state, later, IssueInvoice{open->first, to});
  ASSERT_FALSE(decision.reject) << decision.reject->message;
  const Invoice& next = std::get<InvoiceIssued>(decision.events.back()).invoice;
  EXPECT_EQ(next.to, to);
  EXPECT_EQ(next.lines.size(), open->second.months.begin()->second.lines.size());
}

// Written before invoices named who sells: nobody said what was due, capacity alone was committed,
// tasks told nothing of what they made, and came back as they were.
TEST(GoldenTest, AJournalFromBeforeInvoicesNamedASellerIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-sellers.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t invoices = 0, commitments = 0, ends = 0, returns = 0;
  for (std::string line; std::getline(lines, line);) {
    auto record = record_of(bj::parse(line).as_object());
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (const auto* issued = std::get_if<InvoiceIssued>(&record->event)) {
      ++invoices;
      EXPECT_EQ(issued->invoice.seller, Seller{});
      EXPECT_FALSE(issued->invoice.due || issued->invoice.due_at);
    }
    if (const auto* bought = std::get_if<CommitmentBought>(&record->event)) {
      ++commitments;
      const CommitmentTerms& terms = bought->commitment.terms;
      EXPECT_EQ(terms.spend, Money::zero(terms.unit_price.currency()));
    }
    if (const auto* ended = std::get_if<LeaseEnded>(&record->event)) {
      ++ends;
      EXPECT_FALSE(ended->output);
    }
    if (const auto* back = std::get_if<TaskRequeued>(&record->event)) {
      ++returns;
      EXPECT_FALSE(back->purchase_model);
    }
    engine::evolve(state, *record);
  }
  EXPECT_GT(invoices * commitments * ends * returns, 0U);
  EXPECT_EQ(state.seller, Seller{});
}

// Written before capacity could be reserved: no task names a reservation.
TEST(GoldenTest, AJournalFromBeforeThereWereReservationsIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-reservations.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::size_t lifted = 0;
  for (std::string line; std::getline(lines, line);) {
    const bj::object json = bj::parse(line).as_object();
    auto record = record_of(json);
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (const auto* accepted = std::get_if<TaskAccepted>(&record->event)) {
      lifted += encode(record->event).version != json.at("version").as_int64() ? 1 : 0;
      EXPECT_FALSE(accepted->spec->reservation.valid());
    }
    engine::evolve(state, *record);
  }
  EXPECT_GT(lifted, 0U);
  EXPECT_TRUE(state.reservations.empty());
}

// Written before lines said whose use they give back, and tokens had tags.
TEST(GoldenTest, AJournalFromBeforeLinesNamedTheirLeaseIsLiftedAndReplays) {
  std::ifstream lines(
      std::string(LOAM_SOURCE_DIR) + "/tests/golden/journal/0.1-before-attribution.jsonl",
      std::ios::binary);
  ASSERT_TRUE(lines.good());
  engine::State state;
  std::set<std::string> lifted;
  const auto is_of_none = [](const std::vector<AdjustmentLine>& all) {
    return std::all_of(all.begin(), all.end(),
                       [](const auto& line) { return !line.lease.valid(); });
  };
  for (std::string line; std::getline(lines, line);) {
    const bj::object json = bj::parse(line).as_object();
    auto record = record_of(json);
    ASSERT_TRUE(record.ok()) << to_text(record.error()) << "\n" << line;
    if (encode(record->event).version != json.at("version").as_int64())
      lifted.insert(std::string(type_of(record->event)));
    if (const auto* covered = std::get_if<UseCovered>(&record->event)) {
      EXPECT_TRUE(is_of_none(covered->lines));
    }
    if (const auto* tokens = std::get_if<TokensUsed>(&record->event)) {
      EXPECT_TRUE(is_of_none(tokens->charged) && is_of_none(tokens->earned));
      EXPECT_TRUE(tokens->use.tags.empty() && tokens->use.owner_tags.empty());
      EXPECT_EQ(tokens->use.owner_project + tokens->use.owner_environment, "defaultdefault");
    }
    engine::evolve(state, *record);
  }
  for (const char* type : {"commitment_charged", "lost_work_credited", "reservation_charged",
                           "services_used", "shortfall_credited", "tokens_used", "use_covered"})
    EXPECT_TRUE(lifted.contains(type)) << type;
}

// Written before nodes told what running leases use of their devices, and of backups.
TEST(GoldenTest, ServicesWithoutDeviceTimeAndBackupsAreLifted) {
  EncodedEvent encoded = encode(ServicesUsed{});
  ASSERT_EQ(encoded.version, 3);
  bj::object old = bj::parse(encoded.payload).as_object();
  for (const char* fresh : {"device_time", "backed_up"}) ASSERT_EQ(old.erase(fresh), 1U) << fresh;
  ASSERT_EQ(old.at("use").as_object().erase("backup_mib_ms"), 1U);
  encoded.payload = bj::serialize(old);
  EXPECT_FALSE(decode(encoded).ok()) << "the present version has it";
  encoded.version = 2;
  const auto read = decode(encoded);
  ASSERT_TRUE(read.ok()) << to_text(read.error());
  EXPECT_EQ(encode(*read).payload, encode(ServicesUsed{}).payload);
}

// Written before waits ended, compute was left to earlier runs, tasks had backups and were moved:
// they wait for ever, take what they state, and keep neither copies nor out of the way.
TEST(GoldenTest, TasksAndSettingsFromBeforeWaitsEndedAreLifted) {
  TaskAccepted accepted;
  TaskSpec spec;
  spec.wait_at_most = Duration::hours(1);
  spec.auto_ce = AutoCe{MilliCe{40'000}, 2, MilliCe{9'000}};
  accepted.spec = std::make_shared<const TaskSpec>(spec);
  EncodedEvent encoded = encode(accepted);
  ASSERT_EQ(encoded.version, 6);
  bj::object old = bj::parse(encoded.payload).as_object();
  for (const char* fresh : {"wait_at_most", "auto_ce", "backups"})
    ASSERT_EQ(old.at("spec").as_object().erase(fresh), 1U) << fresh;
  encoded.payload = bj::serialize(old);
  EXPECT_FALSE(decode(encoded).ok()) << "the present version has them";
  encoded.version = 5;
  const auto task = decode(encoded);
  ASSERT_TRUE(task.ok()) << to_text(task.error());
  EXPECT_FALSE(std::get<TaskAccepted>(*task).spec->wait_at_most.has_value());
  EXPECT_FALSE(std::get<TaskAccepted>(*task).spec->auto_ce.has_value());

  SchedulingSet settled;
  settled.settings.hold_expires = Duration::hours(1);
  encoded = encode(settled);
  ASSERT_EQ(encoded.version, 3);
  old = bj::parse(encoded.payload).as_object();
  for (const char* fresh : {"hold_expires", "defrag"})
    ASSERT_EQ(old.at("settings").as_object().erase(fresh), 1U) << fresh;
  encoded.payload = bj::serialize(old);
  EXPECT_FALSE(decode(encoded).ok()) << "the present version has it";
  encoded.version = 2;
  const auto settings = decode(encoded);
  ASSERT_TRUE(settings.ok()) << to_text(settings.error());
  EXPECT_EQ(std::get<SchedulingSet>(*settings).settings, SchedulingSettings{});
}

TEST(GoldenTest, AnEventOfANewerVersionIsNamed) {
  EncodedEvent encoded = encode(RateCardPublished{});
  encoded.version = 5;
  const auto read = decode(encoded);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().kind, ErrorKind::unsupported);
  EXPECT_NE(read.error().message.find("'rate_card_published' version 5"), std::string::npos);
}

}  // namespace
}  // namespace loam::store
