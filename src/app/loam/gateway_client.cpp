#include "app/loam/gateway_client.hpp"

#include <unistd.h>

#include <boost/json/parse.hpp>

#include "app/loam/chat.hpp"

namespace loam::cli {

namespace json = boost::json;

namespace {

Error explained(Error error, const std::string& address) {
  if (error.kind == ErrorKind::unavailable) {
    error.message = "no loam-gateway answers at " + address + ": " + error.message;
    error.next_step =
        "start it with: loam-gateway --config FILE (or name where it listens: "
        "--gateway or LOAM_GATEWAY)";
  }
  return error;
}

}  // namespace

std::string gateway_address(Session& session, const std::string& given) {
  if (!given.empty()) return given;
  if (const std::string named = session.variable("LOAM_GATEWAY"); !named.empty()) return named;
  if (::geteuid() == 0) return "/run/loam/inference/gateway.sock";
  const std::string run = session.variable("XDG_RUNTIME_DIR");
  if (!run.empty()) return run + "/loam/inference/gateway.sock";
  const std::string state = session.variable("XDG_STATE_HOME");
  return (state.empty() ? session.variable("HOME") + "/.local/state" : state) +
         "/loam/inference/gateway.sock";
}

http::Request Gateway::request(http::Method method, std::string path, std::string body) const {
  http::Request request;
  request.method = method;
  request.path = std::move(path);
  request.body = std::move(body);
  if (!key.empty()) request.headers.add("Authorization", "Bearer " + key);
  if (!request.body.empty()) request.headers.add("Content-Type", "application/json");
  return request;
}

Result<json::value> Gateway::call(const http::Request& request) {
  LOAM_TRY(response, client.send(request));
  if (response.status >= 300) return chat_error(response.status, response.body);
  boost::system::error_code fault;
  json::value value = json::parse(response.body, fault);
  if (fault) return Error{ErrorKind::corrupt, "the gateway's answer is no JSON", {}};
  return value;
}

Result<Gateway> connect_gateway(const std::string& address, std::string key,
                                http::ClientOptions options) {
  LOAM_TRY(parsed, http::parse_address(address));
  Gateway gateway{address, std::move(key), http::Client(std::move(parsed), options)};
  if (const auto connected = gateway.client.connect(); !connected.ok())
    return explained(connected.error(), address);
  return gateway;
}

}  // namespace loam::cli
