#include <sys/stat.h>

#include <fstream>

#include "api/fixture.hpp"

namespace loam::api::testing {
namespace {

using AuthTest = ApiTest;

TEST_F(AuthTest, the_socket_knows_root_itself_and_whom_the_configuration_names) {
  EXPECT_EQ(get("/v1/whoami").as<WhoAmIView>().role, "admin");
  EXPECT_EQ(get("/v1/whoami", uid(500)).as<WhoAmIView>().role, "admin");
  const auto member = get("/v1/whoami", uid(1001)).as<WhoAmIView>();
  EXPECT_EQ(member.role, "member");
  EXPECT_EQ(member.tenant, "acme");
  EXPECT_EQ(member.name, "uid:1001");
  EXPECT_EQ(member.via, "socket");
  const Caught stranger = get("/v1/whoami", uid(4242));
  EXPECT_EQ(stranger.status(), 401);
  EXPECT_NE(stranger.problem().detail.find("4242"), std::string::npos);
  EXPECT_NE(stranger.problem().next_step, "");
  EXPECT_EQ(get("/v1/health", uid(4242)).status(), 200);
}

TEST_F(AuthTest, tcp_needs_a_token_also_from_root) {
  const Caught none = get("/v1/tasks", tcp());
  EXPECT_EQ(none.status(), 401);
  EXPECT_TRUE(none.response->headers.get("WWW-Authenticate").starts_with("Bearer"));
  EXPECT_EQ(get("/v1/nothing", tcp()).status(), 401);
  EXPECT_EQ(ask(http::Method::del, "/v1/tasks", {}, tcp()).status(), 401);
}

TEST_F(AuthTest, a_token_works_until_it_is_revoked) {
  const auto made =
      post("/v1/tokens", R"({"name":"ci","role":"member","tenant":"acme"})").as<TokenView>();
  ASSERT_TRUE(made.token.starts_with("loam_"));
  EXPECT_GE(made.token.size(), 48U);
  EXPECT_EQ(get("/v1/whoami", tcp(made.token)).as<WhoAmIView>().name, "ci");
  for (const TokenView& token : get("/v1/tokens").as<TokenList>().tokens)
    EXPECT_EQ(token.token, "");
  const Caught revoked = ask(http::Method::del, "/v1/tokens/ci");
  EXPECT_TRUE(revoked.as<TokenView>().revoked_at.has_value());
  const Caught after = get("/v1/whoami", tcp(made.token));
  EXPECT_EQ(after.status(), 401);
  // Revoked and never known look the same.
  const Caught wrong = get("/v1/whoami", tcp("loam_wrong"));
  EXPECT_EQ(wrong.status(), 401);
  EXPECT_EQ(wrong.response->body, after.response->body);
  EXPECT_EQ(ask(http::Method::del, "/v1/tokens/nothing").status(), 404);
}

TEST_F(AuthTest, a_wrong_token_is_not_saved_by_the_socket) {
  As who = root;
  who.token = "loam_wrong";
  EXPECT_EQ(get("/v1/whoami", who).status(), 401);
  const Caught basic =
      ask(http::Method::get, "/v1/whoami", {}, root, {{"Authorization", "Basic cm9vdDo="}});
  EXPECT_EQ(basic.status(), 401);
  const Caught two = ask(http::Method::get, "/v1/whoami", {}, root,
                         {{"Authorization", "Bearer a"}, {"Authorization", "Bearer b"}});
  EXPECT_EQ(two.status(), 401);
}

TEST_F(AuthTest, tokens_need_a_role_and_a_tenant_that_fit) {
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"king"})").status(), 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"member"})").status(), 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"admin","tenant":"acme"})").status(), 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"member","tenant":"nobody"})").status(), 404);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"A B","role":"admin"})").status(), 400);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"admin"})").status(), 201);
  EXPECT_EQ(post("/v1/tokens", R"({"name":"a","role":"admin"})").status(), 409);
}

TEST_F(AuthTest, another_tenants_task_is_answered_as_if_it_did_not_exist) {
  const TaskId theirs = submit("beta");
  const std::string nobody = "t999";
  const auto same = [&](const Caught& real, const Caught& none) {
    EXPECT_EQ(real.status(), 404);
    EXPECT_EQ(real.status(), none.status());
    std::string body = real.response->body;
    const std::size_t at = body.find(theirs.text());
    ASSERT_NE(at, std::string::npos);
    body.replace(at, theirs.text().size(), nobody);
    EXPECT_EQ(body, none.response->body);
  };
  const As member = uid(1001);
  for (const char* rest : {"", "/logs", "/logs?follow=true", "/events", "/events?logs=true"})
    same(get("/v1/tasks/" + theirs.text() + rest, member),
         get("/v1/tasks/" + nobody + rest, member));
  for (const char* verb : {"/stop", "/pause", "/resume"})
    same(post("/v1/tasks/" + theirs.text() + verb, {}, member, "k" + std::string(verb)),
         post("/v1/tasks/" + nobody + verb, {}, member, "n" + std::string(verb)));
  EXPECT_EQ(get("/v1/tasks", member).as<TaskPage>().tasks.size(), 0U);
  EXPECT_EQ(get("/v1/tasks?after=" + nobody, member).as<TaskPage>().tasks.size(), 0U);
  daemon.read([&](const engine::State& state, Instant) {
    EXPECT_EQ(state.tasks.at(theirs).state, TaskState::starting);
  });
}

TEST_F(AuthTest, another_tenant_is_answered_as_if_it_did_not_exist) {
  const As member = uid(1001);
  EXPECT_EQ(get("/v1/tenants", member).as<TenantList>().tenants.size(), 1U);
  const std::vector<std::string> targets = {
      "/v1/tenants/",
      "/v1/bill?tenant=", "/v1/ledger?tenant=", "/v1/invoices?tenant=", "/v1/tasks?tenant="};
  for (const std::string& target : targets) {
    const Caught theirs = get(target + "beta", member);
    EXPECT_EQ(theirs.status(), 404) << target;
    std::string body = theirs.response->body;
    body.replace(body.find("beta"), 4, "nope");
    EXPECT_EQ(body, get(target + "nope", member).response->body);
  }
  EXPECT_EQ(post("/v1/tasks", task_body("beta"), member).status(), 404);
  EXPECT_EQ(post("/v1/quote", task_body("beta"), member).status(), 404);
  // Its own tenant need not be named.
  EXPECT_EQ(post("/v1/tasks", R"({"command":["x"],"share":"0.1"})", member).as<TaskView>().tenant,
            "acme");
}

TEST_F(AuthTest, another_tenants_invoice_is_answered_as_if_it_did_not_exist) {
  const TaskId id = submit("beta");
  daemon.start(id);
  daemon.clock.advance(Duration::minutes(5));
  daemon.end(id);
  const auto invoice = post("/v1/invoices", R"({"tenant":"beta"})").as<InvoiceView>();
  EXPECT_EQ(get("/v1/invoices/" + invoice.id, uid(1002)).status(), 200);
  const Caught theirs = get("/v1/invoices/" + invoice.id, uid(1001));
  EXPECT_EQ(theirs.status(), 404);
  EXPECT_EQ(get("/v1/invoices", uid(1001)).as<InvoiceList>().invoices.size(), 0U);
}

TEST_F(AuthTest, each_role_may_what_its_table_says) {
  struct Row {
    http::Method method;
    const char* target;
    std::string body;
    bool member, operator_, finance;
  };
  const auto get_method = http::Method::get;
  const auto post_method = http::Method::post;
  const std::vector<Row> rows = {
      {get_method, "/v1/tasks", "", true, true, true},
      {post_method, "/v1/quote", task_body(), true, true, true},
      {post_method, "/v1/tasks", task_body(), true, false, false},
      {post_method, "/v1/tasks/t1/stop", "", true, true, false},
      {post_method, "/v1/tasks/t1/pause", "", true, false, false},
      {get_method, "/v1/devices", "", true, true, true},
      {post_method, "/v1/devices/d1/drain", "", false, true, false},
      {post_method, "/v1/devices/d1/calibrate", "", false, true, false},
      {post_method, "/v1/devices/discover", "", false, true, false},
      {get_method, "/v1/tenants", "", true, true, true},
      {post_method, "/v1/tenants", "{}", false, false, false},
      {http::Method::patch, "/v1/tenants/acme", "{}", false, false, false},
      {post_method, "/v1/tenants/acme/topup", R"({"amount":"1"})", false, false, true},
      {get_method, "/v1/rates", "", true, true, true},
      {post_method, "/v1/rates", "{}", false, false, false},
      {get_method, "/v1/bill?tenant=acme", "", true, false, true},
      {get_method, "/v1/invoices", "", true, false, true},
      {post_method, "/v1/invoices", R"({"tenant":"acme"})", false, false, true},
      {get_method, "/v1/ledger?tenant=acme", "", true, false, true},
      {get_method, "/v1/tokens", "", false, false, false},
      {post_method, "/v1/tokens", "{}", false, false, false},
      {http::Method::del, "/v1/tokens/x", "", false, false, false},
      {post_method, "/v1/backup", "{}", false, false, false},
      {post_method, "/v1/reload", "", false, false, false},
      {get_method, "/metrics", "", false, true, true},
      {get_method, "/v1/top", "", true, true, true},
  };
  submit();
  for (const Row& row : rows) {
    const auto allowed = [&](std::uint32_t user) {
      return ask(row.method, row.target, row.body, uid(user)).status() != 403;
    };
    EXPECT_EQ(allowed(1001), row.member) << row.target;
    EXPECT_EQ(allowed(1003), row.operator_) << row.target;
    EXPECT_EQ(allowed(1004), row.finance) << row.target;
    EXPECT_TRUE(allowed(0)) << row.target;
  }
}

// ---- the token file -----------------------------------------------------------------------

TEST(TokenStoreTest, the_file_is_private_holds_no_secret_and_outlives_the_store) {
  const Folder folder;
  const std::string path = folder.path + "/tokens.json";
  std::string secret;
  {
    auto store = TokenStore::open(path);
    ASSERT_TRUE(store.ok());
    secret = *(*store)->create("ci", Role::operator_, "", Instant{1000});
    ASSERT_TRUE((*store)->create("old", Role::admin, "", Instant{1000}).ok());
    ASSERT_TRUE((*store)->revoke("old", Instant{2000}).ok());
  }
  struct stat facts {};
  ASSERT_EQ(::stat(path.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text.find(secret.substr(5)), std::string::npos);
  auto again = TokenStore::open(path);
  ASSERT_TRUE(again.ok());
  const auto found = (*again)->check(secret);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->role, Role::operator_);
  const auto tokens = (*again)->list();
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[1].revoked_at, Instant{2000});
}

TEST(TokenStoreTest, a_file_that_others_may_read_or_that_is_damaged_is_refused) {
  const Folder folder;
  const std::string path = folder.path + "/tokens.json";
  const auto open_with = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    const auto store = TokenStore::open(path);
    return store.ok() ? ErrorKind::internal : store.error().kind;
  };
  EXPECT_EQ(open_with(R"({"version":1,"tokens":[]})", 0644), ErrorKind::permission_denied);
  EXPECT_EQ(open_with("{", 0600), ErrorKind::corrupt);
  EXPECT_EQ(open_with(R"({"version":2,"tokens":[]})", 0600), ErrorKind::unsupported);
  EXPECT_EQ(open_with(R"({"version":1,"tokens":[{"name":"a","role":"admin","tenant":"",)"
                      R"("created_ms":1,"revoked_ms":null,"hash":"00"}]})",
                      0600),
            ErrorKind::corrupt);
}

TEST(TokenStoreTest, a_half_written_file_of_a_crash_changes_nothing) {
  const Folder folder;
  const std::string path = folder.path + "/tokens.json";
  auto store = TokenStore::open(path);
  ASSERT_TRUE(store.ok());
  std::ofstream(path + ".new") << "{\"version\":1,\"tok";
  const auto secret = (*store)->create("ci", Role::admin, "", Instant{1});
  ASSERT_TRUE(secret.ok());
  EXPECT_TRUE((*TokenStore::open(path))->check(*secret).ok());
}

TEST(TokenStoreTest, a_token_that_cannot_be_stored_is_not_given_out) {
  const Folder folder;
  auto store = TokenStore::open(folder.path + "/gone/tokens.json");
  ASSERT_TRUE(store.ok());
  EXPECT_FALSE((*store)->create("ci", Role::admin, "", Instant{1}).ok());
  EXPECT_EQ((*store)->list().size(), 0U);
}

}  // namespace
}  // namespace loam::api::testing
