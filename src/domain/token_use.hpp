// What a tenant's requests to one model used, over some time: counted by a gateway, rated and
// journaled by the engine. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "base/time.hpp"
#include "domain/ids.hpp"

namespace loam {

struct TokenUse {
  TenantId caller;
  TenantId owner;  // who pays for the model's instances; none: nobody's
  std::string project;
  std::string environment;
  std::string model;  // as it is offered
  Instant from;       // of the first request's arrival
  Instant to;         // of the last one's end
  std::int64_t requests = 0;
  std::int64_t prompt_tokens = 0;           // whole prompts, cached or not
  std::int64_t cached_tokens = 0;           // of these, taken from a stored prefix
  std::int64_t generated_tokens = 0;        // also where the client had left
  std::map<std::string, std::string> tags;  // of the caller's cost
  // Of the owner's income: as the cost of its instances.
  std::string owner_project = "default";
  std::string owner_environment = "default";
  std::map<std::string, std::string> owner_tags;

  friend bool operator==(const TokenUse&, const TokenUse&) = default;
};
BOOST_DESCRIBE_STRUCT(TokenUse, (),
                      (caller, owner, project, environment, model, from, to, requests,
                       prompt_tokens, cached_tokens, generated_tokens, tags, owner_project,
                       owner_environment, owner_tags))

}  // namespace loam
