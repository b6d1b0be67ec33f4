// What a gateway that died did not write down is found in the engines' file, once.
#include "app/gateway/recovery.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "app/gateway/usage_file.hpp"

namespace loam::serving {
namespace {

struct RecoveryTest : testing::Test {
  RecoveryTest() {
    char name[] = "/tmp/recovery.XXXXXX";
    folder = ::mkdtemp(name);
    config.run_dir = folder + "/run";
    config.usage_file = folder + "/usage.jsonl";
    std::filesystem::create_directories(config.run_dir + "/engines");
  }
  ~RecoveryTest() override { std::filesystem::remove_all(folder); }

  void engine_says(const std::string& request, int prompt, int generated,
                   const std::string& outcome = "cancelled", bool whole = true) {
    std::ofstream(engine_usage_file(config), std::ios::app)
        << "{\"request\":\"" << request
        << "\",\"tenant\":\"beta\",\"model\":\"tiny\",\"outcome\":\"" << outcome
        << "\",\"prompt_tokens\":" << prompt
        << ",\"cached_tokens\":0,\"generated_tokens\":" << generated
        << ",\"recomputed_tokens\":0,\"engine_time_us\":5}" << (whole ? "\n" : "");
  }
  void gateway_says(const std::string& request, std::uint32_t prompt, std::uint32_t generated,
                    bool settled = true) {
    gateway::UsageRecord record;
    record.request = request;
    record.caller.tenant = "beta";
    record.model = "tiny";
    record.usage.prompt_tokens = prompt;
    record.usage.generated_tokens = generated;
    record.settled = settled;
    std::ofstream(config.usage_file, std::ios::app) << to_json_line(record);
  }
  // What is written down now.
  std::vector<gateway::UsageRecord> recover() {
    struct Sink final : gateway::UsageSink {
      explicit Sink(const std::string& to) : path(to) {}
      void record(const gateway::UsageRecord& record) override {
        std::ofstream(path, std::ios::app) << to_json_line(record);
        records.push_back(record);
      }
      std::string path;
      std::vector<gateway::UsageRecord> records;
    } sink(config.usage_file);
    const auto done = recover_usage(config, {{"tiny", "acme"}}, Instant{5000}, sink);
    EXPECT_TRUE(done.ok()) << to_text(done.error());
    if (done.ok()) {
      EXPECT_EQ(done->requests, sink.records.size());
      skipped = done->skipped;
    }
    return sink.records;
  }
  Config config;
  std::string folder;
  std::size_t skipped = 0;
};

TEST_F(RecoveryTest, ARequestThatTheGatewayDidNotWriteDownIsRecordedOnce) {
  gateway_says("one", 10, 5);
  engine_says("one", 10, 5, "finished");
  engine_says("lost", 30, 7);
  const auto records = recover();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].request, "lost");
  EXPECT_EQ(records[0].caller.tenant, "beta");
  EXPECT_EQ(records[0].owner, "acme");
  EXPECT_EQ(records[0].usage.prompt_tokens, 30U);
  EXPECT_EQ(records[0].usage.generated_tokens, 7U);
  EXPECT_TRUE(recover().empty());
}

TEST_F(RecoveryTest, InterruptedBeforeItsPlaceIsKeptItHasNoSecondEffect) {
  engine_says("lost", 30, 7);
  EXPECT_EQ(recover().size(), 1U);
  std::filesystem::remove(engine_usage_file(config) + ".read");
  EXPECT_TRUE(recover().empty());
}

TEST_F(RecoveryTest, APartsOfARequestAddUpAndFailedTriesAreNobodysButTheOperators) {
  engine_says("two", 10, 3);
  engine_says("two", 20, 4);
  engine_says("two", 500, 400, "failed");
  const auto records = recover();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].usage.prompt_tokens, 30U);
  EXPECT_EQ(records[0].usage.generated_tokens, 7U);
}

TEST_F(RecoveryTest, OfOneThatWasNotSettledOnlyWhatIsMissingIsAdded) {
  gateway_says("half", 10, 5, false);
  engine_says("half", 10, 9);
  gateway_says("more", 10, 9, false);
  engine_says("more", 10, 5);
  const auto records = recover();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].request, "half");
  EXPECT_EQ(records[0].usage.prompt_tokens, 0U);
  EXPECT_EQ(records[0].usage.generated_tokens, 4U);
  EXPECT_TRUE(recover().empty());
}

TEST_F(RecoveryTest, ALineThatIsBeingWrittenIsLeftForTheNextTime) {
  engine_says("late", 30, 7, "cancelled", false);
  EXPECT_TRUE(recover().empty());
  std::ofstream(engine_usage_file(config), std::ios::app) << "\n";
  EXPECT_EQ(recover().size(), 1U);
}

TEST_F(RecoveryTest, AFileThatTookThePlaceOfAnotherIsReadFromItsBeginning) {
  for (int i = 0; i < 20; ++i) engine_says("old" + std::to_string(i), 1, 1);
  EXPECT_EQ(recover().size(), 20U);
  std::filesystem::remove(engine_usage_file(config));
  engine_says("old3", 1, 1);
  engine_says("new", 1, 1);
  const auto records = recover();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].request, "new");
}

TEST_F(RecoveryTest, LinesThatMeanNothingAreCounted) {
  std::ofstream(engine_usage_file(config)) << "nonsense\n[]\n{}\n{\"request\":\"x\"}\n";
  engine_says("lost", 1, 1);
  EXPECT_EQ(recover().size(), 1U);
  EXPECT_EQ(skipped, 4U);
  std::filesystem::remove(engine_usage_file(config));
  EXPECT_TRUE(recover().empty()) << "no file, nothing to do";
  std::filesystem::remove_all(config.run_dir);
  EXPECT_TRUE(recover().empty()) << "nor a folder";
}

}  // namespace
}  // namespace loam::serving
