// The endpoints in `loam top`: what loam-gateway says of them, as a table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/loam/session.hpp"

namespace loam::cli {

// One endpoint, as GET /endpoints of the gateway tells it; times in milliseconds.
struct EndpointLine {
  std::string model;
  std::string state;
  std::int64_t instances = 0;
  std::int64_t batch = 0;  // requests in the latest steps
  std::int64_t queue = 0;
  double tokens_per_second = 0;
  std::optional<double> first_token_p50, first_token_p99;
  std::optional<double> gap_p50, gap_p99;
  std::optional<double> cached;   // part of the prompts' tokens
  std::optional<double> kv_used;  // part of the key-value memory
  std::int64_t memory_mib = 0;    // of all its instances
  std::string why;
};

// corrupt where `body` is not that answer. Pure.
Result<std::vector<EndpointLine>> parse_endpoints(std::string_view body);
// Empty where there are none. Pure.
std::string endpoints_text(const std::vector<EndpointLine>& endpoints, bool colour,
                           std::size_t width);

struct TopEndpoints {
  std::string json;  // the gateway's "endpoints"; empty: there is no gateway
  std::vector<EndpointLine> endpoints;
  std::string trouble;  // a gateway that was named and does not tell
  std::string text(bool colour, std::size_t width) const;
};

// Asks the gateway; not longer than some seconds. Where none was named and none answers at the
// usual place, there is none.
TopEndpoints top_endpoints(Session& session);

}  // namespace loam::cli
