// Who is asking, and what they may do. Unix sockets: the kernel's word on the peer's uid. TCP:
// bearer tokens (RFC 6750), stored hashed.
#pragma once

#include <boost/describe/enum.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/event.hpp"
#include "http/message.hpp"

namespace loam::api {

BOOST_DEFINE_ENUM_CLASS(Role, admin, operator_, finance, member)

std::string_view name_of(Role role);  // "operator", ...
Result<Role> parse_role(std::string_view text);

// What a request does, as far as permission is concerned.
enum class Action {
  see_self,        // health, whoami, the API's own description
  see_tasks,       // tasks, their logs and events, quotes
  change_tasks,    // submit, pause, resume
  stop_tasks,      //
  see_devices,     // devices, top
  change_devices,  // discover, calibrate, drain
  see_tenants,     //
  change_tenants,  // create, change
  top_up,          //
  see_rates,       //
  change_rates,    //
  see_money,       // bills, invoices, ledger
  issue_invoices,  //
  see_metrics,
  record_tokens,  // what a gateway counted
  administer,     // tokens, backup, reload
};

// The whole table of permissions. A member's is bounded by its tenant besides.
bool may(Role role, Action action);

struct Caller {
  Role role = Role::member;
  std::string tenant;  // a member's, by name; empty for the other roles
  Actor actor;         // issuer "socket" and subject "uid:1000", or "token" and its name

  // Whose idempotency keys these are: callers never meet in one scope.
  std::string scope() const { return actor.issuer + "/" + actor.subject; }
};

// What the configuration says of a local user.
struct UidGrant {
  Role role = Role::member;
  std::string tenant;  // with member only
};

// A token without its secret.
struct TokenInfo {
  std::string name;
  Role role = Role::member;
  std::string tenant;
  Instant created_at;
  Instant revoked_at = Instant::never();

  bool revoked() const { return revoked_at != Instant::never(); }
};

// The tokens in one file (mode 0600, replaced as a whole by rename). Thread-safe.
class TokenStore {
 public:
  // Reads the file, or begins without one. Errors: corrupt (not what was written),
  // permission_denied where others may read the file.
  static Result<std::unique_ptr<TokenStore>> open(std::string path);
  ~TokenStore();
  TokenStore(const TokenStore&) = delete;
  TokenStore& operator=(const TokenStore&) = delete;

  // The secret, "loam_" and 256 random bits in base64url: shown here once, kept as a hash only.
  // Durable on return. conflict where a token of that name was ever made: names stay unique so
  // that the journal's actors do too.
  Result<std::string> create(const std::string& name, Role role, const std::string& tenant,
                             Instant now);
  Result<TokenInfo> revoke(const std::string& name, Instant now);
  std::vector<TokenInfo> list() const;  // by name, revoked ones included

  // unauthenticated where there is none like it or it is revoked; which of the two is not told.
  Result<TokenInfo> check(std::string_view secret) const;

 private:
  struct Content;
  TokenStore(std::string path, std::unique_ptr<Content> content);
  Result<void> save(const Content& content);

  const std::string path_;
  mutable std::mutex mutex_;
  std::unique_ptr<Content> content_;
};

class Authenticator {
 public:
  // Root and `own_uid` (the daemon's) are admins of the socket. `tokens` must outlive this.
  Authenticator(std::map<std::uint32_t, UidGrant> grants, std::uint32_t own_uid,
                const TokenStore& tokens);

  // A bearer token, where one is sent, decides also over the socket: so an admin can act with
  // less. unauthenticated with the way to get in otherwise.
  Result<Caller> authenticate(const http::Request& request) const;

  // After a reload of the configuration.
  void set_grants(std::map<std::uint32_t, UidGrant> grants);

 private:
  mutable std::mutex mutex_;
  std::map<std::uint32_t, UidGrant> grants_;
  std::uint32_t own_uid_;
  const TokenStore& tokens_;
};

}  // namespace loam::api
