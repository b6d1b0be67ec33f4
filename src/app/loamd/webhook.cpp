#include "app/loamd/webhook.hpp"

#include <algorithm>

#include "http/client.hpp"
#include "http/target.hpp"

namespace loam::daemon {
namespace {

struct Webhook {
  bool secure = false;
  http::TcpAddress address;
  std::string host;  // as it is written
  http::Target target;
};

Result<Webhook> webhook_of(const std::string& channel) {
  const Error fault =
      invalid("the channel '" + channel + "' is not a webhook",
              "write it as https://HOST/PATH or http://HOST:PORT/PATH, or command:/PATH");
  if (!is_webhook(channel)) return fault;
  Webhook hook;
  hook.secure = channel.starts_with("https");
  const std::size_t begin = channel.find("//") + 2;
  const std::size_t end = std::min(channel.find_first_of("/?#", begin), channel.size());
  hook.host = channel.substr(begin, end - begin);
  if (hook.host.empty() || hook.host.find('@') != std::string::npos ||
      channel.find('#') != std::string::npos)
    return fault;
  // A colon after the last bracket, or any where there is none, begins the port.
  const bool has_port = hook.host.find(':', hook.host.rfind(']') + 1) != std::string::npos;
  LOAM_TRY(address, http::parse_address("http://" + hook.host +
                                        (has_port      ? ""
                                         : hook.secure ? ":443"
                                                       : ":80")));
  const auto* tcp = std::get_if<http::TcpAddress>(&address);
  if (tcp == nullptr) return fault;
  hook.address = *tcp;
  std::string rest = channel.substr(end);
  if (!rest.starts_with('/')) rest = "/" + rest;
  LOAM_TRY(target, http::parse_target(rest));
  // To a server "/hook/" is not "/hook".
  const std::string path = rest.substr(0, rest.find('?'));
  if (path.ends_with('/') && target.path != "/") target.path += '/';
  hook.target = std::move(target);
  return hook;
}

}  // namespace

Result<void> check_webhook(const std::string& channel) {
  LOAM_TRY(hook, webhook_of(channel));
  static_cast<void>(hook);
  return {};
}

Result<void> post_webhook(const std::string& channel, const WebhookPost& post) {
  LOAM_TRY(hook, webhook_of(channel));
  http::ClientOptions options;
  options.answer_timeout = post.patience;
  options.body_bytes_max = 64 * 1024;
  if (hook.secure) options.tls = http::TlsOptions{hook.address.host, post.ca_file};
  http::Client client(hook.address, std::move(options));
  http::Request request;
  request.method = http::Method::post;
  request.path = hook.target.path;
  request.query = hook.target.query;
  request.headers = {{"Host", hook.host}, {"Content-Type", "application/json"}};
  if (!post.id.empty()) request.headers.set("Loam-Notice", post.id);
  request.body = post.json;
  LOAM_TRY(response, client.send(request));
  if (response.status / 100 == 2) return {};
  return Error{ErrorKind::unavailable, "the answer was " + std::to_string(response.status), {}};
}

}  // namespace loam::daemon
