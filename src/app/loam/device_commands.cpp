// device list, discover, calibrate, drain, undrain.
#include <algorithm>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {
namespace {

int print_devices(Session& session, const api::DeviceList& list, const char* if_none) {
  if (session.json()) return session.print_json(list);
  if (list.devices.empty()) {
    session.say(if_none);
    return 0;
  }
  const bool linked =
      std::any_of(list.devices.begin(), list.devices.end(),
                  [](const api::DeviceView& device) { return !device.link_group.empty(); });
  std::vector<Column> columns{{"ID"},
                              {"DEVICE"},
                              {"TYPE", Align::left, true},
                              {"STATE"},
                              {"CE", Align::right},
                              {"PROMISED", Align::right},
                              {"MEMORY", Align::right, false, 1},
                              {"FREE", Align::right},
                              {"TASKS", Align::right, false, 2},
                              {"DRIVER", Align::left, false, 3},
                              {"UUID"}};
  if (linked) columns.insert(columns.end() - 1, Column{"LINK GROUP", Align::left, false, 3});
  Table table(std::move(columns));
  for (const api::DeviceView& device : list.devices) {
    const bool attached = device.state != "refused";
    std::vector<Cell> row{
        device.id,
        device.name,
        device.type,
        Cell(device.state, device.state == "ready" ? Style::good : Style::warn),
        attached ? device.ce : "",
        attached ? promised_text(device.promised, device.used) : "",
        memory_text(device.memory_mib),
        attached ? memory_text(device.memory_mib - device.memory_promised_mib) : "",
        attached ? std::to_string(device.leases) : "",
        device.backend + (device.driver_version.empty() ? "" : " " + device.driver_version)};
    if (linked) row.emplace_back(device.link_group);
    row.emplace_back(device.uuid);
    table.add(std::move(row));
  }
  session.out() << session.text_of(table);
  for (const api::DeviceView& device : list.devices) {
    if (!device.note.empty())
      session.say((device.name.empty() ? device.uuid : device.name) + ": " +
                  printable(device.note));
  }
  return 0;
}

Result<int> run_list(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->devices());
  return print_devices(session, list, "no devices; look for some with: loam device discover");
}

Result<int> run_discover(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(list, client->discover());
  return print_devices(session, list,
                       "no driver that loamd can open shows a device: see `clinfo -l` or "
                       "`nvidia-smi -L` as loamd's user; the CPU becomes one with: "
                       "apt-get install pocl-opencl-icd");
}

std::string device_facts(const api::DeviceView& device, bool colour) {
  return facts_text({{"device", device.name.empty() ? device.uuid : device.name},
                     {"type", device.type},
                     {"state", device.state},
                     {"note", device.note},
                     {"CE", device.ce + " general, " + device.ce_train + " train, " +
                                device.ce_prefill + " prefill, " + device.ce_decode + " decode"},
                     {"from", device.factors_source},
                     {"link group", device.link_group},
                     {"NUMA node", device.numa_node ? std::to_string(*device.numa_node) : ""}},
                    colour);
}

Result<int> calibrate_one(Session& session, api::Client& client, const std::string& device) {
  Console& console = session.console();
  const bool live = console.err_is_terminal && !session.quiet();
  std::string step;
  const auto measured = client.calibrate(device, [&](const api::ProgressView& progress) {
    if (live) {
      console.err << "\r\x1b[K" << percent(progress.fraction) << "  " << printable(progress.step)
                  << std::flush;
    } else if (progress.step != step && !session.json()) {
      session.say(device + ": " + printable(progress.step));
    }
    step = progress.step;
  });
  if (live) console.err << "\r\x1b[K" << std::flush;
  if (!measured) {
    Error error = measured.error();
    if (error.kind == ErrorKind::not_found)
      error.next_step =
          "a device that was refused has no index yet: name it by UUID, or measure all "
          "with: loam device calibrate --all";
    return error;
  }
  if (session.json()) return session.print_json(*measured);
  session.out() << device_facts(*measured, console.colour);
  return 0;
}

Result<int> run_calibrate(Session& session, const Arguments& arguments) {
  const bool all = arguments.has("all");
  const std::string named = arguments.operand(0);
  if (!all && named.empty())
    return invalid("'loam device calibrate' needs DEVICE",
                   "name one of: loam device list; or measure every device with --all");
  if (all && !named.empty())
    return invalid("both " + named + " and --all are given", "leave one of them out");
  if (all && session.json())
    return invalid("--json gives one document, --all many", "name one device");
  LOAM_TRY(client, session.client());
  if (!all) return calibrate_one(session, *client, named);
  LOAM_TRY(list, client->devices());
  for (const api::DeviceView& device : list.devices)
    LOAM_CHECK(calibrate_one(session, *client, device.uuid));
  return 0;
}

Result<int> set_drain(Session& session, const Arguments& arguments, bool draining) {
  LOAM_TRY(client, session.client());
  const std::string name = arguments.operand(0);
  LOAM_TRY(device, draining ? client->drain(name) : client->undrain(name));
  if (session.json()) return session.print_json(device);
  session.say(device.name + ": " + device.state +
              (draining ? ", nothing new is placed on it, " + count_of(device.leases, "task") +
                              " on it still"
                        : ""));
  return 0;
}

Result<int> run_drain(Session& session, const Arguments& arguments) {
  return set_drain(session, arguments, true);
}
Result<int> run_undrain(Session& session, const Arguments& arguments) {
  return set_drain(session, arguments, false);
}

}  // namespace

std::vector<Command> device_commands() {
  const Operand device{"DEVICE", "by id, node/index or UUID", Operand::Kind::one, "@device"};
  const Operand maybe_device{"DEVICE", "by id, node/index or UUID", Operand::Kind::maybe,
                             "@device"};
  return {
      {"device list",
       "The devices, what they are worth and what is promised of them",
       "",
       "loam device list",
       {},
       {},
       run_list},
      {"device discover",
       "Look for devices anew",
       "",
       "loam device discover",
       {},
       {},
       run_discover},
      {"device calibrate",
       "Measure a device: what is it worth in CE?",
       "Takes about a minute a device. Nothing else should run on it meanwhile.",
       "loam device calibrate n1/0\nloam device calibrate --all",
       {maybe_device},
       {{"Which", {{"--all", "", "one after the other, all that are known", Option::Kind::flag}}}},
       run_calibrate},
      {"device drain",
       "Place nothing new on a device; what runs goes on",
       "",
       "loam device drain n1/0",
       {device},
       {},
       run_drain,
       true},
      {"device undrain",
       "Use a device again",
       "",
       "loam device undrain n1/0",
       {device},
       {},
       run_undrain,
       true},
  };
}

}  // namespace loam::cli
