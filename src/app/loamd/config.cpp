#include "app/loamd/config.hpp"

#include <unistd.h>

#include <toml++/toml.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "domain/enumerators.hpp"
#include "domain/tenant.hpp"
#include "engine/scheduling.hpp"

namespace loam::daemon {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string program_folder() {
  std::error_code fault;
  const fs::path self = fs::read_symlink("/proc/self/exe", fault);
  return fault ? std::string(".") : self.parent_path().string();
}

// The first of the paths that exists, else the first.
std::string first_there(const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    if (fs::exists(path)) return fs::weakly_canonical(path).string();
  }
  return paths.front().string();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "node";
  std::string text;
  for (const char* c = name.data(); *c != '\0' && *c != '.'; ++c) {
    const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    const bool good = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    text += good ? lower : '-';
  }
  return is_name(text) ? text : "node-" + text;
}

// The parser complains of the end of the line where a quote is missing.
std::string text_not_closed(std::string_view fault) {
  return fault.find("unescaped control characters") == std::string_view::npos
             ? std::string()
             : " (is a text not closed with a quote?)";
}

// What was written, where that is one value and short enough to repeat.
std::string written(const toml::node& node) {
  constexpr std::size_t length_max = 60;
  std::ostringstream text;
  node.visit([&](const auto& value) {
    if constexpr (toml::is_floating_point<decltype(value)>) {
      char digits[32];  // as few as say which number it is
      text.write(digits, std::to_chars(digits, digits + sizeof digits, value.get()).ptr - digits);
    } else if constexpr (toml::is_value<decltype(value)>) {
      text << value;
    }
  });
  return text.str().size() <= length_max ? text.str() : std::string();
}

class Section {
 public:
  Section(const toml::table& table, std::string path, const std::string& origin)
      : table_(table), path_(std::move(path)), origin_(origin) {}

  void text(const char* key, std::string& out) {
    read(key, "text", [&](const toml::node& node) {
      const auto value = node.value_exact<std::string>();
      if (value) out = *value;
      return value.has_value();
    });
  }
  void number(const char* key, std::int64_t& out, std::int64_t low, std::int64_t high) {
    read(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high),
         [&](const toml::node& node) {
           const auto value = node.value_exact<std::int64_t>();
           if (!value || *value < low || *value > high) return false;
           out = *value;
           return true;
         });
  }
  // A factor of at least 1 with up to three decimals, in thousandths.
  void factor(const char* key, std::int64_t& out) {
    read(key, "a factor from 1 to " + factor_text(oversubscription_permille_max) + ", such as 1.5",
         [&](const toml::node& node) {
           const auto permille = parse_factor(written(node));
           if (!node.is_number() || !permille || *permille < 1000 ||
               *permille > oversubscription_permille_max)
             return false;
           out = *permille;
           return true;
         });
  }
  void duration(const char* key, Duration& out) {
    read(key, "a length of time such as \"10ms\"", [&](const toml::node& node) {
      const auto value = node.value_exact<std::string>();
      if (!value) return false;
      const auto length = parse_duration(*value);
      if (length) out = *length;
      return length.ok();
    });
  }
  void texts(const char* key, std::vector<std::string>& out) {
    read(key, "a list of texts", [&](const toml::node& node) {
      const toml::array* array = node.as_array();
      if (array == nullptr) return false;
      out.clear();
      for (const toml::node& element : *array) {
        const auto value = element.value_exact<std::string>();
        if (!value) return false;
        out.push_back(*value);
      }
      return true;
    });
  }
  void one_of(const char* key, std::string& out, const std::vector<std::string>& choices) {
    std::string names;
    for (const std::string& choice : choices) names += (names.empty() ? "one of " : ", ") + choice;
    read(key, names, [&](const toml::node& node) {
      const auto value = node.value_exact<std::string>();
      if (!value || std::find(choices.begin(), choices.end(), *value) == choices.end())
        return false;
      out = *value;
      return true;
    });
  }
  void yes_or_no(const char* key, bool& out) {
    read(key, "true or false", [&](const toml::node& node) {
      const auto value = node.value_exact<bool>();
      if (value) out = *value;
      return value.has_value();
    });
  }
  void tables(const char* key, const std::function<Result<void>(const toml::table&)>& each) {
    read(key, "a list of tables", [&](const toml::node& node) {
      const toml::array* array = node.as_array();
      if (array == nullptr) return false;
      for (const toml::node& element : *array) {
        const toml::table* table = element.as_table();
        if (table == nullptr) return false;
        if (auto done = each(*table); !done && !fault_) fault_ = done.error();
      }
      return true;
    });
  }

  void table(const char* key, const std::function<Result<void>(const toml::table&)>& take) {
    read(key, "a table", [&](const toml::node& node) {
      const toml::table* found = node.as_table();
      if (found == nullptr) return false;
      if (auto done = take(*found); !done && !fault_) fault_ = done.error();
      return true;
    });
  }

  // The first fault: a bad value, or a key nobody asked for.
  Result<void> finish() {
    if (fault_) return *fault_;
    for (const auto& [key, node] : table_) {
      if (known_.count(std::string(key.str())) != 0) continue;
      return invalid(place(node) + ": '" + path_ + std::string(key.str()) + "' is not a setting",
                     "see the settings with: loamd --print-config");
    }
    return {};
  }

 private:
  std::string place(const toml::node& node) const {
    return origin_ + ":" + std::to_string(node.source().begin.line) + ":" +
           std::to_string(node.source().begin.column);
  }
  void read(const char* key, const std::string& wanted,
            const std::function<bool(const toml::node&)>& take) {
    known_[key] = true;
    const toml::node* node = table_.get(key);
    if (node == nullptr || fault_ || take(*node)) return;
    const std::string found = written(*node);
    fault_ = invalid(place(*node) + ": '" + path_ + key + "' must be " + wanted +
                         (found.empty() ? "" : ", not " + found),
                     "correct the file and start again");
  }

  const toml::table& table_;
  std::string path_;
  const std::string& origin_;
  std::map<std::string, bool> known_;
  std::optional<Error> fault_;
};

void optional_duration(Section& section, const char* key, std::optional<Duration>& out) {
  Duration value{-1};
  section.duration(key, value);
  if (value.ms >= 0) out = value;
}

Result<void> read_queue(const toml::table& table, const std::string& origin,
                        std::vector<QueueSettings>& queues) {
  constexpr std::int64_t many = 1'000'000;
  Section section(table, "queue.", origin);
  QueueSettings queue;
  std::int64_t preemptions = -1;
  std::vector<std::string> work_classes;
  queue.work_classes = {WorkClass::general};
  section.text("name", queue.name);
  section.text("discipline", queue.discipline);
  section.number("rank", queue.rank, -many, many);
  section.number("weight", queue.weight, 1, many);
  section.texts("barred_environments", queue.barred_environments);
  section.texts("device_types", queue.device_types);
  section.text("region", queue.region);
  section.texts("labels", queue.labels);
  section.texts("work_classes", work_classes);
  optional_duration(section, "safe", queue.safe);
  section.number("preemptions", preemptions, 0, many);
  if (preemptions >= 0) queue.preemptions = preemptions;
  optional_duration(section, "preemption_window", queue.preemption_window);
  optional_duration(section, "ageing", queue.ageing);
  optional_duration(section, "overdue", queue.overdue);
  LOAM_CHECK(section.finish());
  if (!work_classes.empty()) queue.work_classes.clear();
  for (const std::string& name : work_classes) {
    const Result<WorkClass> known = parse_enumerator<WorkClass>(name);
    if (!known) {
      return Error{ErrorKind::invalid_argument,
                   origin + ": queue.work_classes: " + known.error().message,
                   known.error().next_step};
    }
    queue.work_classes.push_back(*known);
  }
  queues.push_back(std::move(queue));
  return {};
}

Result<void> read_class(const toml::table& table, const std::string& origin,
                        std::vector<ServiceClass>& classes) {
  Section section(table, "class.", origin);
  ServiceClass known;
  section.text("name", known.name);
  section.number("level", known.level, -1000, 1000);
  optional_duration(section, "wait", known.wait);
  std::vector<std::string> late;
  section.texts("late", late);
  LOAM_CHECK(section.finish());
  for (const std::string& text : late) {
    Result<LateStep> step = parse_late_step(text);
    if (!step) {
      return Error{ErrorKind::invalid_argument, origin + ": class.late: " + step.error().message,
                   step.error().next_step};
    }
    known.late.push_back(std::move(*step));
  }
  classes.push_back(std::move(known));
  return {};
}

Result<void> read_weight(const toml::table& table, const std::string& origin,
                         std::vector<ShareWeight>& weights) {
  Section section(table, "weight.", origin);
  ShareWeight weight;
  section.text("tenant", weight.tenant);
  section.text("project", weight.project);
  section.number("weight", weight.weight, 1, 1'000'000);
  LOAM_CHECK(section.finish());
  weights.push_back(std::move(weight));
  return {};
}

Result<void> read_defrag(const toml::table& table, const std::string& origin,
                         DefragSettings& defrag) {
  constexpr std::int64_t many = 1'000'000;  // what is out of range is refused with the whole
  Section section(table, "defrag.", origin);
  section.number("moves_per_hour", defrag.moves_per_hour, 0, many);
  section.number("moves_at_once", defrag.moves_at_once, 1, many);
  section.duration("lost_work_max", defrag.lost_work_max);
  return section.finish();
}

Result<void> read_oversubscription(const toml::table& table, const std::string& origin,
                                   Oversubscription& lent) {
  Section section(table, "oversubscription.", origin);
  section.factor("ce", lent.ce_permille);
  section.factor("memory", lent.memory_permille);
  return section.finish();
}

// Lists that are not there leave what is there by default.
void read_scheduling(Section& top, const std::string& origin, SchedulingSettings& settings) {
  std::vector<QueueSettings> queues;
  std::vector<ServiceClass> classes;
  top.tables("queue", [&](const toml::table& table) { return read_queue(table, origin, queues); });
  top.tables("class", [&](const toml::table& table) { return read_class(table, origin, classes); });
  top.tables("weight", [&](const toml::table& table) {
    return read_weight(table, origin, settings.weights);
  });
  top.duration("share_half_life", settings.share_half_life);
  top.text("placement", settings.placement);
  optional_duration(top, "hold_expires", settings.hold_expires);
  top.table("defrag",
            [&](const toml::table& table) { return read_defrag(table, origin, settings.defrag); });
  top.table("oversubscription", [&](const toml::table& table) {
    return read_oversubscription(table, origin, settings.oversubscription);
  });
  if (!queues.empty()) settings.queues = std::move(queues);
  if (!classes.empty()) settings.classes = std::move(classes);
}

// [seller]: who is on the invoices.
Result<void> read_seller(const toml::table& table, const std::string& origin, Seller& seller) {
  Section section(table, "seller.", origin);
  Duration due = Duration::hours(24 * 14);
  section.text("name", seller.name);
  section.text("address", seller.address);
  section.text("tax_id", seller.tax_id);
  section.text("terms", seller.terms);
  section.duration("due_after", due);
  LOAM_CHECK(section.finish());
  constexpr std::int64_t day_ms = 24 * 3'600'000;
  if (seller.name.empty())
    return invalid(origin + ": [seller] has no name", "name who sells, or leave it out");
  if (due.ms < 0 || due.ms % day_ms != 0) {
    return invalid(
        origin + ": seller.due_after is " + to_text(due) + ", which is no number of days",
        "write it as \"14d\"");
  }
  seller.due_after_days = due.ms / day_ms;
  return {};
}

Result<void> read_user(const toml::table& table, const std::string& origin, Config& config) {
  Section section(table, "user.", origin);
  UserAccess user;
  user.uid = -1;
  section.number("uid", user.uid, 0, 0xffffffffLL);
  section.one_of("role", user.role, {"admin", "operator", "finance", "member"});
  section.text("tenant", user.tenant);
  LOAM_CHECK(section.finish());
  if (user.uid < 0 || user.role.empty()) return invalid(origin + ": a [[user]] needs uid and role");
  if ((user.role == "member") == user.tenant.empty()) {
    return invalid(origin + ": the user " + std::to_string(user.uid) +
                   " needs a tenant exactly when its role is member");
  }
  config.users.push_back(std::move(user));
  return {};
}

}  // namespace

Config default_config() {
  Config config;
  if (geteuid() == 0) {
    config.data_dir = "/var/lib/loam";
    config.socket = "/run/loam/loamd.sock";
  } else {
    const std::string state = variable("XDG_STATE_HOME");
    const std::string runtime = variable("XDG_RUNTIME_DIR");
    config.data_dir = (state.empty() ? variable("HOME") + "/.local/state" : state) + "/loam";
    config.socket = (runtime.empty() ? config.data_dir : runtime + "/loam") + "/loamd.sock";
  }
  const fs::path here = program_folder();
  config.programs = here.string();
  config.guard = first_there({here / "libloam-guard.so", here / "../lib/loam/libloam-guard.so"});
  config.catalog =
      first_there({here / "../share/loam/catalog.toml", here / "../../share/catalog.toml"});
  config.node_name = host_name();
  config.device_locks = first_there({"/run/lock", "/tmp"});
  // Who says what a program does sets its price; so the operator says which classes are sold.
  config.scheduling.queues.front().work_classes = {WorkClass::general};
  return config;
}

Result<Config> parse_config(std::string_view text, const std::string& origin) {
  Config config = default_config();
  toml::table table;
  try {
    table = toml::parse(text, origin);
  } catch (const toml::parse_error& fault) {
    return invalid(origin + ":" + std::to_string(fault.source().begin.line) + ":" +
                       std::to_string(fault.source().begin.column) + ": " +
                       std::string(fault.description()) + text_not_closed(fault.description()),
                   "correct the file and start again");
  }
  Section top(table, "", origin);
  top.text("data_dir", config.data_dir);
  top.text("socket", config.socket);
  top.number("socket_mode", config.socket_mode, 0, 0777);
  top.text("listen", config.listen);
  top.text("node", config.node_name);
  top.text("region", config.region);
  top.texts("labels", config.labels);
  top.number("cpu_oversubscription", config.cpu_oversubscription, 1, 100);
  top.text("catalog", config.catalog);
  top.text("programs", config.programs);
  top.text("guard", config.guard);
  top.one_of("sandbox", config.sandbox, {"auto", "bubblewrap", "none"});
  top.texts("mounts", config.mounts);
  top.texts("operator_mounts", config.operator_mounts);
  top.texts("shared", config.shared);
  top.texts("notify", config.notify);
  top.text("device_locks", config.device_locks);
  top.duration("check_devices", config.check_devices);
  top.one_of("log_level", config.log_level, {"debug", "info", "warning", "error"});
  top.duration("turn_quantum", config.turn_quantum);
  top.duration("hung_after", config.hung_after);
  top.one_of("hung_action", config.hung_action, {"ignore", "report", "end"});
  top.yes_or_no("concurrent_kernels", config.concurrent_kernels);
  top.yes_or_no("lend_memory", config.lend_memory);
  top.yes_or_no("spill_memory", config.spill_memory);
  top.one_of("when_idle", config.when_idle, {"report", "park", "end"});
  top.number("snapshot_every", config.snapshot_every, 1, 1'000'000'000);
  top.tables("user", [&](const toml::table& user) { return read_user(user, origin, config); });
  top.text("notify_ca", config.notify_ca);
  top.table("seller",
            [&](const toml::table& seller) { return read_seller(seller, origin, config.seller); });
  read_scheduling(top, origin, config.scheduling);
  LOAM_CHECK(top.finish());
  if (const auto reject = engine::validate(config.scheduling))
    return invalid(origin + ": " + reject->message, reject->next_step);
  const std::int64_t memory = config.scheduling.oversubscription.memory_permille;
  if (memory > 1000 && (!config.spill_memory || config.guard.empty())) {
    return invalid(origin + ": oversubscription.memory is " + factor_text(memory) +
                       ", and nothing takes device memory to the host that does not fit",
                   "set spill_memory = true and let the guard be, or oversubscription.memory = 1");
  }
  if (!is_name(config.node_name)) {
    return invalid(origin + ": '" + config.node_name + "' is not a node name",
                   "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return Error{ErrorKind::not_found, "cannot read the settings " + path,
                 "check the path and its permissions"};
  std::stringstream text;
  text << file.rdbuf();
  return parse_config(text.str(), path);
}

}  // namespace loam::daemon
