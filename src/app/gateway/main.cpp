// loam-gateway: serves models over the OpenAI API until SIGTERM or SIGINT. Exit status: 0 ended by
// a signal, 1 cannot start, 2 wrong arguments. docs/inference.md describes it.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "app/gateway/config.hpp"
#include "app/gateway/endpoint_json.hpp"
#include "app/gateway/endpoints.hpp"
#include "app/gateway/keys.hpp"
#include "app/gateway/local_host.hpp"
#include "app/gateway/outbox.hpp"
#include "app/gateway/pool_host.hpp"
#include "app/gateway/recovery.hpp"
#include "app/gateway/standing_json.hpp"
#include "app/gateway/usage_file.hpp"
#include "gateway/gateway.hpp"
#include "http/address.hpp"
#include "http/server.hpp"

namespace loam::serving {
namespace {

constexpr const char* usage =
    "usage: loam-gateway --config FILE\n"
    "Serves models over the OpenAI API. The file is TOML; docs/inference.md lists its keys.\n"
    "  --check   read the configuration, say what is wrong with it, and end\n";

void log(const std::string& line) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::fprintf(stderr, "loam-gateway: %s\n", line.c_str());
}

int fail(const Error& error, int status) {
  log(error.message);
  if (!error.next_step.empty()) std::fprintf(stderr, "next: %s\n", error.next_step.c_str());
  return status;
}

std::string_view bearer_of(const http::Request& request) {
  std::string_view value = request.headers.get("authorization");
  constexpr std::string_view scheme = "Bearer ";
  if (value.starts_with(scheme)) value.remove_prefix(scheme.size());
  return value;
}

// Root and this program's own user on the Unix socket, or an operator's token.
bool may_operate(const http::Request& request, Keys& keys) {
  if (const auto* peer = std::get_if<http::UnixPeer>(&request.peer))
    if (peer->uid == 0 || peer->uid == ::geteuid()) return true;
  return keys.may_operate(bearer_of(request));
}

std::unique_ptr<InstanceHost> host_of(const Config& config) {
  if (config.pool.empty()) return std::make_unique<LocalHost>(config);
  return std::make_unique<PoolHost>(config);
}

http::Response no_content() {
  return http::make_response(200, "application/json", "{}");
}

// /endpoints and /endpoints/MODEL.
http::Response answer_endpoints(const http::Request& request, Endpoints& endpoints) {
  constexpr std::string_view list = "/endpoints";
  const auto told = [](const Result<void>& done) {
    return done.ok() ? no_content() : gateway::to_response(gateway::api_error(done.error()));
  };
  if (request.path.size() > list.size()) {
    if (request.method == http::Method::del)
      return told(endpoints.remove(request.path.substr(list.size() + 1)));
  } else if (request.method == http::Method::get) {
    return http::make_response(200, "application/json", standings_json(endpoints.standings()));
  } else if (request.method == http::Method::post) {
    auto endpoint = parse_endpoint(request.body);
    if (!endpoint.ok()) return gateway::to_response(gateway::api_error(endpoint.error()));
    return told(endpoints.create(std::move(endpoint).value()));
  }
  return gateway::to_response({405,
                               "This is not possible on " + request.path + ".",
                               "invalid_request_error",
                               {},
                               "method_not_supported"});
}

// What is not the OpenAI API: health, metrics, the endpoints.
bool answer_operator(const http::Request& request, http::Responder& responder, Keys& keys,
                     gateway::Gateway& gateway, Endpoints& endpoints) {
  const bool is_endpoints = request.path == "/endpoints" || request.path.starts_with("/endpoints/");
  if (request.path == "/health") {
    responder.respond(http::make_response(200, "application/json", "{\"status\":\"ok\"}"));
    return true;
  }
  if (!is_endpoints && request.path != "/metrics") return false;
  if (!may_operate(request, keys)) {
    responder.respond(gateway::to_response(
        gateway::api_error({ErrorKind::permission_denied, request.path + " is for operators",
                            "send an operator's token"})));
  } else if (is_endpoints) {
    responder.respond(answer_endpoints(request, endpoints));
  } else {
    auto shared = std::make_shared<http::Responder>(std::move(responder));
    gateway.ask_metrics([shared](std::string text) {
      shared->respond(http::make_response(200, "text/plain; version=0.0.4", std::move(text)));
    });
  }
  return true;
}

// Before requests come in: then whatever the engines wrote down and this program did not is of
// earlier runs.
void recover(const Config& config, UsageFile& sink) {
  std::map<std::string, std::string> owners;
  const auto add = [&](const EndpointConfig& endpoint) {
    for (const EndpointConfig& part : parts_of(endpoint)) owners.emplace(part.model, part.owner);
  };
  for (const EndpointConfig& endpoint : config.endpoints) add(endpoint);
  if (const auto made = load_endpoints(config.endpoints_file); made.ok()) {
    for (const EndpointConfig& endpoint : *made) add(endpoint);
  }
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  const auto recovered = recover_usage(config, owners, Instant{now_ms}, sink);
  if (!recovered.ok()) return log("usage is not recovered: " + to_text(recovered.error()));
  if (recovered->requests > 0) {
    log("the usage of " + std::to_string(recovered->requests) +
        " requests that an earlier run did not write down is recorded");
  }
  if (recovered->skipped > 0) {
    log(std::to_string(recovered->skipped) + " lines of " + engine_usage_file(config) +
        " cannot be read");
  }
}

int serve(const Config& config) {
  std::error_code fault;
  std::filesystem::create_directories(config.run_dir, fault);
  if (fault) {
    return fail({ErrorKind::unavailable, "cannot make " + config.run_dir + ": " + fault.message(),
                 "set run_dir to a folder that this user may make"},
                1);
  }
  auto sink = UsageFile::open(config.usage_file, log);
  if (!sink.ok()) return fail(sink.error(), 1);
  recover(config, **sink);
  Keys keys(config);
  const std::unique_ptr<InstanceHost> host = host_of(config);
  Endpoints endpoints(config, *host, log);
  gateway::Settings settings;
  settings.start_wait_max = config.start_wait_max;
  auto gateway = gateway::Gateway::start(settings, {&keys, sink->get(), &endpoints});
  if (!gateway.ok()) return fail(gateway.error(), 1);
  http::ServerOptions options = gateway->server_options();
  options.unix_address = http::UnixAddress{config.socket};
  options.unix_mode = static_cast<std::uint32_t>(config.socket_mode);
  if (!config.listen.empty()) {
    auto address = http::parse_address(config.listen);
    if (!address.ok()) return fail(address.error(), 1);
    const auto* tcp = std::get_if<http::TcpAddress>(&*address);
    if (tcp == nullptr)
      return fail(invalid("listen is \"" + config.listen + "\"", "give host:port"), 1);
    options.tcp_address = *tcp;
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);
  auto server = http::Server::start(options, [&](http::Request request, http::Responder responder) {
    if (!answer_operator(request, responder, keys, *gateway, endpoints))
      gateway->handle(std::move(request), std::move(responder));
  });
  if (!server.ok()) return fail(server.error(), 1);
  if (auto started = endpoints.start(*gateway); !started.ok()) return fail(started.error(), 1);
  std::optional<Outbox> outbox;
  if (config.pool.empty()) {
    log("no pool: tokens stay in " + config.usage_file + " and are on no bill");
  } else {
    outbox.emplace(config, log);
    outbox->start();
  }
  log("serves " + std::to_string(config.endpoints.size()) + " models on " + config.socket +
      (config.listen.empty() ? "" : " and " + config.listen));
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  log("ends");
  server->stop(Duration::seconds(5));
  endpoints.stop();
  gateway->stop();
  if (outbox) outbox->stop();  // after the last record
  return 0;
}

int run(int argc, char** argv) {
  std::string path;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (word == "--check") {
      check = true;
    } else if (word == "--config" && i + 1 < argc) {
      path = argv[++i];
    } else {
      std::fprintf(stderr, "loam-gateway: '%s' is no argument\n%s", argv[i], usage);
      return 2;
    }
  }
  if (path.empty()) {
    std::fputs(usage, stderr);
    return 2;
  }
  const auto config = load_config(path);
  if (!config.ok()) return fail(config.error(), 2);
  return check ? 0 : serve(*config);
}

}  // namespace
}  // namespace loam::serving

int main(int argc, char** argv) {
  return loam::serving::run(argc, argv);
}
