// loam-gateway's own parts: its configuration, its endpoints' file, its usage lines and its keys.
#include <gtest/gtest.h>

#include <fstream>

#include "app/gateway/config.hpp"
#include "app/gateway/endpoint_json.hpp"
#include "app/gateway/keys.hpp"
#include "app/gateway/usage_file.hpp"
#include "http/fixture.hpp"

namespace loam::serving {
namespace {

TEST(ServingConfig, EveryKeyIsRead) {
  const auto config = parse_config(R"(
    socket = "/s"
    socket_mode = 384
    listen = "127.0.0.1:8480"
    tokens = "/t"
    usage_file = "/u"
    endpoints_file = "/e"
    run_dir = "/r"
    engine_program = "/p"
    start_wait_max = "10s"
    [[endpoint]]
    model = "tiny"
    owner = "acme"
    callers = ["beta"]
    file = "/m.gguf"
    arguments = ["--context", "512"]
    tiers = { flex = "/m4.gguf", priority = "/m16.gguf" }
    min = 1
    max = 3
    slots = 16
    idle_after = "2m"
    shrink_after = "30s"
    [[endpoint]]
    model = "other"
    engines = ["/run/a.sock", "/run/b.sock"]
    [[slice]]
    share = "0.5"
    memory = "40GiB"
    [[slice]]
    share = "0.125"
    [[tenant]]
    name = "acme"
    requests_per_minute = 60
    tokens_per_minute = 1000
    concurrent_requests = 4
    weight = 3
    class = "interactive"
  )",
                                   "test");
  ASSERT_TRUE(config.ok()) << to_text(config.error());
  EXPECT_EQ(config->socket_mode, 0600);
  EXPECT_EQ(config->start_wait_max, Duration::seconds(10));
  ASSERT_EQ(config->endpoints.size(), 2U);
  const EndpointConfig& tiny = config->endpoints[0];
  EXPECT_EQ(tiny.arguments.size(), 2U);
  const std::vector<EndpointConfig> parts = parts_of(tiny);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].file, "/m.gguf");
  EXPECT_EQ(parts[1].model, "tiny@flex");
  EXPECT_EQ(parts[1].file, "/m4.gguf");
  EXPECT_EQ(parts[2].model, "tiny@priority");
  EXPECT_EQ(parts[2].scaling.instances_max, 3U) << "by the same terms";
  EXPECT_EQ(tiny.scaling.instances_min, 1U);
  EXPECT_EQ(tiny.scaling.instances_max, 3U);
  EXPECT_EQ(tiny.scaling.idle_after, Duration::minutes(2));
  EXPECT_EQ(tiny.slots, 16);
  EXPECT_EQ(config->endpoints[1].engines.size(), 2U);
  ASSERT_EQ(config->slices.size(), 2U);
  EXPECT_EQ(config->slices[0].part, MilliDevice{500});
  EXPECT_EQ(config->slices[0].memory, Mebibytes{40 * 1024});
  EXPECT_EQ(smallest_slice(config->slices, Mebibytes{50 * 1024})->share, "0.125") << "of no bound";
  ASSERT_EQ(config->tenants.size(), 1U);
  EXPECT_EQ(config->tenants[0].limits, (gateway::TenantLimits{60, 1000, 4}));
  EXPECT_EQ(config->tenants[0].service_class, infer::ServiceClass::interactive);
}

TEST(ServingConfig, FaultsNameTheirPlace) {
  struct Case {
    const char* text;
    const char* says;
  };
  const Case cases[] = {
      {"socket = 5", "socket is not text"},
      {"sokcet = \"x\"", "sokcet is not a known key"},
      {"socket_mode = 9999", "whole number from 0 to 511"},
      {"start_wait_max = \"long\"", "length of time"},
      {"endpoint = 1", "[[endpoint]]"},
      {"[[endpoint]]\nfile = \"x\"", "no model"},
      {"[[endpoint]]\nmodel = \"a\"", "either engines or a file"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\nengines = [\"y\"]", "either engines or a file"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\nmin = 2\nmax = 1", "min above its max"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\nengines = [1]", "list of texts"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"x\"",
       "there twice"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntiers = 3", "table of texts"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntiers = { flex = 3 }", "table of texts"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntiers = { gold = \"y\" }", "flex and priority"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntiers = { flex = \"\" }", "without a file"},
      {"[[endpoint]]\nmodel = \"a\"\nengines = [\"x\"]\ntiers = { flex = \"y\" }", "no file"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntiers = { flex = \"y\" }\n[[endpoint]]\nmodel = "
       "\"a@flex\"\nfile = \"x\"",
       "there twice"},
      {"pool = \"/s\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"/x\"\nowner = \"o\"\nce = "
       "\"1\"\ntiers = { "
       "flex = \"y\" }",
       "whole path"},
      {"[[slice]]\nshare = \"2\"", "slice.share"},
      {"[[slice]]\nmemory = \"1GiB\"", "slice.share"},
      {"[[slice]]\nshare = \"1\"\nmemory = \"much\"", "slice.memory"},
      {"[[slice]]\nshare = \"1\"\ncolour = 1", "not a known key"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntags = { team = 1 }", "table of texts"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntags = { team = \"a,b\" }", "the tag 'team'"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\nproject = \"No Name\"", "'No Name'"},
      {"[[tenant]]\nweight = 1", "no name"},
      {"[[tenant]]\nname = \"a\"\nclass = \"gold\"", "tenant.class"},
      {"[[tenant]]\nname = \"a\"\nweight = 0", "tenant.weight"},
      {"socket = ", "test:1:"},
      {"[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\ntime = 5", "length of time"},
      {"pool = \"/s\"\nmemory_mib = 5", "there is a pool"},
      {"pool = \"/s\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"/x\"\nshare = \"1\"", "has no owner"},
      {"pool = \"/s\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"/x\"\nowner = \"o\"",
       "neither ce nor share"},
      {"pool = \"/s\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"/x\"\nowner = \"o\"\nce = \"1\"\n"
       "share = \"1\"",
       "both ce and share"},
      {"pool = \"/s\"\n[[endpoint]]\nmodel = \"a\"\nfile = \"x\"\nowner = \"o\"\nce = \"1\"",
       "whole path"},
  };
  for (const Case& one : cases) {
    const auto config = parse_config(one.text, "test");
    ASSERT_FALSE(config.ok()) << one.text;
    EXPECT_NE(to_text(config.error()).find(one.says), std::string::npos) << one.text << "\n"
                                                                         << to_text(config.error());
  }
}

TEST(ServingEndpoints, ComeBackFromTheirFile) {
  http::Folder folder;
  const std::string path = folder / "endpoints.json";
  EXPECT_TRUE(load_endpoints(path).value().empty());
  auto endpoint = parse_endpoint(
      R"({"model":"a\"b","file":"/m","owner":"acme","callers":["x"],"min":1,"max":2,"slots":4,)"
      R"("idle_after":"90s","share":"0.5","purchase_model":"spot","time":"2h",)"
      R"("tags":{"team":"green"}})");
  ASSERT_TRUE(endpoint.ok()) << to_text(endpoint.error());
  EXPECT_EQ(endpoint->tags, (std::map<std::string, std::string>{{"team", "green"}}));
  ASSERT_TRUE(save_endpoints(path, {*endpoint, *endpoint}).ok());
  const auto loaded = load_endpoints(path);
  ASSERT_TRUE(loaded.ok());
  ASSERT_EQ(loaded->size(), 2U);
  EXPECT_EQ(to_json(loaded->at(1)), to_json(*endpoint));
  EXPECT_EQ(loaded->at(0).model, "a\"b");
  EXPECT_EQ(loaded->at(0).tags, endpoint->tags);
  std::ofstream(path) << "[{}]";
  EXPECT_EQ(load_endpoints(path).error().kind, ErrorKind::corrupt);
  EXPECT_FALSE(save_endpoints(folder / "no/where", {}).ok());
}

TEST(ServingEndpoints, BadOnesAreRefused) {
  for (const char* body :
       {"", "[]", "{}", R"({"model":"a"})", R"({"file":"x"})",
        R"({"model":"a","file":"x","min":-1})", R"({"model":"a","file":"x","max":0})",
        R"({"model":"a","file":"x","min":3,"max":2})", R"({"model":"a","file":"x","max":1.5})",
        R"({"model":"a","file":"x","tags":["x"]})", R"({"model":"a","file":"x","tags":{"a b":""}})",
        R"({"model":1,"file":"x"})", R"({"model":"a","file":"x","callers":"x"})",
        R"({"model":"a","file":"x","idle_after":5})", R"({"model":"a","file":"x","size":1})"})
    EXPECT_FALSE(parse_endpoint(body).ok()) << body;
}

TEST(ServingUsage, ARecordIsALine) {
  http::Folder folder;
  const std::string path = folder / "usage.jsonl";
  gateway::UsageRecord record;
  record.request = "chatcmpl-1";
  record.caller.tenant = "ac\"me";
  record.usage = {10, 4, 6, 1, 99};
  record.outcome = gateway::UsageOutcome::client_left;
  auto file = UsageFile::open(path, [](const std::string& line) { ADD_FAILURE() << line; });
  ASSERT_TRUE(file.ok());
  (*file)->record(record);
  (*file)->record(record);
  std::ifstream in(path);
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_EQ(line + "\n", to_json_line(record));
  EXPECT_NE(line.find(R"("tenant":"ac\"me")"), std::string::npos);
  EXPECT_NE(line.find(R"("outcome":"client_left","settled":true,"prompt_tokens":10,)"
                      R"("cached_tokens":4,"generated_tokens":6)"),
            std::string::npos)
      << line;
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_FALSE(UsageFile::open(folder / "no/where", {}).ok());
}

TEST(ServingUsage, WhatCannotBeWrittenIsLogged) {
  std::string logged;
  auto file = UsageFile::open("/dev/full", [&](const std::string& line) { logged = line; });
  ASSERT_TRUE(file.ok());
  gateway::UsageRecord record;
  record.request = "chatcmpl-1";
  (*file)->record(record);
  EXPECT_NE(logged.find("chatcmpl-1"), std::string::npos);
}

TEST(ServingKeys, AMembersTokenIsItsTenantsKey) {
  http::Folder folder;
  Config config;
  config.tokens = folder / "tokens.json";
  config.tenants.push_back({"acme", {7, 0, 0}, 3, infer::ServiceClass::interactive});
  Keys keys(config);
  EXPECT_EQ(keys.identify("loam_nothing").error().kind, ErrorKind::unauthenticated);
  auto store = api::TokenStore::open(config.tokens);
  ASSERT_TRUE(store.ok());
  const std::string member = (*store)->create("ci", api::Role::member, "acme", Instant{1}).value();
  const std::string admin = (*store)->create("root", api::Role::admin, "", Instant{1}).value();
  const auto caller = keys.identify(member);  // made after the file was read first
  ASSERT_TRUE(caller.ok()) << to_text(caller.error());
  EXPECT_EQ(caller->tenant, "acme");
  EXPECT_EQ(caller->key, "ci");
  EXPECT_EQ(caller->weight, 3U);
  EXPECT_EQ(caller->limits.requests_per_minute, 7U);
  EXPECT_EQ(keys.identify(admin).error().kind, ErrorKind::permission_denied);
  EXPECT_TRUE(keys.may_operate(admin));
  EXPECT_FALSE(keys.may_operate(member));
  ASSERT_TRUE((*store)->revoke("ci", Instant{2}).ok());
  EXPECT_EQ(keys.identify(member).error().kind, ErrorKind::unauthenticated);
}

}  // namespace
}  // namespace loam::serving
