#include "app/loam/session.hpp"

#include <unistd.h>

namespace loam::cli {
namespace {

std::string state_folder(const Environment& environment) {
  const std::string state = environment("XDG_STATE_HOME");
  return (state.empty() ? environment("HOME") + "/.local/state" : state) + "/loam";
}

// Says more of a daemon that is not there than that nobody answers.
Error explained(Error error, const std::string& address) {
  if (error.kind == ErrorKind::unavailable) {
    error.message = "no loamd answers at " + address + ": " + error.message;
    error.next_step = "start it with: loamd (or name where it listens: --host or LOAM_HOST)";
  }
  return error;
}

}  // namespace

std::string default_address(const Environment& environment, bool root) {
  if (root) return api::default_socket_path;
  const std::string runtime = environment("XDG_RUNTIME_DIR");
  return (runtime.empty() ? state_folder(environment) : runtime + "/loam") + "/loamd.sock";
}

std::string default_data_folder(const Environment& environment, bool root) {
  return root ? "/var/lib/loam" : state_folder(environment);
}

Session::Session(Console& console, Environment environment, const Arguments& arguments)
    : console_(console),
      environment_(std::move(environment)),
      address_(arguments.text("host", environment_("LOAM_HOST"))),
      token_(arguments.text("token", environment_("LOAM_TOKEN"))),
      key_(arguments.text("key")),
      tenant_(arguments.text("tenant", environment_("LOAM_TENANT"))),
      json_(arguments.has("json")),
      quiet_(arguments.has("quiet")) {
  if (address_.empty()) address_ = default_address(environment_, ::geteuid() == 0);
}

void Session::say(const std::string& line) {
  if (!quiet_) console_.err << line << std::endl;
}

Result<api::Client> Session::second_client() const {
  api::ConnectOptions options;
  options.address = address_;
  options.token = token_;
  auto client = api::Client::make(options);
  if (!client) return client;
  if (auto connected = client->connect(); !connected) return explained(connected.error(), address_);
  return client;
}

Result<api::Client*> Session::client() {
  if (!client_) {
    LOAM_TRY(client, second_client());
    client.use_key(key_);
    client_ = std::make_unique<api::Client>(std::move(client));
  }
  return client_.get();
}

}  // namespace loam::cli
