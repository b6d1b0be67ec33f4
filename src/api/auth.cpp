#include "api/auth.hpp"

#include <array>

namespace loam::api {
namespace {

constexpr unsigned bit(Role role) {
  return 1U << static_cast<unsigned>(role);
}
constexpr unsigned op = bit(Role::operator_);
constexpr unsigned money = bit(Role::finance);
constexpr unsigned member = bit(Role::member);

struct Permission {
  Action action;
  unsigned roles;  // besides admin, who may everything
};

// A member's rights end at its tenant: the handlers see to that.
constexpr std::array permissions{
    Permission{Action::see_self, op | money | member},
    Permission{Action::see_tasks, op | money | member},
    Permission{Action::change_tasks, member},
    Permission{Action::stop_tasks, op | member},
    Permission{Action::see_devices, op | money | member},
    Permission{Action::change_devices, op},
    Permission{Action::see_tenants, op | money | member},
    Permission{Action::change_tenants, 0},
    Permission{Action::top_up, money},
    Permission{Action::see_rates, op | money | member},
    Permission{Action::change_rates, 0},
    Permission{Action::see_money, money | member},
    Permission{Action::issue_invoices, money},
    Permission{Action::see_metrics, op | money},
    Permission{Action::record_tokens, op},
    Permission{Action::administer, 0},
};

Error nobody(std::string message, std::string next_step) {
  return {ErrorKind::unauthenticated, std::move(message), std::move(next_step)};
}

}  // namespace

std::string_view name_of(Role role) {
  switch (role) {
    case Role::admin:
      return "admin";
    case Role::operator_:
      return "operator";
    case Role::finance:
      return "finance";
    case Role::member:
      return "member";
  }
  return "member";
}

Result<Role> parse_role(std::string_view text) {
  for (const Role role : {Role::admin, Role::operator_, Role::finance, Role::member}) {
    if (text == name_of(role)) return role;
  }
  return invalid("'" + std::string(text) + "' is not a role",
                 "use admin, operator, finance or member");
}

bool may(Role role, Action action) {
  if (role == Role::admin) return true;
  for (const Permission& permission : permissions) {
    if (permission.action == action) return (permission.roles & bit(role)) != 0;
  }
  return false;
}

Authenticator::Authenticator(std::map<std::uint32_t, UidGrant> grants, std::uint32_t own_uid,
                             const TokenStore& tokens)
    : grants_(std::move(grants)), own_uid_(own_uid), tokens_(tokens) {}

void Authenticator::set_grants(std::map<std::uint32_t, UidGrant> grants) {
  const std::lock_guard lock(mutex_);
  grants_ = std::move(grants);
}

Result<Caller> Authenticator::authenticate(const http::Request& request) const {
  if (request.headers.count("Authorization") > 1)
    return nobody("more than one Authorization header was sent", "send one");
  if (const std::string* header = request.headers.find("Authorization")) {
    constexpr std::string_view scheme = "Bearer ";
    if (header->size() <= scheme.size() ||
        !http::equal_ignoring_case(std::string_view(*header).substr(0, scheme.size()), scheme)) {
      return nobody("the Authorization header is not a bearer token",
                    "send: Authorization: Bearer TOKEN");
    }
    LOAM_TRY(info, tokens_.check(std::string_view(*header).substr(scheme.size())));
    return Caller{info.role, info.tenant, {"token", info.name}};
  }
  const auto* peer = std::get_if<http::UnixPeer>(&request.peer);
  if (peer == nullptr) {
    return nobody("a token is needed over TCP",
                  "send Authorization: Bearer TOKEN (loam: --token or LOAM_TOKEN); an admin makes "
                  "one with: loam token create");
  }
  const Actor actor{"socket", "uid:" + std::to_string(peer->uid)};
  if (peer->uid == 0 || peer->uid == own_uid_) return Caller{Role::admin, {}, actor};
  const std::lock_guard lock(mutex_);
  if (const auto found = grants_.find(peer->uid); found != grants_.end())
    return Caller{found->second.role, found->second.tenant, actor};
  return nobody("the user with uid " + std::to_string(peer->uid) + " is not known to this loamd",
                "ask its operator to add the uid to loamd's configuration, or use a token");
}

}  // namespace loam::api
