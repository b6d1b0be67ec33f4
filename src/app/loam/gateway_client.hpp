// loam-gateway as the commands speak to it: where it is, whose key, JSON back. Not pure: sockets.
#pragma once

#include <boost/json/value.hpp>
#include <string>

#include "app/loam/session.hpp"
#include "http/client.hpp"

namespace loam::cli {

// `given`, else LOAM_GATEWAY, else where one serves whose settings name no other place.
std::string gateway_address(Session& session, const std::string& given);

struct Gateway {
  std::string address;
  std::string key;
  http::Client client;

  http::Request request(http::Method method, std::string path, std::string body = {}) const;
  // The answer's JSON; what the gateway says where it refuses.
  Result<boost::json::value> call(const http::Request& request);
};

// unavailable, with how to start it, where nobody answers at `address`.
Result<Gateway> connect_gateway(const std::string& address, std::string key,
                                http::ClientOptions options = {});

}  // namespace loam::cli
