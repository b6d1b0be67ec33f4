// From the usage file to the books: added up, sent until it is acknowledged, recorded once.
#include "app/gateway/outbox.hpp"

#include <fstream>

#include "app/gateway/usage_file.hpp"
#include "gateway/pool_fixture.hpp"

namespace loam::serving {
namespace {

std::string line(const std::string& tenant, int prompt, int cached, int generated,
                 const std::string& model = "tiny") {
  gateway::UsageRecord record;
  record.request = "cmpl-" + tenant + std::to_string(prompt);
  record.caller.tenant = tenant;
  record.model = model;
  record.owner = "acme";
  record.usage.prompt_tokens = static_cast<std::uint32_t>(prompt);
  record.usage.cached_tokens = static_cast<std::uint32_t>(cached);
  record.usage.generated_tokens = static_cast<std::uint32_t>(generated);
  record.arrived = Instant{1'772'409'600'000 + prompt};
  record.lasted = Duration{1000};
  return to_json_line(record);
}

TEST(ReadUsage, AddsUpByTenantModelAndOwner) {
  const std::string text = line("beta", 30, 10, 5) + line("beta", 20, 0, 1) +
                           line("beta", 1, 0, 1, "big") + line("acme", 2, 0, 2) +
                           line("acme", 0, 0, 0) + "half a li";
  const UsageBatch batch = read_usage(text, 100);
  EXPECT_EQ(batch.bytes, text.size() - 9);
  EXPECT_EQ(batch.skipped, 0U);
  ASSERT_EQ(batch.uses.size(), 3U);
  EXPECT_EQ(batch.uses[2].tenant, "beta");
  EXPECT_EQ(batch.uses[2].requests, 2);
  EXPECT_EQ(batch.uses[2].prompt_tokens, 50);
  EXPECT_EQ(batch.uses[2].cached_tokens, 10);
  EXPECT_EQ(batch.uses[2].generated_tokens, 6);
  EXPECT_EQ(batch.uses[2].from, to_text(Instant{1'772'409'600'020}));
  EXPECT_EQ(batch.uses[2].to, to_text(Instant{1'772'409'601'030}));
  EXPECT_EQ(read_usage(text, 1).bytes, line("beta", 30, 10, 5).size());
}

TEST(ReadUsage, AddsUpByWhoseCostAndWhoseIncomeItIs) {
  gateway::UsageRecord record;
  record.request = "cmpl-1";
  record.caller.tenant = "beta";
  record.model = "tiny";
  record.owner = "acme";
  record.usage.prompt_tokens = 1;
  record.arrived = Instant{1'772'409'600'000};
  record.tags = {{"team", "bl\"ue"}};
  record.owner_attribution.project = "serving";
  record.owner_attribution.tags = {{"team", "green"}, {"tier", "gold"}};
  const std::string blue = to_json_line(record);
  record.tags = {{"team", "red"}};
  const std::string red = to_json_line(record);
  const UsageBatch batch = read_usage(blue + red + blue, 100);
  EXPECT_EQ(batch.skipped, 0U);
  ASSERT_EQ(batch.uses.size(), 2U);
  EXPECT_EQ(batch.uses[0].requests, 2);
  EXPECT_EQ(batch.uses[0].tags, (std::map<std::string, std::string>{{"team", "bl\"ue"}}));
  EXPECT_EQ(batch.uses[0].owner_project, "serving");
  EXPECT_EQ(batch.uses[0].owner_environment, "default");
  EXPECT_EQ(batch.uses[0].owner_tags, record.owner_attribution.tags);
  EXPECT_EQ(batch.uses[1].tags, record.tags);
}

TEST(ReadUsage, LinesThatCannotBeReadAreCounted) {
  std::string minus = line("beta", 1, 0, 1);
  minus.replace(minus.find("\"prompt_tokens\":1"), 17, "\"prompt_tokens\":-1");
  std::string more_cached = line("beta", 1, 0, 1);
  more_cached.replace(more_cached.find("\"cached_tokens\":0"), 17, "\"cached_tokens\":2");
  std::string no_tags = line("beta", 1, 0, 1);
  no_tags.replace(no_tags.find("\"tags\":{}"), 9, "\"tags\":[]");
  std::string bad_tag = line("beta", 1, 0, 1);
  bad_tag.replace(bad_tag.find("\"owner_tags\":{}"), 15, "\"owner_tags\":{\"a b\":\"c\"}");
  for (const std::string& bad :
       {std::string("\n"), std::string("nonsense\n"), std::string("[]\n"), std::string("{}\n"),
        std::string("{\"tenant\":5}\n"), minus, more_cached, no_tags, bad_tag}) {
    const UsageBatch batch = read_usage(bad + line("beta", 7, 0, 1), 100);
    EXPECT_EQ(batch.skipped, 1U) << bad;
    ASSERT_EQ(batch.uses.size(), 1U) << bad;
    EXPECT_EQ(batch.uses[0].prompt_tokens, 7);
  }
  EXPECT_EQ(read_usage("", 10).bytes, 0U);
}

struct OutboxTest : PoolTest {
  OutboxTest() {
    config.usage_file = folder / "usage.jsonl";
    config.bill_every = Duration{100};
  }
  ~OutboxTest() override { outbox.reset(); }
  void open() {
    outbox = std::make_unique<Outbox>(config, [this](const std::string& said) {
      std::lock_guard lock(mutex);
      log += said + "\n";
    });
    outbox->start();
  }
  void write(const std::string& text) {
    std::ofstream(config.usage_file, std::ios::app | std::ios::binary) << text;
  }
  // Of beta's bill.
  std::int64_t billed() {
    auto client = api::Client::make({config.pool, {}, {}});
    const auto bill = client->bill("beta");
    EXPECT_TRUE(bill.ok()) << to_text(bill.error());
    std::int64_t sum = 0;
    for (const api::AdjustmentView& each : bill->adjustments) sum += each.tokens;
    return sum;
  }

  std::unique_ptr<Outbox> outbox;
  std::mutex mutex;
  std::string log;
};

TEST_F(OutboxTest, WhatIsWrittenIsBilledOnceHoweverOftenEitherSideRestarts) {
  write(line("beta", 30, 10, 5));
  open();  // without a daemon
  EXPECT_TRUE(http::eventually([&] {
    std::lock_guard lock(mutex);
    return log.find("not on the bill yet") != std::string::npos;
  }));
  serve();
  EXPECT_TRUE(http::eventually([&] { return billed() == 35; }));
  write(line("beta", 100, 0, 10));
  EXPECT_TRUE(http::eventually([&] { return billed() == 145; }));
  outbox->stop();
  write(line("beta", 1000, 0, 100));
  open();
  EXPECT_TRUE(http::eventually([&] { return billed() == 1245; }));
  server.reset();
  write(line("beta", 10'000, 0, 0));
  serve();
  EXPECT_TRUE(http::eventually([&] { return billed() == 11'245; }));
  EXPECT_TRUE(http::eventually([&] { return outbox->waiting_bytes() == 0; }));
}

TEST_F(OutboxTest, AFileThatReplacesAnotherBeginsAnewAndAShorterOneIsToldOf) {
  serve();
  write(line("beta", 30, 10, 5) + line("beta", 31, 0, 0));
  open();
  EXPECT_TRUE(http::eventually([&] { return billed() == 66; }));
  std::filesystem::rename(config.usage_file, folder / "old.jsonl");
  write(line("beta", 5, 0, 5));
  EXPECT_TRUE(http::eventually([&] { return billed() == 76; }));
  std::filesystem::remove(config.usage_file);
  write(line("beta", 30, 10, 5));  // begins as the first one, and is shorter
  EXPECT_TRUE(http::eventually([&] {
    std::lock_guard lock(mutex);
    return log.find("is shorter than what is recorded") != std::string::npos;
  }));
  EXPECT_EQ(billed(), 76);
}

TEST_F(OutboxTest, LinesThatNobodyCanPayForAreToldAndHoldUpNone) {
  serve();
  write("nonsense\n" + line("ghost", 5, 0, 5) + line("beta", 30, 10, 5));
  open();
  EXPECT_TRUE(http::eventually([&] { return billed() == 35; }));
  EXPECT_TRUE(http::eventually([&] {
    std::lock_guard lock(mutex);
    return log.find("'ghost'") != std::string::npos;
  }));
  std::lock_guard lock(mutex);
  EXPECT_NE(log.find("1 lines"), std::string::npos) << log;
}

}  // namespace
}  // namespace loam::serving
