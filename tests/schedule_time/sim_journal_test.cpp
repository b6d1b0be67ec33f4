// `loam sim --from-journal`: a journal as a daemon leaves it, replayed against other pools, orders,
// placements and paces.
#include <algorithm>

#include "schedule_time/sim_fixture.hpp"
#include "sim/program.hpp"
#include "sim/world.hpp"
#include "store/journal.hpp"

namespace loam::cli {
namespace {

constexpr Instant journal_start{1'767'225'600'000};  // 2026-01-01T00:00:00Z

struct Wish {
  std::uint64_t tenant = 1;
  std::int64_t milli = 1000;  // of a device
  std::int64_t at_s = 0;
  std::int64_t run_s = 100;
};

class SimJournal : public SimFolder {
 protected:
  // A node of so many devices of the type a100 and the tenants acme (1) and globex (2).
  void live(std::int64_t devices, const std::vector<Wish>& wishes) {
    sim::World world(journal_start, 1);
    std::vector<Record> records;
    world.on_record([&](const Record& record) { records.push_back(record); });
    world.ask(AttachNode{"n1", "here", MilliCpu{64'000}, Mebibytes{524'288}});
    for (std::int64_t i = 0; i < devices; ++i) {
      DeviceFacts facts;
      facts.uuid = "gpu" + std::to_string(i);
      facts.type = "a100";
      facts.memory = Mebibytes{81'920};
      const MilliCe worth{100'000};
      facts.factors = {worth, worth, worth, worth};
      world.ask(AttachDevice{"n1", facts});
    }
    RateCard card;
    card.on_demand = Money(Money::units_per_one, Currency("USD"));
    card.effective_from = journal_start;
    world.ask(PublishRateCard{card});
    for (const char* name : {"acme", "globex"}) {
      TenantSpec tenant;
      tenant.name = name;
      tenant.payment = PaymentMode::postpaid;
      tenant.credit_limit = Money(Int128{Money::units_per_one} * 1'000'000, Currency("USD"));
      world.ask(CreateTenant{tenant});
    }
    for (const Wish& wish : wishes) {
      world.advance_to(journal_start + Duration::seconds(wish.at_s));
      sim::Program program;
      program.run = Duration::seconds(wish.run_s);
      TaskSpec spec;
      spec.command = sim::command_of(program);
      spec.request.share = MilliDevice{wish.milli};
      spec.limit = Duration::hours(1);
      ASSERT_TRUE(world.ask(SubmitTask{TenantId{wish.tenant}, spec}).ok());
    }
    world.advance_to(world.clock().true_now() + Duration::hours(12));
    auto journal = store::SqliteJournal::open(path("data"));
    ASSERT_TRUE(journal.ok()) << to_text(journal.error());
    const auto stored = (*journal)->append(records);
    ASSERT_TRUE(stored.ok()) << to_text(stored.error());
  }
  // One task of acme, then seven of globex a second apart; each runs 100 s.
  void live_busily() {
    std::vector<Wish> wishes{{1, 1000, 0, 100}};
    for (std::int64_t i = 1; i < 8; ++i) wishes.push_back({2, 1000, i, 100});
    live(4, wishes);
  }

  // The result of a replay, as JSON.
  std::string replayed(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--from-journal", path("data")};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--json", path("r.json")});
    EXPECT_EQ(loam(words), 0) << complained;
    EXPECT_EQ(said.find('{'), std::string::npos) << said;  // the table
    return written("r.json");
  }
  void expect_refusal(const std::vector<std::string>& more, const std::string& says,
                      const std::string& next) {
    std::vector<std::string> words{"--from-journal", path("data")};
    words.insert(words.end(), more.begin(), more.end());
    expect_refused(words, says, next);
  }
};

TEST_F(SimJournal, ALargerPoolLetsTasksWaitLessAndASmallerOneMore) {
  live_busily();
  const std::string as_it_was = replayed();
  EXPECT_NE(said.find("Jain's index"), std::string::npos) << said;
  EXPECT_EQ(figure(as_it_was, "devices"), 4);
  EXPECT_EQ(figure(as_it_was, "finished"), 8);
  const std::string half = replayed({"--devices-percent", "50"});
  EXPECT_EQ(figure(half, "devices"), 2);
  const std::string twice = replayed({"--devices-percent", "200"});
  EXPECT_EQ(figure(twice, "devices"), 8);
  EXPECT_EQ(figure(replayed({"--devices-percent", "130"}), "devices"), 6);  // 5.2, rounded up
  EXPECT_GT(figure(half, "wait_mean_s"), figure(as_it_was, "wait_mean_s") + 20);
  EXPECT_GT(figure(as_it_was, "wait_mean_s"), figure(twice, "wait_mean_s") + 20);
  EXPECT_NEAR(figure(twice, "makespan_s"), 107, 5);
  // Nobody waits: all are alike. On one device acme's task goes first, and globex waits.
  EXPECT_GT(figure(twice, "jain"), 0.99);
  EXPECT_LT(figure(replayed({"--devices-percent", "25"}), "jain"), 0.95);
  expect_refusal({"--devices-percent", "0"}, "0 %", "1 to 10000");
  expect_refusal({"--devices-percent", "10001"}, "10001", "");
}

TEST_F(SimJournal, ThePaceOfArrivalsIsMultiplied) {
  live_busily();
  const auto makespan = [&](const char* factor) {
    return figure(replayed({"--devices-percent", "200", "--arrivals", factor}), "makespan_s");
  };
  // The last one comes 7 s, 70 s and 3.5 s after the first.
  EXPECT_NEAR(makespan("1"), 107, 2);
  EXPECT_NEAR(makespan("0.1"), 170, 2);
  EXPECT_NEAR(makespan("2"), 103.5, 2);
  expect_refusal({"--arrivals", "0"}, "--arrivals", "1.3");
}

TEST_F(SimJournal, AnotherPoolComesFromAListOfNodes) {
  live_busily();
  write("own.csv", "node,cpu_milli,memory_mib,devices,device_type\nbig,64000,524288,8,a100\n");
  const std::string own = replayed({"--nodes", path("own.csv")});
  EXPECT_EQ(figure(own, "devices"), 8);
  EXPECT_EQ(figure(own, "finished"), 8);
  EXPECT_LT(figure(own, "wait_mean_s"), 5);
  // Both: half of that pool.
  EXPECT_EQ(figure(replayed({"--nodes", path("own.csv"), "--devices-percent", "50"}), "devices"),
            4);
  // A type that the journal does not know, and what it is worth: whole devices cost 2.5 times.
  write("new.csv",
        "node,cpu_milli,memory_mib,devices,device_type,ce,device_memory_mib\n"
        "big,64000,524288,8,h200,250,143360\n");
  const std::string dearer = replayed({"--nodes", path("new.csv")});
  const auto charged = [](const std::string& json) {
    return std::stod(json.substr(json.find("\"USD\":\"") + 7));
  };
  EXPECT_NEAR(charged(dearer) / charged(own), 2.5, 0.01);

  write("unknown.csv",
        "node,cpu_milli,memory_mib,devices,device_type\n"
        "big,64000,524288,8,a100\nnew,64000,524288,8,h200\n");
  expect_refusal({"--nodes", path("unknown.csv")},
                 "unknown.csv:3: the journal knows no device of the type 'h200'", "a100");
  write("names.csv", "node,cpu_milli,memory_mib,devices,device_type\nBig,1,1,1,a100\n");
  expect_refusal({"--nodes", path("names.csv")}, "names.csv:2: 'Big' is not a node name", "a-z");
  expect_refusal({"--nodes", path("none.csv")}, "none.csv", "path");
}

TEST_F(SimJournal, AnotherPlacementGivesAnotherWait) {
  // Two halves, then a whole device: beside one another the halves leave none free.
  live(2, {{1, 500, 0, 1000}, {1, 500, 10, 1000}, {2, 1000, 20, 100}});
  const std::string packed = replayed({"--policy", "packing"});
  const std::string spread = replayed({"--policy", "spread"});
  EXPECT_NE(packed.find(R"("policy":"packing")"), std::string::npos) << packed;
  EXPECT_LT(figure(packed, "wait_mean_s"), 5);
  EXPECT_GT(figure(spread, "wait_mean_s"), 300);  // 980 s for one of three
  expect_refusal({"--policy", "tightest"}, "'tightest'", "packing_value");
}

TEST_F(SimJournal, TasksAsCsvAndTheirCourseAsPlots) {
  live_busily();
  replayed({"--csv", path("tasks.csv"), "--plot", path("plots")});
  const std::string csv = written("tasks.csv");
  EXPECT_TRUE(csv.starts_with(
      "task,tenant,submitted_s,started_s,finished_s,ran_s,wait_s,preemptions\n1,acme,0,"))
      << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 9) << csv;
  EXPECT_NE(csv.find("\n8,globex,7,"), std::string::npos) << csv;
  EXPECT_TRUE(written("plots/journal_waiting.svg").starts_with("<svg"));
  EXPECT_TRUE(written("plots/journal_devices.svg").starts_with("<svg"));
}

TEST_F(SimJournal, TwoReplaysAreCompared) {
  live_busily();
  for (const auto& [discipline, file] :
       {std::pair("fifo", "fifo.json"), std::pair("drf", "drf.json")}) {
    ASSERT_EQ(
        loam({"--from-journal", path("data"), "--discipline", discipline, "--out", path(file)}), 0)
        << complained;
  }
  ASSERT_EQ(loam({"compare", path("fifo.json"), path("drf.json")}), 0) << complained;
  for (const char* shown : {"wait_mean_s", "jain", "charged.USD", "fifo.json", "drf.json"})
    EXPECT_NE(said.find(shown), std::string::npos) << shown << " in " << said;
  expect_refusal({"--discipline", "fifo", "--discipline", "drf"}, "--discipline", "compare");
  expect_refusal({"--discipline", "fairest"}, "fairest", "");
}

}  // namespace
}  // namespace loam::cli
