// What a spec must be to be accepted. Fields that are known but not built yet are refused by name:
// a task never runs under other terms than it asked for.
#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "domain/path.hpp"
#include "engine/terms.hpp"

namespace loam::engine {
namespace {

constexpr std::size_t command_bytes_max = 128 * 1024;  // execve takes no single argument above this
constexpr std::size_t map_entries_max = 1000;
constexpr Duration limit_max = Duration::hours(24 * 366);
constexpr Duration grace_max = Duration::hours(1);
constexpr std::int64_t restarts_limit = 1000;
constexpr std::int64_t backups_max = 100;
constexpr std::int64_t devices_max = 1024;  // of one unit
constexpr std::int64_t gang_max = 10'000;

Reject bad(std::string message, std::string next_step) {
  return {RejectCode::invalid_argument, std::move(message), std::move(next_step)};
}

Reject not_yet(const std::string& field, std::string next_step) {
  return {RejectCode::unsupported_field, "'" + field + "' cannot be honoured yet",
          std::move(next_step)};
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

std::optional<Reject> validate_command(const TaskSpec& spec) {
  if (spec.command.empty() || spec.command.front().empty()) {
    return bad("the task has no command", "name the program to run after --");
  }
  std::size_t bytes = 0;
  for (const std::string& word : spec.command) {
    bytes += word.size() + 1;
    if (has_nul(word)) return bad("an argument of the command holds a NUL byte", "remove it");
  }
  if (bytes > command_bytes_max) {
    return bad("the command is " + std::to_string(bytes) + " bytes long",
               "the most is " + std::to_string(command_bytes_max) + ": pass a file instead");
  }
  if (spec.environment.size() > map_entries_max) {
    return bad(std::to_string(spec.environment.size()) + " environment variables are too many",
               "the most is " + std::to_string(map_entries_max));
  }
  const auto in_name = [](char c) { return c > ' ' && c != '=' && c != '\x7f'; };
  for (const auto& [name, value] : spec.environment) {
    if (name.empty() || !std::all_of(name.begin(), name.end(), in_name)) {
      return bad("'" + name + "' is not the name of an environment variable",
                 "use visible ASCII without blanks and '=', such as NAME=VALUE");
    }
    if (has_nul(value)) return bad("the value of '" + name + "' holds a NUL byte", "leave it out");
  }
  return std::nullopt;
}

std::optional<Reject> validate_request(const ResourceRequest& request) {
  if (request.ce.has_value() == request.share.has_value()) {
    return bad(
        request.ce ? "both CE and a share are asked for" : "neither CE nor a share is asked for",
        "use --ce for compute, or --share for a part of one device");
  }
  if (request.ce && (request.ce->value <= 0 || *request.ce > milli_ce_max)) {
    return bad(to_text(*request.ce) + " CE is out of range",
               "ask for 0.001 to " + to_text(milli_ce_max) + " CE");
  }
  if (request.share && (request.share->value <= 0 || *request.share > whole_device)) {
    return bad("a share of " + to_text(*request.share) + " is out of range",
               "ask for more than 0 and at most 1");
  }
  if (request.memory && (request.memory->value <= 0 || *request.memory > mebibytes_max)) {
    return bad(std::to_string(request.memory->value) + " MiB of device memory is out of range",
               "ask for at least 1MiB");
  }
  if (request.cpu.value <= 0 || request.host_memory.value <= 0 ||
      request.host_memory > mebibytes_max) {
    return bad("CPU and host memory must be above zero", "leave them out for the defaults");
  }
  if (request.devices < 1 || request.devices > devices_max) {
    return bad(std::to_string(request.devices) + " devices are out of range",
               "ask for 1 to " + std::to_string(devices_max));
  }
  if (!request.device.empty() && request.devices > 1) {
    return bad("one device is named and " + std::to_string(request.devices) + " are asked for",
               "leave one of the two out");
  }
  if (request.bandwidth && (request.bandwidth->value <= 0 || *request.bandwidth > whole_device)) {
    return bad("a copy bandwidth of " + to_text(*request.bandwidth) + " is out of range",
               "ask for more than 0 and at most 1, of one device's");
  }
  // What is promised of a device's copies adds up because what is promised of its time does.
  if (request.bandwidth && request.share && *request.bandwidth > *request.share) {
    return not_yet("bandwidth " + to_text(*request.bandwidth),
                   "ask for no more than the share, " + to_text(*request.share));
  }
  if (request.isolation == Isolation::advisory) {
    return bad("isolation 'advisory' is not for sale", "ask for any, software or hardware");
  }
  if (request.isolation == Isolation::hardware && request.share != whole_device) {
    return not_yet("isolation: hardware", "only a whole device is a hardware slice: add --share 1");
  }
  return std::nullopt;
}

// What would follow the compute is to be said where the compute is not.
std::optional<Reject> validate_auto_ce(const TaskSpec& spec) {
  if (!spec.auto_ce) return std::nullopt;
  const MilliCe most = spec.auto_ce->most;
  if (!spec.request.ce || *spec.request.ce > most) {
    return bad("the compute asked for is not within its most, " + to_text(most) + " CE",
               "ask for it as auto:" + to_text(most));
  }
  if (most.value <= 0 || most > milli_ce_max) {
    return bad("a most of " + to_text(most) + " CE is out of range",
               "use 0.001 to " + to_text(milli_ce_max));
  }
  if (spec.name.empty()) {
    return bad("compute is taken from earlier runs of its name, and the task has none",
               "name it with --name, or ask for CE as a number");
  }
  if (!spec.request.memory) {
    return bad("a task that takes less compute would get less device memory with it",
               "say how much it needs with --memory");
  }
  return std::nullopt;
}

std::optional<Reject> validate_ports(const std::vector<std::int64_t>& ports) {
  constexpr std::size_t ports_max = 16;
  constexpr std::int64_t port_max = 65'535;
  if (ports.size() > ports_max) {
    return bad(std::to_string(ports.size()) + " ports are too many",
               "the most is " + std::to_string(ports_max));
  }
  for (const std::int64_t port : ports) {
    if (port < 1 || port > port_max)
      return bad("the port " + std::to_string(port) + " is out of range", "use 1 to 65535");
    if (std::count(ports.begin(), ports.end(), port) > 1)
      return bad("the port " + std::to_string(port) + " is named twice", "name it once");
  }
  return std::nullopt;
}

std::optional<Reject> validate_not_yet(const TaskSpec& spec) {
  if (!spec.image.empty())
    return not_yet("image", "leave it out: the task sees the node's own files");
  if (!spec.secrets.empty()) return not_yet("secrets", "mount a file that holds the secret");
  if (spec.deadline && !spec.recurrence.empty()) {
    return bad("a task that recurs has no deadline of its own",
               "leave out the deadline, or the recurrence");
  }
  if (!spec.deadline && (spec.changeover || spec.spot_policy != SpotPolicy::reserve)) {
    return bad("only a spot task with a deadline has a changeover and a spot policy",
               "add --purchase spot and --deadline, or leave them out");
  }
  if (spec.changeover && (spec.changeover->ms < 0 || *spec.changeover > grace_max)) {
    return bad("a changeover of " + to_text(*spec.changeover) + " is out of range",
               "use at most " + to_text(grace_max));
  }
  if (spec.reservation.valid() && !spec.recurrence.empty()) {
    return bad("a task that recurs would outlive its reservation",
               "leave out the reservation, or the recurrence");
  }
  const bool reserved = spec.purchase_model == PurchaseModel::reservation;
  if (reserved && !spec.reservation.valid()) {
    return bad("a task of the purchase model 'reservation' names the one that it runs on",
               "make one (loam reservation make), then use --reservation rsv-1");
  }
  if (!reserved && spec.reservation.valid()) {
    return bad("a task on " + spec.reservation.text() + " is bought as 'reservation'",
               "leave out the purchase model, or the reservation");
  }
  if (!is_name(spec.service_class)) {
    return bad("the service class '" + spec.service_class + "' is not a name",
               "use standard, or one that the rate card names");
  }
  return std::nullopt;
}

// As the node would refuse them, but before anything is set aside.
std::optional<Reject> validate_paths(const TaskSpec& spec) {
  const std::string& folder = spec.working_directory;
  if (!folder.empty()) {
    const char* fault = folder == "/" ? "is the root" : path_fault(folder);
    if (fault != nullptr) {
      return bad("the working directory '" + folder + "' " + fault,
                 "use --workdir /absolute/path, or leave it out for an empty folder of its own");
    }
  }
  for (const Mount& mount : spec.mounts) {
    for (const std::string& path : {mount.source, mount.target}) {
      if (const char* fault = path_fault(path)) {
        return bad(
            "the mount '" + mount.source + "' to '" + mount.target + "': '" + path + "' " + fault,
            "use --mount /source:/target");
      }
    }
    if (is_reserved_target(mount.target)) {
      return bad("the mount to '" + mount.target + "' would hide a folder of the sandbox's own",
                 "use another target, such as /data");
    }
  }
  return std::nullopt;
}

std::optional<Reject> validate_attribution(const Attribution& who) {
  for (const std::string& name : {who.project, who.environment}) {
    if (!is_name(name)) {
      return bad("'" + name + "' is not a name",
                 "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
    }
  }
  constexpr std::size_t text_max = 256;
  if (who.model.size() > text_max || who.model_version.size() > text_max ||
      who.tags.size() > map_entries_max) {
    return bad("the model name or the tags are too long", "shorten them");
  }
  if (who.model.empty() && !who.model_version.empty())
    return bad("the version '" + who.model_version + "' is of no model",
               "use --model NAME@VERSION");
  return std::nullopt;
}

std::optional<Reject> validate_group(const TaskSpec& spec) {
  if (!spec.group.empty() && !is_name(spec.group)) {
    return bad("'" + spec.group + "' is not the name of a group",
               "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  if (spec.role == GroupRole::critical && spec.purchase_model != PurchaseModel::hybrid) {
    return bad("only a hybrid task has a role in its group",
               "use --purchase hybrid, or leave the role out");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Reject> validate(const TaskSpec& spec) {
  if (!spec.name.empty() && !is_name(spec.name)) {
    return bad("'" + spec.name + "' is not a name",
               "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  if (auto reject = validate_command(spec)) return reject;
  if (auto reject = validate_request(spec.request)) return reject;
  if (auto reject = validate_auto_ce(spec)) return reject;
  if (auto reject = validate_ports(spec.ports)) return reject;
  if (auto reject = validate_not_yet(spec)) return reject;
  if (auto reject = validate_attribution(spec.attribution)) return reject;
  if (auto reject = validate_group(spec)) return reject;
  if (auto reject = validate_paths(spec)) return reject;
  if (spec.limit.ms <= 0 || spec.limit > limit_max) {
    return bad("a time limit of " + to_text(spec.limit) + " is out of range",
               "use 1ms to " + to_text(limit_max));
  }
  if (spec.wait_at_most && (spec.wait_at_most->ms <= 0 || *spec.wait_at_most > limit_max)) {
    return bad("a longest wait of " + to_text(*spec.wait_at_most) + " is out of range",
               "use 1ms to " + to_text(limit_max) + ", or leave it out");
  }
  if (spec.gang < 1 || spec.gang > gang_max) {
    return bad("a gang of " + std::to_string(spec.gang) + " is out of range",
               "use 1 to " + std::to_string(gang_max) + " members");
  }
  if (!spec.request.device.empty() && spec.gang > 1) {
    return bad("one device is named for a gang of " + std::to_string(spec.gang),
               "leave the device out");
  }
  constexpr Duration segment_min = Duration::minutes(1);
  if (spec.segments < 1 || (spec.segments > 1 && spec.limit.ms / spec.segments < segment_min.ms)) {
    return bad(
        std::to_string(spec.segments) + " segments of " + to_text(spec.limit) + " are out of range",
        "use 1, or so many that each has " + to_text(segment_min) + " at least");
  }
  if (spec.backups < 0 || spec.backups > backups_max) {
    return bad(std::to_string(spec.backups) + " backups are out of range",
               "use 0 to " + std::to_string(backups_max));
  }
  // Its members begin one by one, and the first to begin writes to what the next would copy.
  if (spec.backups > 0 && spec.gang > 1)
    return bad("the checkpoints of a gang have no backups", "leave the backups out");
  if (spec.grace.ms < 0 || spec.grace > grace_max) {
    return bad("a grace period of " + to_text(spec.grace) + " is out of range",
               "use at most " + to_text(grace_max));
  }
  if (spec.restarts_max < 0 || spec.restarts_max > restarts_limit) {
    return bad(std::to_string(spec.restarts_max) + " restarts are out of range", "use 0 to 1000");
  }
  return std::nullopt;
}

std::optional<Reject> validate(const TenantSpec& spec) {
  if (!is_name(spec.name)) {
    return bad("'" + spec.name + "' is not a name",
               "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  if (spec.discount.value < 0 || spec.discount.value > 10'000) {
    return bad(
        "a discount of " + std::to_string(spec.discount.value) + " basis points is out of range",
        "use 0 to 100 %");
  }
  if (spec.credit_limit.currency() != spec.currency || spec.credit_limit.is_negative()) {
    return bad(
        "the credit limit " + to_text(spec.credit_limit) + " does not fit the tenant's currency",
        "give zero or more " + std::string(spec.currency.code()));
  }
  if (spec.payment == PaymentMode::prepaid && !spec.credit_limit.is_zero()) {
    return bad("a prepaid tenant has no credit limit", "make it postpaid, or leave the limit out");
  }
  if (const auto zone = billing::Zone::open(spec.billing_zone); !zone.ok())
    return bad(zone.error().message, zone.error().next_step);
  const Quota& quota = spec.quota;
  const bool negative = (quota.ce && quota.ce->value < 0) ||
                        (quota.memory && quota.memory->value < 0) ||
                        (quota.tasks && *quota.tasks < 0) || (quota.queued && *quota.queued < 0);
  if (negative || (quota.devices && quota.devices->value < 0) ||
      (quota.longest && quota.longest->ms < 0) ||
      (quota.ce_hours_month && *quota.ce_hours_month < 0)) {
    return bad("a quota is negative", "use zero or more, or leave it out for no limit");
  }
  if (!quota.cohort.empty() && !is_name(quota.cohort)) {
    return bad("'" + quota.cohort + "' is not the name of a cohort",
               "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  if (quota.cohort.empty() && (quota.borrow || quota.lend))
    return bad("only a tenant of a cohort borrows and lends", "name the cohort, or leave it out");
  constexpr std::int64_t whole = 10'000;
  if ((quota.lend && (quota.lend->value < 0 || quota.lend->value > whole)) ||
      (quota.borrow && (quota.borrow->value < 0 || quota.borrow->value > 1000 * whole))) {
    return bad("a part of the quota to lend or to borrow is out of range",
               "lend 0 to 100 %, borrow 0 to 100,000 %");
  }
  return std::nullopt;
}

}  // namespace loam::engine
