// `loam sim` as scripts call it: the result lands in the file that --json names, with the keys that
// they read, and an option that a run would pass over is refused.
#include <algorithm>

#include "schedule_time/sim_fixture.hpp"

namespace loam::cli {
namespace {

class SimContract : public SimFolder {
 protected:
  SimContract() {
    write("nodes.csv",
          "sn,cpu_milli,memory_mib,gpu,model\n"
          "n1,64000,262144,2,V100M16\nn2,64000,262144,4,V100M16\n");
    write("pods.csv",
          "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
          "deletion_time,scheduled_time\n"
          "p1,4000,8192,1,500,,LS,Running,0,100,1\np2,8000,8192,2,1000,,LS,Running,5,90,6\n"
          "p3,2000,4096,0,0,,BE,Running,7,50,8\n");
    write("jobs.csv", "arrival_s,duration_s,devices\n0,100,2\n10,50,1\n20,400,2\n1000,10,1\n");
    // Spot that is there for an hour and away for one, in samples of ten minutes.
    std::string data;
    for (int i = 0; i < 600; ++i)
      data += std::string(i == 0 ? "" : ",") + (i / 6 % 2 == 0 ? "1" : "0");
    write("spot.json", R"({"metadata":{"gap_seconds":600},"data":[)" + data + "]}");
  }

  std::vector<std::string> openb(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--trace",         "openb",   "--nodes",
                                   path("nodes.csv"), "--tasks", path("pods.csv")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The document is in the file, and what is printed is for people.
  void expect_table() {
    EXPECT_FALSE(said.empty());
    EXPECT_EQ(said.find('{'), std::string::npos) << said;
  }
};

TEST_F(SimContract, OpenbGivesAllocationMovesAndTime) {
  for (const char* policy :
       {"packing_value", "fragmentation", "best_fit", "dot_prod", "packing", "random"}) {
    ASSERT_EQ(loam(openb({"--policy", policy, "--mix", "known", "--moves", "2", "--arrivals", "1.3",
                          "--seeds", "42..51", "--json", path("o.json")})),
              0)
        << policy << ": " << complained;
    expect_keys("o.json",
                {"allocation_mean", "allocation_sd", "moves", "wall_s", "jain", "jain_devices"});
    expect_table();
    EXPECT_NE(said.find("Jain"), std::string::npos) << said;
  }
}

TEST_F(SimContract, OpenbWithItsOwnTimesGivesFairnessToo) {
  ASSERT_EQ(loam(openb({"--departures", "--json", path("d.json"), "--csv", path("d.csv"), "--plot",
                        path("plots")})),
            0)
      << complained;
  expect_keys("d.json", {"placed", "refused", "allocated_mean_percent", "jain", "jain_devices"});
  EXPECT_EQ(figure(written("d.json"), "jain"), 1);  // a list without users has one tenant
  expect_table();
  EXPECT_NE(said.find("Jain"), std::string::npos) << said;
  EXPECT_TRUE(written("d.csv").starts_with("hours,allocated_percent\n"));
  EXPECT_TRUE(written("plots/allocation_over_time.svg").starts_with("<svg"));
}

TEST_F(SimContract, JobsGiveCompletionWaitPreemptionsAndMakespan) {
  for (const char* discipline :
       {"fifo", "easy", "any", "sjf", "srtf", "srsf", "las2", "blind", "semi_blind"}) {
    ASSERT_EQ(
        loam({"--trace", "jobs", "--tasks", path("jobs.csv"), "--devices", "3", "--discipline",
              discipline, "--preemption-cost", "60s", "--json", path("j.json")}),
        0)
        << discipline << ": " << complained;
    expect_keys("j.json", {"completion_mean_s", "wait_p99_s", "preemptions", "makespan_s", "jain"});
    expect_table();
  }
}

TEST_F(SimContract, SyntheticGivesPlacementsAndLatency) {
  ASSERT_EQ(loam({"--synthetic", "devices=800,nodes=100,load=0.9", "--json", path("s.json")}), 0)
      << complained;
  expect_keys("s.json", {"placements_per_s", "decision_p99_us", "rss_mib", "jain", "jain_devices"});
  expect_table();
}

TEST_F(SimContract, SpotGivesCostStartsAndWhetherTheDeadlineWasMissed) {
  for (const char* policy : {"greedy", "uniform_progress", "reserve"}) {
    ASSERT_EQ(loam({"--trace", "spot", "--availability", path("spot.json"), "--work", "48h",
                    "--deadline", "60h", "--changeover", "3m", "--price-ratio", "0.317", "--policy",
                    policy, "--start", "3h", "--json", path("p.json")}),
              0)
        << policy << ": " << complained;
    expect_keys("p.json", {"cost_fraction", "starts", "jain"});
    EXPECT_NE(written("p.json").find("\"missed\":false"), std::string::npos) << written("p.json");
    expect_table();
  }
}

TEST_F(SimContract, JsonAloneAndADashPrintTheDocumentAndNothingElse) {
  const std::vector<std::string> words{"--trace",        "jobs",      "--tasks",
                                       path("jobs.csv"), "--devices", "3",
                                       "--discipline",   "fifo",      "--json"};
  ASSERT_EQ(loam(words), 0) << complained;
  const std::string alone = said;
  EXPECT_TRUE(alone.starts_with("{") && alone.ends_with("}\n")) << alone;
  EXPECT_EQ(std::count(alone.begin(), alone.end(), '\n'), 1) << alone;
  std::vector<std::string> dash = words;
  dash.push_back("-");
  ASSERT_EQ(loam(dash), 0) << complained;
  EXPECT_EQ(said, alone);
}

TEST_F(SimContract, JobsThatComeTwiceAsFastEndSooner) {
  const auto makespan = [&](const char* factor) {
    EXPECT_EQ(loam({"--trace", "jobs", "--tasks", path("jobs.csv"), "--devices", "3",
                    "--discipline", "fifo", "--arrivals", factor, "--json", path("j.json")}),
              0)
        << complained;
    const std::string text = written("j.json");
    return std::stod(text.substr(text.find("\"makespan_s\":") + 13));
  };
  EXPECT_EQ(makespan("1"), 1010);
  EXPECT_EQ(makespan("2"), 510);
}

TEST_F(SimContract, AnOptionThatARunDoesNothingWithIsRefused) {
  struct Bad {
    std::vector<std::string> words;
    const char* says;
    const char* next;
  };
  for (const Bad& bad : {
           Bad{{"--synthetic", "devices=8,nodes=1,load=0.5", "--plot", folder},
               "--plot",
               "--trace openb, --trace jobs"},
           Bad{{"--trace", "spot", "--nodes", "n.csv"}, "--nodes", "--trace openb"},
           Bad{{"--trace", "jobs", "--moves", "3"}, "--moves", "--trace openb"},
           Bad{{"--from-journal", folder, "--mix", "known"}, "--mix", "--synthetic"},
           Bad{{"--from-journal", folder, "--seeds", "1..3"}, "--seeds", "--trace jobs"},
           Bad{{"1..2", "--policy", "best_fit"}, "--policy", "--from-journal"},
           Bad{{"compare", "a.json", "b.json", "--csv", "c.csv"}, "--csv", "--trace spot"},
           Bad{openb({"--departures", "--moves", "2"}), "--moves", "own times"},
           Bad{openb({"--departures", "--seeds", "2"}), "--seeds", "own times"},
           Bad{openb({"--departures", "--arrivals", "2"}), "--arrivals", "own times"},
           Bad{{"--trace", "jobs", "--synthetic", "devices=8,nodes=1,load=0.5"},
               "exclude",
               "give one"},
           Bad{{"--trace", "jobs", "--json", "a.json", "b.json"}, "a.json", "--out"},
       }) {
    expect_refused(bad.words, bad.says, bad.next);
  }
}

TEST_F(SimContract, ABadTraceIsRefusedWithFileLineAndReason) {
  const std::string head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  const std::string times = "task,cpu_milli,memory_mib,devices,share_milli,arrival_s,duration_s\n";
  struct Bad {
    std::string text;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{"name,cpu_milli,memory_mib,num_gpu\n",
               "bad.csv:1: the column 'gpu_milli' is missing"},
           Bad{times + "t,1,1,1,1000,-5,10\n", "bad.csv:2: arrival_s is negative: '-5'"},
           Bad{times + "t,1,1,1,1000,5,-10\n", "bad.csv:2: duration_s is negative: '-10'"},
           Bad{head + "p,1,1,1,500,\np,1,1,1,500,H200\n",
               "bad.csv:3: no node has a device of the type 'H200'"},
       }) {
    write("bad.csv", bad.text);
    EXPECT_NE(loam({"--trace", "openb", "--nodes", path("nodes.csv"), "--tasks", path("bad.csv"),
                    "--json", path("o.json")}),
              0);
    EXPECT_NE(complained.find(bad.says), std::string::npos) << complained;
    EXPECT_FALSE(std::filesystem::exists(path("o.json")));
  }
  for (const Bad& bad : {
           Bad{"arrival_s,duration_s\n1,2\n", "bad.csv:1: neither"},
           Bad{"arrival_s,duration_s,devices\n-1,2,1\n", "bad.csv:2: "},
           Bad{"arrival_s,duration_s,devices\n1,2,1\n1,-2,1\n", "bad.csv:3: "},
       }) {
    write("bad.csv", bad.text);
    EXPECT_NE(loam({"--trace", "jobs", "--tasks", path("bad.csv"), "--devices", "2"}), 0);
    EXPECT_NE(complained.find(bad.says), std::string::npos) << complained;
  }
}

TEST_F(SimContract, AFaultInTheLastOfAMillionLinesIsFound) {
  constexpr int lines = 1'000'000;
  std::string pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  std::string jobs = "arrival_s,duration_s,devices\n";
  for (int i = 0; i < lines; ++i) {
    pods += "p,1000,2048,1,500,\n";
    jobs += "1,10,1\n";
  }
  write("long.csv", pods + "p,1000,2048,1,500,H200\n");
  expect_refused({"--trace", "openb", "--nodes", path("nodes.csv"), "--tasks", path("long.csv")},
                 "long.csv:1000002: no node has a device of the type 'H200'", "types");
  write("long.csv", jobs + "1,-10,1\n");
  EXPECT_NE(loam({"--trace", "jobs", "--tasks", path("long.csv"), "--devices", "2"}), 0);
  EXPECT_NE(complained.find("long.csv:1000002: "), std::string::npos) << complained;
}

TEST_F(SimContract, CompareShowsFiguresOfEveryRunSideBySide) {
  const auto jobs = [&](const std::vector<std::string>& disciplines, const std::string& file) {
    std::vector<std::string> words{"--trace",        "jobs",      "--tasks",
                                   path("jobs.csv"), "--devices", "3"};
    for (const std::string& name : disciplines) words.insert(words.end(), {"--discipline", name});
    words.insert(words.end(), {"--json", path(file)});
    ASSERT_EQ(loam(words), 0) << complained;
  };
  jobs({"fifo"}, "fifo.json");
  jobs({"sjf", "srtf"}, "both.json");
  ASSERT_EQ(loam({"compare", path("fifo.json"), path("both.json")}), 0) << complained;
  for (const char* shown : {"fifo.json", "both.json#1", "both.json#2", "completion_mean_s", "sjf"})
    EXPECT_NE(said.find(shown), std::string::npos) << shown << " in " << said;
  // Three devices in each: nothing changed.
  ASSERT_EQ(loam({"compare", path("fifo.json"), path("both.json"), "--json"}), 0) << complained;
  EXPECT_NE(said.find(R"("figure":"devices","values":[3,3,3],"change_percent":0)"),
            std::string::npos)
      << said;
  expect_refused({"compare", path("fifo.json")}, "two results", "loam sim compare");
  expect_refused({"compare", path("fifo.json"), path("none.json")}, "none.json", "--json FILE");
  expect_refused({"compare", path("fifo.json"), path("jobs.csv")}, "jobs.csv", "--json FILE");
}

}  // namespace
}  // namespace loam::cli
