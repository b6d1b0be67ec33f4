// `loam sim` as scripts call it: the result lands in the file that --json names, with the keys that
// they read, and an option that a run would pass over is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/loam/program.hpp"

namespace loam::cli {
namespace {

class SimContract : public ::testing::Test {
 protected:
  SimContract() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-sim-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    write("nodes.csv",
          "sn,cpu_milli,memory_mib,gpu,model\n"
          "n1,64000,262144,2,V100M16\nn2,64000,262144,4,V100M16\n");
    write("pods.csv",
          "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
          "deletion_time,scheduled_time\n"
          "p1,4000,8192,1,500,,LS,Running,0,100,1\np2,8000,8192,2,1000,,LS,Running,5,90,6\n"
          "p3,2000,4096,0,0,,BE,Running,7,50,8\n");
    write("jobs.csv", "arrival_s,duration_s,devices\n0,100,2\n10,50,1\n20,400,2\n1000,10,1\n");
  }
  ~SimContract() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  }
  std::string written(const std::string& name) {
    std::ifstream in(folder + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int loam(std::vector<std::string> words) {
    std::ostringstream out, err;
    Console console{out, err};
    words.insert(words.begin(), "sim");
    const int status = run_program(words, console, [](const char*) { return std::string(); });
    complained = err.str();
    return status;
  }
  void expect_keys(const std::string& file, std::vector<std::string> keys) {
    const std::string text = written(file);
    for (const std::string& key : keys)
      EXPECT_NE(text.find("\"" + key + "\":"), std::string::npos) << key << " in " << text;
  }

  std::string folder, complained;
};

TEST_F(SimContract, OpenbGivesAllocationMovesAndTime) {
  ASSERT_EQ(loam({"--trace", "openb", "--nodes", folder + "/nodes.csv", "--tasks",
                  folder + "/pods.csv", "--policy", "fragmentation", "--mix", "known", "--moves",
                  "2", "--arrivals", "1.3", "--seeds", "42..44", "--json", folder + "/o.json"}),
            0)
      << complained;
  expect_keys("o.json", {"allocation_mean", "allocation_sd", "moves", "wall_s"});
}

TEST_F(SimContract, JobsGiveCompletionWaitPreemptionsAndMakespan) {
  for (const char* discipline :
       {"fifo", "easy", "any", "sjf", "srtf", "srsf", "las2", "blind", "semi_blind"}) {
    ASSERT_EQ(
        loam({"--trace", "jobs", "--tasks", folder + "/jobs.csv", "--devices", "3", "--discipline",
              discipline, "--preemption-cost", "60s", "--json", folder + "/j.json"}),
        0)
        << discipline << ": " << complained;
    expect_keys("j.json", {"completion_mean_s", "wait_p99_s", "preemptions", "makespan_s"});
  }
}

TEST_F(SimContract, SyntheticGivesPlacementsAndLatency) {
  ASSERT_EQ(loam({"--synthetic", "devices=800,nodes=100,load=0.9", "--json", folder + "/s.json"}),
            0)
      << complained;
  expect_keys("s.json", {"placements_per_s", "decision_p99_us", "rss_mib"});
}

TEST_F(SimContract, JobsThatComeTwiceAsFastEndSooner) {
  const auto makespan = [&](const char* factor) {
    EXPECT_EQ(loam({"--trace", "jobs", "--tasks", folder + "/jobs.csv", "--devices", "3",
                    "--discipline", "fifo", "--arrivals", factor, "--json", folder + "/j.json"}),
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
           Bad{{"--from-journal", folder, "--policy", "best_fit"}, "--policy", "--trace openb"},
           Bad{{"--trace", "jobs", "--synthetic", "devices=8,nodes=1,load=0.5"},
               "exclude",
               "give one"},
           Bad{{"--trace", "jobs", "--json", "a.json", "b.json"}, "a.json", "--out"},
       }) {
    EXPECT_NE(loam(bad.words), 0);
    EXPECT_NE(complained.find(bad.says), std::string::npos) << complained;
    EXPECT_NE(complained.find(bad.next), std::string::npos) << complained;
  }
}

}  // namespace
}  // namespace loam::cli
