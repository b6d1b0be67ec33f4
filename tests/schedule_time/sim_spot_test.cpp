// `loam sim --trace spot`: what scripts read from it, and what it refuses.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/loam/program.hpp"

namespace loam::cli {
namespace {

class SimSpot : public ::testing::Test {
 protected:
  SimSpot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-spot-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    // An hour with spot, an hour without, in samples of 10 minutes, for two days.
    std::string data;
    for (int i = 0; i < 288; ++i)
      data += std::string(i == 0 ? "" : ",") + (i / 6 % 2 == 0 ? "2" : "0");
    write("a.json", R"({"metadata":{"gap_seconds":600},"data":[)" + data + "]}");
  }
  ~SimSpot() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder + "/" + name, std::ios::binary) << text;
  }

  int loam(std::vector<std::string> words) {
    std::ostringstream out, err;
    Console console{out, err};
    words.insert(words.begin(), {"sim", "--trace", "spot"});
    const int status = run_program(words, console, [](const char*) { return std::string(); });
    said = out.str();
    complained = err.str();
    return status;
  }
  std::vector<std::string> task(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"--availability", folder + "/a.json",
                                   "--work",         "6h",
                                   "--deadline",     "16h",
                                   "--changeover",   "10m",
                                   "--price-ratio",  "0.3"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  std::string folder, said, complained;
};

TEST_F(SimSpot, GivesCostStartsAndWhetherTheDeadlineWasMissed) {
  ASSERT_EQ(loam(task({"--policy", "reserve", "--json"})), 0) << complained;
  // Spot for five of every twelve samples: the work takes eight spells, each with its changeover.
  EXPECT_EQ(said,
            "{\"policy\":\"reserve\",\"cost_fraction\":0.366667,\"starts\":8,\"missed\":false,"
            "\"ended_s\":51600,\"jain\":1,\"optimum_fraction\":0.366667}\n");
}

TEST_F(SimSpot, TellsTheRunTickByTick) {
  ASSERT_EQ(loam(task({"--policy", "reserve", "--csv", "-", "--plot", folder + "/plots"})), 0)
      << complained;
  std::vector<std::string> lines;
  std::istringstream text(said);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 87U);  // 86 ticks of 10 minutes, and nothing but the series
  EXPECT_EQ(lines[0], "tick,at_s,available,mode,done_s,paid_fraction,starts");
  EXPECT_EQ(lines[1], "0,0,1,spot,0,0.008333,1");
  EXPECT_EQ(lines[86], "85,51000,1,spot,21600,0.366667,8");
  std::ifstream plot(folder + "/plots/spot.svg");
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(plot), {}).starts_with("<svg"));
}

TEST_F(SimSpot, StartsAtASampleOrATime) {
  ASSERT_EQ(loam(task({"--start", "12", "--json"})), 0) << complained;
  const std::string by_index = said;
  ASSERT_EQ(loam(task({"--start", "2h", "--out", folder + "/out.json"})), 0) << complained;
  std::ifstream in(folder + "/out.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), by_index);
  EXPECT_NE(said.find("reserve: "), std::string::npos);
}

TEST_F(SimSpot, RefusesWhatIsOffWithItsValue) {
  write("bad.json", R"({"metadata":{"gap_seconds":600},"data":[1,-2]})");
  struct Bad {
    std::vector<std::string> words;
    const char* says;
  };
  for (const Bad& bad : {
           Bad{{}, "--availability"},
           Bad{{"--availability", "/nonexistent.json"}, "/nonexistent.json"},
           Bad{{"--availability", folder + "/bad.json"}, "'data[1]'"},
           Bad{{"--availability", folder + "/a.json"}, "--work"},
           Bad{task({"--policy", "packing_value"}), "'packing_value'"},
           Bad{task({"--start", "288"}), "288"},
           Bad{task({"--start", "x"}), "x"},
           Bad{task({"--start", "40h"}), "sample 288"},
           Bad{{"--availability", folder + "/a.json", "--work", "6h", "--deadline", "6h",
                "--changeover", "10m"},
               "6h10m"},
           Bad{{"--availability", folder + "/a.json", "--work", "6", "--deadline", "6h",
                "--changeover", "10m"},
               "--work"},
           Bad{{"--availability", folder + "/a.json", "--work", "6h", "--deadline", "16h",
                "--changeover", "10m", "--price-ratio", "1.5"},
               "1.5"},
       }) {
    EXPECT_NE(loam(bad.words), 0);
    EXPECT_NE(complained.find(bad.says), std::string::npos) << complained;
    EXPECT_NE(complained.find("next: "), std::string::npos) << complained;
  }
}

}  // namespace
}  // namespace loam::cli
