// loamd's settings file: every key has a default, everything odd is refused with its place.
#include "app/loamd/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loam::daemon {
namespace {

using ::testing::HasSubstr;

TEST(Config, AnEmptyFileGivesTheDefaults) {
  const auto config = parse_config("", "loamd.toml");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  EXPECT_EQ(config->data_dir, default_config().data_dir);
  EXPECT_EQ(config->sandbox, "auto");
  EXPECT_TRUE(config->users.empty());
}

TEST(Config, ReadsEverySetting) {
  const auto config = parse_config(R"(
data_dir = "/srv/loam"
socket = "/run/l.sock"
socket_mode = 0o660
listen = "127.0.0.1:8470"
node = "gpu-1"
region = "eu"
catalog = "/c.toml"
programs = "/p"
guard = ""
sandbox = "none"
mounts = ["/data", "/models"]
shared = ["/opt/tools"]
log_level = "debug"
turn_quantum = "5ms"
hung_after = "30s"
hung_action = "end"
spill_memory = true
when_idle = "park"
lend_memory = true
concurrent_kernels = true
snapshot_every = 10
[[user]]
uid = 1000
role = "member"
tenant = "acme"
[[user]]
uid = 1001
role = "finance"
)",
                                   "loamd.toml");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  EXPECT_EQ(config->socket_mode, 0660);
  EXPECT_EQ(config->node_name, "gpu-1");
  EXPECT_EQ(config->mounts, (std::vector<std::string>{"/data", "/models"}));
  EXPECT_EQ(config->turn_quantum, Duration{5});
  EXPECT_EQ(config->hung_after, Duration::seconds(30));
  EXPECT_EQ(config->hung_action, "end");
  EXPECT_TRUE(config->spill_memory);
  EXPECT_EQ(config->when_idle, "park");
  EXPECT_TRUE(config->lend_memory);
  EXPECT_TRUE(config->concurrent_kernels);
  ASSERT_EQ(config->users.size(), 2u);
  EXPECT_EQ(config->users[0].tenant, "acme");
}

TEST(Config, ReadsQueuesClassesAndWeights) {
  const auto config = parse_config(R"(
share_half_life = "30m"
hold_expires = "12h"
[[queue]]
name = "batch"
discipline = "drf"
weight = 2
barred_environments = ["production"]
device_types = ["a100"]
work_classes = ["general", "decode"]
region = "east"
labels = ["shared", "old"]
[[queue]]
name = "urgent"
rank = 1
safe = "2m"
preemptions = 1
preemption_window = "12h"
overdue = "6h"
[[class]]
name = "standard"
[[class]]
name = "premium"
level = 10
[[weight]]
tenant = "acme"
weight = 3
)",
                                   "loamd.toml");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  const SchedulingSettings& settings = config->scheduling;
  ASSERT_EQ(settings.queues.size(), 2u);
  EXPECT_EQ(settings.queues[0].discipline, "drf");
  EXPECT_EQ(settings.queues[0].barred_environments, std::vector<std::string>{"production"});
  EXPECT_EQ(settings.queues[0].device_types, std::vector<std::string>{"a100"});
  EXPECT_EQ(settings.queues[0].region, "east");
  EXPECT_EQ(settings.queues[0].labels, (std::vector<std::string>{"shared", "old"}));
  // Who says what a program does sets its price: only what is named is sold.
  EXPECT_EQ(settings.queues[0].work_classes,
            (std::vector<WorkClass>{WorkClass::general, WorkClass::decode}));
  EXPECT_EQ(settings.queues[1].work_classes, std::vector<WorkClass>{WorkClass::general});
  EXPECT_EQ(settings.queues[1].discipline, "priority");
  EXPECT_EQ(settings.queues[1].safe, Duration::minutes(2));
  EXPECT_EQ(settings.queues[1].preemptions, 1);
  EXPECT_FALSE(settings.queues[1].ageing.has_value());
  ASSERT_EQ(settings.classes.size(), 2u);
  EXPECT_EQ(settings.classes[1].level, 10);
  EXPECT_EQ(settings.weights.at(0).weight, 3);
  EXPECT_EQ(settings.share_half_life, Duration::minutes(30));
  EXPECT_EQ(settings.hold_expires, Duration::hours(12));
  SchedulingSettings plain;
  plain.queues.front().work_classes = {WorkClass::general};
  EXPECT_EQ(parse_config("", "loamd.toml")->scheduling, plain);
}

TEST(Config, RefusesQueuesThatMeanNothing) {
  struct Case {
    const char* text;
    const char* words;
  };
  const Case cases[] = {
      {"[[queue]]\ndiscipline = \"fair\"", "'fair' is no discipline"},
      {"[[queue]]\nname = \"a\"\n[[queue]]\nname = \"a\"", "two queues 'a'"},
      {"[[queue]]\nname = \"No!\"", "is not the name of a queue"},
      {"[[queue]]\nsafe = \"soon\"", "queue.safe"},
      {"[[queue]]\nspeed = 3", "queue.speed"},
      {"[[class]]\nname = \"premium\"", "no service class 'standard'"},
      {"[[class]]\nname = \"standard\"\nlevel = 5000", "class.level"},
      {"[[weight]]\nweight = 2", "name a tenant"},
      {"share_half_life = \"0ms\"", "half-life"},
      {"hold_expires = \"0ms\"", "holds that expire after 0s are out of range"},
  };
  for (const Case& one : cases) {
    const auto config = parse_config(one.text, "loamd.toml");
    ASSERT_FALSE(config.ok()) << one.text;
    EXPECT_THAT(to_text(config.error()), HasSubstr(one.words)) << one.text;
  }
}

TEST(Config, RefusesWhatIsOddAndSaysWhere) {
  struct Case {
    const char* text;
    const char* words;
  };
  const Case cases[] = {
      {"data_dri = \"/x\"", "loamd.toml:1:"},
      {"data_dri = \"/x\"", "'data_dri' is not a setting"},
      {"\nsnapshot_every = 0", "loamd.toml:2:"},
      {"snapshot_every = \"many\"", "must be a whole number"},
      {"sandbox = \"chroot\"", "one of auto, bubblewrap, none"},
      {"turn_quantum = \"fast\"", "length of time"},
      {"hung_action = \"shout\"", "one of"},
      {"when_idle = \"sleep\"", "one of report, park, end, not 'sleep'"},
      {"lend_memory = \"yes\"", "true or false"},
      {"mounts = \"/data\"", "list of texts"},
      {"mounts = [1]", "list of texts"},
      {"node = \"GPU 1\"", "is not a node name"},
      {"data_dir = ", "loamd.toml:1:"},
      {"seller = \"me\"", "'seller' must be a table"},
      {"[seller]\naddress = \"1 High Street\"", "[seller] has no name"},
      {"[seller]\nname = \"Lab\"\nphone = \"1\"", "'seller.phone' is not a setting"},
      {"[seller]\nname = \"Lab\"\ndue_after = \"36h\"", "no number of days"},
      {"[seller]\nname = 5", "'seller.name' must be text, not 5"},
      {"[[user]]\nrole = \"admin\"", "needs uid and role"},
      {"[[user]]\nuid = 5\nrole = \"king\"", "admin, operator, finance, member"},
      {"[[user]]\nuid = 5\nrole = \"member\"", "needs a tenant"},
      {"[[user]]\nuid = 5\nrole = \"admin\"\ntenant = \"acme\"", "needs a tenant exactly when"},
      {"[[user]]\nuid = 5\nrole = \"admin\"\ncolour = 1", "'user.colour' is not a setting"},
  };
  for (const Case& odd : cases) {
    const auto config = parse_config(odd.text, "loamd.toml");
    ASSERT_FALSE(config.ok()) << odd.text;
    EXPECT_THAT(config.error().message, HasSubstr(odd.words)) << odd.text;
  }
}

// Each setting has another value here than by default, so that one that is not printed, or not
// read back, is seen.
TEST(Config, ReadsWhoSells) {
  const auto config = parse_config("[seller]\nname = \"Lab\"\n", "loamd.toml");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  EXPECT_EQ(config->seller.name, "Lab");
  EXPECT_EQ(config->seller.due_after_days, 14);
  EXPECT_EQ(
      parse_config("[seller]\nname = \"Lab\"\ndue_after = \"0s\"\n", "x")->seller.due_after_days,
      0);
}

TEST(Config, WhatIsPrintedIsWhatIsInForce) {
  const std::string text = R"(data_dir = "/d"
socket = "/s"
socket_mode = 0o600
listen = "127.0.0.1:1"
node = "n"
region = "r"
labels = ["a", "b \"c\""]
cpu_oversubscription = 7
catalog = "/c"
programs = "/p"
guard = "/g"
sandbox = "none"
mounts = ["/m"]
operator_mounts = ["/o"]
shared = ["/sh"]
notify = ["/n"]
device_locks = "/dl"
check_devices = "7s"
notify_ca = "/ca.pem"
log_level = "debug"
turn_quantum = "11ms"
hung_after = "61s"
hung_action = "end"
concurrent_kernels = true
lend_memory = true
spill_memory = true
when_idle = "park"
snapshot_every = 9
share_half_life = "3h"
placement = "spread"
hold_expires = "48h"
[oversubscription]
ce = 1.5
memory = 1.25
[[queue]]
name = "standard"
discipline = "fifo"
rank = 3
weight = 4
barred_environments = ["test"]
device_types = ["a100", "h100"]
region = "east"
labels = ["production"]
safe = "5m"
preemptions = 2
preemption_window = "2h"
[[class]]
name = "standard"
level = 1
wait = "9m"
late = ["on_demand:5m", "larger_queue/standard:10m", "split:20m"]
[[weight]]
tenant = "acme"
project = "vision"
weight = 5
[[user]]
uid = 5
role = "member"
tenant = "acme"
[seller]
name = "Loam Lab GmbH"
address = "Beispielweg 1\nBerlin"
tax_id = "DE123"
terms = "net"
due_after = "30d"
)";
  const auto config = parse_config(text, "loamd.toml");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  const std::string printed = to_toml(*config);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string key = line.substr(0, line.find(' '));
    EXPECT_THAT(printed, HasSubstr(line.front() == '[' ? line : key + " = ")) << line;
  }
  const auto again = parse_config(printed, "printed");
  ASSERT_TRUE(again.ok()) << to_text(again.error()) << "\n" << printed;
  EXPECT_EQ(to_toml(*again), printed);
  const Config defaults = default_config();
  EXPECT_TRUE(parse_config(to_toml(defaults), "defaults").ok());
}

TEST(Config, DevicesAreLentOnceUnlessItSaysOtherwise) {
  EXPECT_EQ(parse_config("", "x")->scheduling.oversubscription, Oversubscription{});
  const auto config = parse_config(
      "spill_memory = true\nguard = \"/g\"\n[oversubscription]\nce = 2\nmemory = 1.125\n", "x");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  EXPECT_EQ(config->scheduling.oversubscription, (Oversubscription{2000, 1125}));
}

TEST(Config, RefusesFactorsThatNobodyCouldKeep) {
  struct Case {
    const char* text;
    const char* words;
  };
  const Case cases[] = {
      {"[oversubscription]\nce = 0.9", "'oversubscription.ce' must be a factor from 1 to 8"},
      {"[oversubscription]\nce = 8.001", "such as 1.5, not 8.001"},
      {"[oversubscription]\nce = 1.2345", "not 1.2345"},
      {"[oversubscription]\nce = \"1.5\"", "must be a factor"},
      {"[oversubscription]\nce = nan", "must be a factor"},
      {"[oversubscription]\ncpu = 2", "'oversubscription.cpu' is not a setting"},
      {"oversubscription = 2", "'oversubscription' must be a table"},
      {"[oversubscription]\nmemory = 1.2", "set spill_memory = true"},
      {"spill_memory = true\nguard = \"\"\n[oversubscription]\nmemory = 1.2", "guard"},
  };
  for (const Case& odd : cases) {
    const auto config = parse_config(odd.text, "loamd.toml");
    ASSERT_FALSE(config.ok()) << odd.text;
    EXPECT_THAT(to_text(config.error()), HasSubstr(odd.words)) << odd.text;
  }
}

TEST(Config, AMissingFileIsNamed) {
  const auto config = load_config("/no/such/loamd.toml");
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("/no/such/loamd.toml"));
}

}  // namespace
}  // namespace loam::daemon
