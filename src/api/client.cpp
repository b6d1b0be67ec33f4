#include "api/client_core.hpp"

#include <poll.h>
#include <sodium.h>

#include <array>
#include <chrono>
#include <cstdlib>

#include "api/log_piece.hpp"

namespace loam::api {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// A device's name is a path of two segments, the other ways to point at it are one.
Result<std::string> device_path(const std::string& device) {
  const std::size_t slash = device.find('/');
  LOAM_TRY(first, segment("device", device.substr(0, slash)));
  if (slash == std::string::npos) return "/v1/devices/" + first;
  LOAM_TRY(second, segment("device", device.substr(slash + 1)));
  return "/v1/devices/" + first + "/" + second;
}

Result<std::string> task_path(const std::string& id, const std::string& rest = {}) {
  LOAM_TRY(name, segment("task id", id));
  return "/v1/tasks/" + name + rest;
}

Result<LogChunk> chunk_of(const LogView& view) {
  LOAM_TRY(bytes, bytes_of(view));
  return LogChunk{view.stream,      view.offset,    view.next_offset,
                  std::move(bytes), view.truncated, view.ended};
}

Error cancelled() {
  return {ErrorKind::unavailable, "interrupted", {}};
}

// Waits; false when cancelled meanwhile.
bool rest(Duration length, const http::Canceller* canceller) {
  pollfd watched{canceller != nullptr ? canceller->fd() : -1, POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(length.ms));
  return canceller == nullptr || !canceller->cancelled();
}

}  // namespace

std::string fresh_key() {
  std::array<unsigned char, 16> random{};
  randombytes_buf(random.data(), random.size());
  std::array<char, 33> text{};
  sodium_bin2hex(text.data(), text.size(), random.data(), random.size());
  return text.data();
}

Result<std::string> segment(const char* what, const std::string& text) {
  if (text.empty() || text == "." || text == ".." || text.find('/') != std::string::npos)
    return invalid("'" + text + "' is not a " + what);
  return text;
}

void add_query(http::Request& request, const char* name, const std::string& value) {
  if (!value.empty()) request.query.push_back({name, value});
}

Error not_understood(const Error& error) {
  return {ErrorKind::corrupt, "the daemon's answer was not understood: " + error.message,
          "use a loam of the daemon's version"};
}

Client::Client(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

void Client::use_key(std::string key) {
  core_->key = std::move(key);
  core_->keyed_writes = 0;
}

Result<Client> Client::make(const ConnectOptions& options) {
  if (sodium_init() < 0)
    return Error{ErrorKind::internal, "libsodium has no random source", "check /dev/urandom"};
  std::string where = options.address.empty() ? environment("LOAM_SOCKET") : options.address;
  if (where.empty()) where = default_socket_path;
  LOAM_TRY(address, http::parse_address(where));
  std::string token = options.token.empty() ? environment("LOAM_TOKEN") : options.token;
  if (!http::valid_header("Authorization", "Bearer " + token))
    return invalid("the token holds characters that no token has", "check LOAM_TOKEN or --token");
  return Client(std::make_unique<Core>(address, options, std::move(token)));
}

Result<void> Client::connect() {
  return core_->client.connect();
}

Result<HealthView> Client::health() {
  // A degraded daemon answers 503 with the same view.
  LOAM_TRY(response, core_->client.send(core_->request(Method::get, "/v1/health")));
  if (auto view = from_json<HealthView>(response.body)) return view;
  return error_of(response);
}

Result<WhoAmIView> Client::whoami() {
  return core_->get<WhoAmIView>("/v1/whoami");
}

// ---- tasks ------------------------------------------------------------------------------

Result<QuoteView> Client::quote(const TaskRequest& request) {
  return core_->call<QuoteView>(core_->request(Method::post, "/v1/quote", to_json(request)));
}

Result<TaskView> Client::submit(const TaskRequest& request, const std::string& key) {
  return core_->write<TaskView>(Method::post, "/v1/tasks", to_json(request), key);
}

Result<TaskPage> Client::tasks(const TaskQuery& query) {
  http::Request request = core_->request(Method::get, "/v1/tasks");
  add_query(request, "tenant", query.tenant);
  add_query(request, "state", query.state);
  add_query(request, "name", query.name);
  add_query(request, "after", query.after);
  if (query.limit) add_query(request, "limit", std::to_string(*query.limit));
  return core_->call<TaskPage>(request);
}

Result<TaskView> Client::task(const std::string& id) {
  LOAM_TRY(path, task_path(id));
  return core_->get<TaskView>(path);
}

Result<LeasePage> Client::leases(const LeaseQuery& query) {
  http::Request request = core_->request(Method::get, "/v1/leases");
  add_query(request, "tenant", query.tenant);
  add_query(request, "task", query.task);
  add_query(request, "from", query.from);
  add_query(request, "to", query.to);
  add_query(request, "after", query.after);
  if (query.limit) add_query(request, "limit", std::to_string(*query.limit));
  return core_->call<LeasePage>(request);
}

Result<CapacityList> Client::capacity(const std::string& from, const std::string& to) {
  http::Request request = core_->request(Method::get, "/v1/capacity");
  add_query(request, "from", from);
  add_query(request, "to", to);
  return core_->call<CapacityList>(request);
}

Result<TaskView> Client::act(const std::string& id, const char* verb, const std::string& model) {
  LOAM_TRY(path, task_path(id, verb));
  http::Request request = core_->keyed(Method::post, path);
  add_query(request, "purchase_model", model);
  return core_->call<TaskView>(request);
}

Result<LogChunk> Client::logs(const std::string& id, const std::string& stream,
                              std::int64_t offset) {
  LOAM_TRY(path, task_path(id, "/logs"));
  http::Request request = core_->request(Method::get, path);
  add_query(request, "stream", stream);
  add_query(request, "offset", std::to_string(offset));
  LOAM_TRY(view, core_->call<LogView>(request));
  return chunk_of(view);
}

Result<void> Client::follow_logs(const std::string& id, const std::string& stream,
                                 std::int64_t offset,
                                 const std::function<bool(const LogChunk&)>& on_chunk,
                                 const http::Canceller* canceller) {
  LOAM_TRY(path, task_path(id, "/logs"));
  http::Request request = core_->request(Method::get, path);
  add_query(request, "stream", stream);
  add_query(request, "offset", std::to_string(offset));
  add_query(request, "follow", "true");
  LOAM_CHECK(core_->stream(
      request,
      [&](const http::SseEvent& event) -> Result<bool> {
        LOAM_TRY(view, from_json<LogView>(event.data));
        LOAM_TRY(chunk, chunk_of(view));
        return on_chunk(chunk);
      },
      canceller));
  return {};
}

Result<TaskView> Client::watch(const std::string& id, const WatchOptions& options,
                               const WatchEvents& events, const http::Canceller* canceller) {
  using Clock = std::chrono::steady_clock;
  constexpr Duration pause{250};  // between two tries to find the daemon again
  LOAM_TRY(path, task_path(id, "/events"));
  std::int64_t out = options.stdout_offset;
  std::int64_t err = options.stderr_offset;
  std::optional<TaskView> last;
  Clock::time_point heard = Clock::now();
  while (true) {
    http::Request request = core_->request(Method::get, path);
    if (options.logs) {
      add_query(request, "logs", "true");
      add_query(request, "stdout_offset", std::to_string(out));
      add_query(request, "stderr_offset", std::to_string(err));
    }
    const auto end = core_->stream(
        request,
        [&](const http::SseEvent& event) -> Result<bool> {
          heard = Clock::now();
          if (event.type == "task") {
            LOAM_TRY(view, from_json<TaskView>(event.data));
            last = std::move(view);
            if (events.on_task) events.on_task(*last);
          } else if (event.type == "log") {
            LOAM_TRY(view, from_json<LogView>(event.data));
            LOAM_TRY(chunk, chunk_of(view));
            (chunk.stream == "stdout" ? out : err) = chunk.next_offset;
            if (events.on_log) events.on_log(chunk);
          }
          return true;
        },
        canceller);
    if (last && last->state == "finished") return *last;
    if (canceller != nullptr && canceller->cancelled()) {
      if (last) return *last;
      return cancelled();
    }
    Error lost{ErrorKind::unavailable, "the daemon ended the connection", {}};
    if (!end) lost = end.error();
    const auto silent =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - heard).count();
    if (lost.kind != ErrorKind::unavailable || silent > options.reconnect_for.ms) return lost;
    if (events.on_lost) events.on_lost(lost);
    if (!rest(pause, canceller)) continue;
  }
}

// ---- devices ------------------------------------------------------------------------------

Result<DeviceList> Client::devices() {
  return core_->get<DeviceList>("/v1/devices");
}

Result<DeviceList> Client::discover() {
  return core_->patient_call<DeviceList>(core_->keyed(Method::post, "/v1/devices/discover"));
}

Result<DeviceView> Client::calibrate(const std::string& device,
                                     const std::function<void(const ProgressView&)>& progress,
                                     const http::Canceller* canceller) {
  LOAM_TRY(path, device_path(device));
  std::optional<DeviceView> measured;
  LOAM_TRY(end, core_->stream(
                    core_->keyed(Method::post, path + "/calibrate"),
                    [&](const http::SseEvent& event) -> Result<bool> {
                      if (event.type == "progress") {
                        LOAM_TRY(view, from_json<ProgressView>(event.data));
                        if (progress) progress(view);
                      } else if (event.type == "done") {
                        LOAM_TRY(view, from_json<DeviceView>(event.data));
                        measured = std::move(view);
                      }
                      return true;
                    },
                    canceller));
  if (measured) return *measured;
  if (end.how == http::StreamEnd::How::cancelled) return cancelled();
  return Error{ErrorKind::unavailable, "the daemon ended the connection before the measurement",
               "see what it found with: loam device list"};
}

Result<DeviceView> Client::drain(const std::string& device) {
  LOAM_TRY(path, device_path(device));
  return core_->write<DeviceView>(Method::post, path + "/drain", {});
}

Result<DeviceView> Client::undrain(const std::string& device) {
  LOAM_TRY(path, device_path(device));
  return core_->write<DeviceView>(Method::post, path + "/undrain", {});
}

// ---- the service ----------------------------------------------------------------------------

Result<TokenList> Client::tokens() {
  return core_->get<TokenList>("/v1/tokens");
}

Result<TokenView> Client::create_token(const TokenRequest& request) {
  return core_->write<TokenView>(Method::post, "/v1/tokens", to_json(request));
}

Result<TokenView> Client::revoke_token(const std::string& name) {
  LOAM_TRY(part, segment("token", name));
  return core_->write<TokenView>(Method::del, "/v1/tokens/" + part, {});
}

Result<BackupView> Client::backup(const std::string& path) {
  return core_->patient_call<BackupView>(
      core_->keyed(Method::post, "/v1/backup", to_json(BackupRequest{path})));
}

Result<ReloadView> Client::reload() {
  return core_->write<ReloadView>(Method::post, "/v1/reload", {});
}

Result<TopView> Client::top() {
  return core_->get<TopView>("/v1/top");
}

Result<void> Client::follow_top(const std::function<bool(const TopView&)>& on_view,
                                const http::Canceller* canceller) {
  http::Request request = core_->request(Method::get, "/v1/top");
  add_query(request, "follow", "true");
  LOAM_CHECK(core_->stream(
      request,
      [&](const http::SseEvent& event) -> Result<bool> {
        LOAM_TRY(view, from_json<TopView>(event.data));
        return on_view(view);
      },
      canceller));
  return {};
}

Result<std::string> Client::openapi() {
  return core_->text(core_->request(Method::get, "/v1/openapi.json"));
}

Result<std::string> Client::metrics() {
  return core_->text(core_->request(Method::get, "/metrics"));
}

}  // namespace loam::api
