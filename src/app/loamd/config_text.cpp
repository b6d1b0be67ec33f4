// The settings in force, as the settings file would say them.
#include <toml++/toml.h>

#include <boost/describe/enum_to_string.hpp>
#include <sstream>

#include "app/loamd/config.hpp"

namespace loam::daemon {
namespace {

toml::array list_of(const std::vector<std::string>& words) {
  toml::array list;
  for (const std::string& word : words) list.push_back(word);
  return list;
}

toml::array list_of(const std::vector<WorkClass>& classes) {
  toml::array list;
  for (const WorkClass known : classes)
    list.push_back(std::string(boost::describe::enum_to_string(known, "general")));
  return list;
}

void put(toml::table& table, const char* key, const std::optional<Duration>& length) {
  if (length) table.insert(key, to_text(*length));
}

toml::table table_of(const QueueSettings& queue) {
  toml::table table{{"name", queue.name},
                    {"discipline", queue.discipline},
                    {"rank", queue.rank},
                    {"weight", queue.weight},
                    {"barred_environments", list_of(queue.barred_environments)},
                    {"device_types", list_of(queue.device_types)},
                    {"region", queue.region},
                    {"labels", list_of(queue.labels)},
                    {"work_classes", list_of(queue.work_classes)}};
  put(table, "safe", queue.safe);
  if (queue.preemptions) table.insert("preemptions", *queue.preemptions);
  put(table, "preemption_window", queue.preemption_window);
  put(table, "ageing", queue.ageing);
  put(table, "overdue", queue.overdue);
  return table;
}

toml::table table_of(const ServiceClass& known) {
  toml::table table{{"name", known.name}, {"level", known.level}};
  put(table, "wait", known.wait);
  if (!known.late.empty()) {
    std::vector<std::string> late;
    for (const LateStep& step : known.late) late.push_back(to_text(step));
    table.insert("late", list_of(late));
  }
  return table;
}

toml::table table_of(const ShareWeight& weight) {
  return toml::table{
      {"tenant", weight.tenant}, {"project", weight.project}, {"weight", weight.weight}};
}

toml::table table_of(const DefragSettings& defrag) {
  return toml::table{{"moves_per_hour", defrag.moves_per_hour},
                     {"moves_at_once", defrag.moves_at_once},
                     {"lost_work_max", to_text(defrag.lost_work_max)}};
}

toml::table table_of(const Oversubscription& lent) {
  const auto factor = [](std::int64_t permille) { return static_cast<double>(permille) / 1000; };
  return toml::table{{"ce", factor(lent.ce_permille)}, {"memory", factor(lent.memory_permille)}};
}

toml::table table_of(const Seller& seller) {
  return toml::table{{"name", seller.name},
                     {"address", seller.address},
                     {"tax_id", seller.tax_id},
                     {"terms", seller.terms},
                     {"due_after", to_text(Duration::hours(24 * seller.due_after_days))}};
}

toml::table table_of(const UserAccess& user) {
  toml::table table{{"uid", user.uid}, {"role", user.role}};
  if (!user.tenant.empty()) table.insert("tenant", user.tenant);
  return table;
}

template <class Entry>
void put_tables(toml::table& root, const char* key, const std::vector<Entry>& entries) {
  toml::array list;
  for (const Entry& entry : entries) list.push_back(table_of(entry));
  if (!list.empty()) root.insert(key, std::move(list));
}

}  // namespace

std::string to_toml(const Config& config) {
  toml::table root{{"data_dir", config.data_dir},
                   {"socket", config.socket},
                   {"listen", config.listen},
                   {"node", config.node_name},
                   {"region", config.region},
                   {"labels", list_of(config.labels)},
                   {"cpu_oversubscription", config.cpu_oversubscription},
                   {"catalog", config.catalog},
                   {"programs", config.programs},
                   {"guard", config.guard},
                   {"sandbox", config.sandbox},
                   {"mounts", list_of(config.mounts)},
                   {"operator_mounts", list_of(config.operator_mounts)},
                   {"shared", list_of(config.shared)},
                   {"notify", list_of(config.notify)},
                   {"device_locks", config.device_locks},
                   {"check_devices", to_text(config.check_devices)},
                   {"notify_ca", config.notify_ca},
                   {"log_level", config.log_level},
                   {"turn_quantum", to_text(config.turn_quantum)},
                   {"hung_after", to_text(config.hung_after)},
                   {"hung_action", config.hung_action},
                   {"concurrent_kernels", config.concurrent_kernels},
                   {"lend_memory", config.lend_memory},
                   {"spill_memory", config.spill_memory},
                   {"when_idle", config.when_idle},
                   {"snapshot_every", config.snapshot_every},
                   {"share_half_life", to_text(config.scheduling.share_half_life)},
                   {"placement", config.scheduling.placement}};
  put(root, "hold_expires", config.scheduling.hold_expires);
  root.insert("socket_mode", config.socket_mode);
  root.get_as<std::int64_t>("socket_mode")->flags(toml::value_flags::format_as_octal);
  put_tables(root, "queue", config.scheduling.queues);
  put_tables(root, "class", config.scheduling.classes);
  put_tables(root, "weight", config.scheduling.weights);
  root.insert("defrag", table_of(config.scheduling.defrag));
  root.insert("oversubscription", table_of(config.scheduling.oversubscription));
  put_tables(root, "user", config.users);
  if (!config.seller.name.empty()) root.insert("seller", table_of(config.seller));
  std::ostringstream text;
  text << root << "\n";
  return text.str();
}

}  // namespace loam::daemon
