// loamd: the daemon. Wires the engine to the store, the node and the API, and waits for a signal.
#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "api/api.hpp"
#include "app/loamd/daemon_backend.hpp"
#include "app/loamd/device_watch.hpp"
#include "app/loamd/notifier.hpp"
#include "billing/budgets.hpp"
#include "engine/queries.hpp"
#include "http/server.hpp"
#include "node/device/probe.hpp"

namespace loam::daemon {
namespace {

constexpr int exit_cannot_start = 1;
constexpr const char* anchor_key = "clock.anchor";
const Actor settings_actor{"loam", "settings"};

struct Options {
  std::string config_path;
  bool print_config = false;
  Config config;
};

int fail(const Error& error) {
  std::cerr << "loamd: " << error.message << "\n";
  if (!error.next_step.empty()) std::cerr << "next: " << error.next_step << "\n";
  return exit_cannot_start;
}

void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("loamd");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v", spdlog::pattern_time_type::utc);
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
}

Result<AnchoredClock> set_up_clock(store::SqliteJournal& journal) {
  LOAM_TRY(text, journal.meta(anchor_key));
  ClockAnchor old;
  if (text) {
    auto parsed = parse_anchor(*text);
    if (parsed) {
      old = *parsed;
    } else {
      spdlog::warn("{}: the wall clock is followed anew", to_text(parsed.error()));
    }
  }
  const ClockAnchor anchor =
      choose_anchor(old, boot_id(), boottime_ns(), wall_clock(), journal.last_instant());
  if (!(anchor == old)) LOAM_CHECK(journal.set_meta(anchor_key, to_text(anchor)));
  return AnchoredClock(anchor);
}

// Saves a snapshot on a thread of its own when enough records have come since the last.
class Snapshots {
 public:
  Snapshots(store::SqliteJournal& journal, std::int64_t every) : journal_(journal), every_(every) {}
  ~Snapshots() {
    if (writer_.joinable()) writer_.join();
  }

  // On the loop's thread. Only the copy is made here.
  void consider(const engine::State& state) {
    if (last_ == 0) last_ = state.sequence;
    if (state.sequence < last_ + static_cast<std::uint64_t>(every_) || busy_.exchange(true)) return;
    last_ = state.sequence;
    if (writer_.joinable()) writer_.join();
    writer_ = std::thread([this, image = engine::image_of(state)] {
      if (const auto saved = journal_.save_snapshot(image); !saved)
        spdlog::warn("no snapshot: {}", to_text(saved.error()));
      busy_ = false;
    });
  }

 private:
  store::SqliteJournal& journal_;
  const std::int64_t every_;
  std::uint64_t last_ = 0;
  std::atomic<bool> busy_ = false;
  std::thread writer_;
};

Result<http::ServerOptions> server_options(const Config& config) {
  http::ServerOptions options;
  std::error_code fault;
  std::filesystem::create_directories(std::filesystem::path(config.socket).parent_path(), fault);
  LOAM_TRY(unix_address, http::parse_address("unix:" + config.socket));
  options.unix_address = std::get<http::UnixAddress>(unix_address);
  options.unix_mode = static_cast<std::uint32_t>(config.socket_mode);
  if (!config.listen.empty()) {
    const auto address = http::parse_address(config.listen);
    const auto* tcp_address = address ? std::get_if<http::TcpAddress>(&*address) : nullptr;
    if (tcp_address == nullptr) {
      return invalid("'" + config.listen + "' is no address to listen at" +
                         (address ? "" : ": " + address.error().message),
                     "give --listen (or the setting) as host:port, such as 127.0.0.1:8470");
    }
    options.tcp_address = *tcp_address;
  }
  options.refusal = api::Api::refusal;
  return options;
}

// Blocks the signals for every thread made later; wait_for_signal() takes them.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return signals;
}

void wait_for_signal(const sigset_t& signals, DaemonBackend& backend) {
  for (;;) {
    int number = 0;
    if (sigwait(&signals, &number) != 0) continue;
    if (number != SIGHUP) return;
    const auto reloaded = backend.reload();
    if (reloaded) {
      spdlog::info("reloaded: {}", *reloaded);
    } else {
      spdlog::warn("not reloaded: {}", to_text(reloaded.error()));
    }
  }
}

// To all channels there are: no budget names them.
void tell_all(Notifier& notifier, const Config& config, const Record& record,
              const std::string& title, const std::string& json) {
  std::vector<std::string> channels;
  for (const std::string& program : config.notify) channels.push_back("command:" + program);
  notifier.send(title, json, channels, static_cast<std::int64_t>(record.sequence));
}

// What people asked to be told of: budgets, waits that are too long, deadlines at risk.
void tell_channels(Notifier& notifier, const Config& config, const Record& record) {
  if (const auto* noticed = std::get_if<BudgetNoticed>(&record.event)) {
    const BudgetNotice& notice = noticed->notice;
    spdlog::info("budget {}: {}", notice.budget, notice.words);
    notifier.send("budget " + notice.budget + ": " + billing::name_of(notice.kind),
                  billing::to_json(notice), notice.channels,
                  static_cast<std::int64_t>(record.sequence));
  }
  if (const auto* late = std::get_if<TaskLate>(&record.event)) {
    spdlog::warn("{}", engine::words_of(*late));
    tell_all(notifier, config, record, "wait of " + late->task.text(),
             engine::to_json(*late, record.at));
  }
  if (const auto* deadline = std::get_if<DeadlineNoticed>(&record.event)) {
    if (deadline->kind == DeadlineNoticeKind::on_demand)
      return spdlog::info("{}", engine::words_of(*deadline));
    spdlog::warn("{}", engine::words_of(*deadline));
    tell_all(notifier, config, record, "deadline of " + deadline->task.text(),
             engine::to_json(*deadline, record.at));
  }
}

std::string notice_box(const Config& config) {
  return config.data_dir + "/notices.json";
}

std::unique_ptr<Notifier> start_notifier(const Config& config, NoticeBox box) {
  Notifier::Options options;
  options.commands = config.notify;
  options.ca_file = config.notify_ca;
  options.outbox = notice_box(config);
  return std::make_unique<Notifier>(
      std::move(options),
      [](bool failed, const std::string& line) {
        spdlog::log(failed ? spdlog::level::warn : spdlog::level::info, "{}", line);
      },
      std::move(box));
}

// What the journal tells and an earlier daemon did not get to send. The first one that keeps
// notices begins with those to come.
Result<void> tell_rest(Notifier& notifier, const Config& config, store::SqliteJournal& journal,
                       std::optional<std::int64_t> told) {
  if (told) {
    store::Queries queries(journal.path());
    LOAM_TRY(records,
             queries.records(static_cast<std::uint64_t>(*told),
                             {BudgetNoticed::type, TaskLate::type, DeadlineNoticed::type}));
    for (const Record& record : records) tell_channels(notifier, config, record);
  }
  notifier.told(static_cast<std::int64_t>(journal.last_sequence()));
  return {};
}

Result<void> serve(const Options& options, const std::string& program) {
  const Config& config = options.config;
  const sigset_t signals = block_signals();
  LOAM_TRY(catalog, node::Catalog::load(config.catalog));
  LOAM_TRY(journal, store::SqliteJournal::open(config.data_dir));
  for (const std::string& note : journal->notes()) spdlog::warn("{}", note);
  LOAM_TRY(clock, set_up_clock(*journal));
  LOAM_TRY(tokens, api::TokenStore::open(config.data_dir + "/tokens.json"));
  LOAM_TRY(grants, grants_of(config));
  api::Authenticator authenticator(std::move(grants), geteuid(), *tokens);

  LOAM_TRY(buyers, store::BuyerStore::open(config.data_dir + "/buyers.db"));
  NodeExecutor executor(config, clock);
  LoopThread loop(clock, *journal, executor);
  NodeDevices devices(config, program, std::move(catalog), loop);
  executor.connect(loop, devices);
  DaemonBackend backend({config, options.config_path, loop, *journal, devices, executor,
                         authenticator, buyers, clock.now()});
  api::Api api(backend, authenticator, *tokens);
  Snapshots snapshots(*journal, config.snapshot_every);
  LOAM_TRY(box, read_notice_box(notice_box(config)));
  const auto told = box.told;
  const std::unique_ptr<Notifier> notifier = start_notifier(config, std::move(box));
  loop.on_record([&](const Record& record) {
    api.on_record(record);
    tell_channels(*notifier, config, record);
  });
  loop.after_batch([&](const engine::State& state) { snapshots.consider(state); });

  // The socket first: where another loamd serves it, nothing of ours is started.
  std::atomic<bool> ready = false;
  LOAM_TRY(serving, server_options(config));
  LOAM_TRY(server, http::Server::start(
                       std::move(serving), [&](http::Request request, http::Responder responder) {
                         if (ready) {
                           api.handle(std::move(request), std::move(responder));
                         } else {
                           responder.respond(api::Api::refusal(503, "loamd is starting"));
                         }
                       }));

  // Recovery repeats launches; they queue until the executor starts, which is after the devices
  // are known. Timers and placements wait until the executor has told what became of attempts.
  LOAM_CHECK(loop.recover());
  LOAM_CHECK(tell_rest(*notifier, config, *journal, told));
  loop.start();
  if (const auto found = devices.discover(); !found) spdlog::warn("{}", to_text(found.error()));
  LOAM_CHECK(executor.start());
  loop.post_until_durable(SetScheduling{config.scheduling}, settings_actor);
  loop.post_until_durable(SetSeller{config.seller}, settings_actor);
  loop.settled();
  DeviceWatch watch(devices, loop, config.check_devices);
  watch.start();
  ready = true;
  spdlog::info("loamd {} serves {}{}", LOAM_VERSION, config.socket,
               config.listen.empty() ? std::string() : " and " + config.listen);

  wait_for_signal(signals, backend);
  spdlog::info("stopping; tasks go on and are found again by the next loamd");
  watch.stop();
  api.stop();
  server.stop(Duration::seconds(5));
  executor.stop();
  loop.stop();
  notifier->told(static_cast<std::int64_t>(journal->last_sequence()));
  return {};
}

Result<void> read_options(int argc, char** argv, Options& options,
                          std::optional<int>& exit_status) {
  CLI::App app{
      "loamd: the daemon of loam. It attaches the machine's devices, runs tenants' tasks on slices "
      "of them "
      "and bills what was used."};
  std::string data_dir;
  std::string socket;
  std::string listen;
  std::string log_level;
  app.add_option("--config", options.config_path,
                 "Settings file (TOML); without it every setting has its default")
      ->check(CLI::ExistingFile);
  app.add_option("--data", data_dir,
                 "Folder of the journal and of attempts; over the settings file");
  app.add_option("--socket", socket, "Unix socket to serve; over the settings file");
  app.add_option("--listen", listen,
                 "TCP address to serve too, such as 127.0.0.1:8470; clients need a token");
  app.add_option("--log-level", log_level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_flag("--print-config", options.print_config, "Print the settings in force and stop");
  app.set_version_flag("--version", std::string("loamd ") + LOAM_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& fault) {
    if (fault.get_exit_code() != 0)
      return invalid(fault.what(), "see the options with: loamd --help");
    exit_status = app.exit(fault);
    return {};
  }
  options.config = default_config();
  if (!options.config_path.empty()) {
    LOAM_TRY(config, load_config(options.config_path));
    options.config = std::move(config);
  }
  if (!data_dir.empty())
    options.config.data_dir = std::filesystem::absolute(data_dir).lexically_normal().string();
  if (!socket.empty())
    options.config.socket = std::filesystem::absolute(socket).lexically_normal().string();
  if (!listen.empty()) options.config.listen = listen;
  if (!log_level.empty()) options.config.log_level = log_level;
  return {};
}

int run(int argc, char** argv) {
  if (const auto status = node::serve_probe(argc, argv)) return *status;
  Options options;
  std::optional<int> exit_status;
  if (const auto read = read_options(argc, argv, options, exit_status); !read)
    return fail(read.error());
  if (exit_status) return *exit_status;
  if (options.print_config) {
    std::cout << to_toml(options.config);
    return 0;
  }
  set_up_log(options.config.log_level);
  umask(022);
  // PoCL shows no device where it has no place for what it compiles: a service may have no home.
  // What is set stands.
  const std::string kernels = options.config.data_dir + "/cache/pocl";
  ::setenv("POCL_CACHE_DIR", kernels.c_str(), 0);
  std::error_code fault;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", fault).string();
  if (const auto served = serve(options, program); !served) return fail(served.error());
  return 0;
}

}  // namespace
}  // namespace loam::daemon

int main(int argc, char** argv) {
  return loam::daemon::run(argc, argv);
}
