// loamd's settings: one TOML file, every key with a default, an unknown key an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "domain/ledger.hpp"
#include "domain/scheduling.hpp"

namespace loam::daemon {

// What a user of this machine may do over the Unix socket, besides root and loamd's own user.
struct UserAccess {
  std::int64_t uid = 0;
  std::string role;    // admin, operator, finance, member
  std::string tenant;  // of a member
};

struct Config {
  std::string data_dir;  // journal, attempts, keeper's pages; default: see default_config()
  std::string socket;    // Unix socket of the API
  std::int64_t socket_mode = 0666;  // who is behind a connection is checked by its uid
  std::string listen;               // TCP "127.0.0.1:8470"; empty: none
  std::string node_name;            // default: the host's name
  std::string region = "local";
  std::vector<std::string> labels;  // of the node; tasks may ask for them
  // How many times a CPU may be lent. Tasks' CPU limits are ceilings and few use all of theirs.
  std::int64_t cpu_oversubscription = 4;
  std::string catalog;              // path of the device catalogue
  std::string programs;             // folder of loam-launch and loam-keeper
  std::string guard;                // path of libloam-guard.so; empty: tasks run unguarded
  std::string sandbox = "auto";     // auto, bubblewrap, none
  std::vector<std::string> mounts;  // host folders that tasks may mount
  // Host folders that tasks may mount which an operator submits: the gateway's, model files.
  std::vector<std::string> operator_mounts;
  std::vector<std::string>
      shared;  // host folders that every task sees, read-only, at their own path
  std::vector<std::string> notify;  // programs that budgets may run to tell somebody
  std::string device_locks;  // folder where the loamd of this machine say which devices they sell
  Duration check_devices = Duration::minutes(1);  // how often they are looked at; 0: never
  std::string log_level = "info";
  Duration turn_quantum{10};                    // of the keeper
  Duration hung_after = Duration::seconds(60);  // device work that runs on after its turn hangs
  std::string hung_action = "report";           // ignore, report, end: of the task whose it is
  bool concurrent_kernels = false;  // leases of a device that is no CPU may overlap, not take turns
  bool lend_memory = false;   // idle device memory to spot tasks, called back when it is wanted
  bool spill_memory = false;  // CUDA: memory of a lease without a turn may go to the host
  std::string when_idle = "report";      // report, park, end: a lease that leaves its device unused
  std::int64_t snapshot_every = 50'000;  // journal records between snapshots
  std::vector<UserAccess> users;
  SchedulingSettings scheduling;
  Seller seller;          // on invoices
  std::string notify_ca;  // PEM file whose certificates webhooks over https are checked by, too
};

// For root: /var/lib/loam and /run/loam. For others: below $XDG_STATE_HOME and $XDG_RUNTIME_DIR.
// Programs, guard and catalogue are looked for beside the running program.
Config default_config();

// Reads `text` over the defaults; `origin` names the file in errors, with line and column.
Result<Config> parse_config(std::string_view text, const std::string& origin);
Result<Config> load_config(const std::string& path);
// Every setting, as parse_config() reads it.
std::string to_toml(const Config& config);

}  // namespace loam::daemon
