// token create, list, revoke; whoami; health.
#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

using Kind = Option::Kind;

Result<int> run_create(Session& session, const Arguments& arguments) {
  api::TokenRequest request{arguments.operand(0), arguments.text("role", "member"),
                            arguments.text("tenant")};
  if (request.role == "member" && request.tenant.empty()) request.tenant = session.tenant();
  if (request.role == "member" && request.tenant.empty())
    return invalid("a member's token needs a tenant", "add --tenant NAME, or another --role");
  LOAM_TRY(client, session.client());
  LOAM_TRY(token, client->create_token(request));
  if (session.json()) return session.print_json(token);
  session.out() << token.token << "\n";
  session.say("the token of " + token.name + " (" + token.role +
              (token.tenant.empty() ? "" : " of " + token.tenant) +
              "), shown this once; use it as LOAM_TOKEN");
  return 0;
}

Result<int> run_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->tokens());
  if (session.json()) return session.print_json(list);
  if (list.tokens.empty()) {
    session.say("no tokens; make one with: loam token create NAME --tenant TENANT");
    return 0;
  }
  Table table({{"NAME"}, {"ROLE"}, {"TENANT"}, {"MADE (UTC)"}, {"REVOKED (UTC)"}});
  for (const api::TokenView& token : list.tokens) {
    table.add({token.name, token.role, token.tenant, instant_text(token.created_at),
               Cell(instant_text(token.revoked_at), Style::bad)});
  }
  session.out() << session.text_of(table);
  return 0;
}

Result<int> run_revoke(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(token, client->revoke_token(arguments.operand(0)));
  if (session.json()) return session.print_json(token);
  session.say(token.name + " is revoked; requests with it are refused from now on");
  return 0;
}

Result<int> run_whoami(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(me, client->whoami());
  if (session.json()) return session.print_json(me);
  session.out() << facts_text(
      {{"name", me.name}, {"via", me.via}, {"role", me.role}, {"tenant", me.tenant}},
      session.console().colour);
  return 0;
}

Result<int> run_health(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(health, client->health());
  const int status = health.journal_ok ? exit_ok : exit_unreachable;
  if (session.json()) {
    session.print_json(health);
    return status;
  }
  session.out() << facts_text(
      {{"daemon", "loamd " + health.version + " at " + session.address()},
       {"status", Cell(health.status, health.journal_ok ? Style::good : Style::bad)},
       {"since", instant_text(health.started_at) + " UTC"},
       {"journal", health.journal_ok ? "written" : "cannot be written: new work is refused"}},
      session.console().colour);
  return status;
}

}  // namespace

std::vector<Command> access_commands() {
  return {
      {"token create",
       "Make a token for programs and for TCP; printed once",
       "",
       "loam token create ci --tenant acme\nloam token create desk --role finance",
       {{"NAME", "a name that no token has had"}},
       {{"What it may",
         {{"--role", "ROLE", "default: member", Kind::value, "admin operator finance member"},
          {"--tenant", "NAME", "of a member", Kind::value, "@tenant"}}}},
       run_create},
      {"token list",
       "The tokens and whether they are in force",
       "",
       "loam token list",
       {},
       {},
       run_list},
      {"token revoke",
       "End a token's validity at once",
       "",
       "loam token revoke ci",
       {{"NAME", "a token, as the list shows it"}},
       {},
       run_revoke},
      {"whoami",
       "Who the daemon takes you for, and what you may",
       "",
       "loam whoami",
       {},
       {},
       run_whoami},
      {"health", "Whether the daemon is well", "", "loam health", {}, {}, run_health},
  };
}

}  // namespace loam::cli
