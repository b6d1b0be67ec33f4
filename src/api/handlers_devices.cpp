// Devices, and the top view.
#include <algorithm>
#include <span>

#include "api/handlers.hpp"
#include "api/routes.hpp"

namespace loam::api {

const Device* find_device(const engine::State& state, std::string_view name) {
  if (const Device* device = state.find_device(name)) return device;
  const auto id = DeviceId::parse(name);
  if (!id || id->value > state.devices.size()) return nullptr;
  return &state.device(*id);
}

namespace {

// The most of each that one top view shows.
constexpr std::size_t top_tasks_max = 100;
constexpr std::size_t top_devices_max = 1000;
// Tasks looked at for them: bounds the visit to the loop.
constexpr std::size_t top_visits_max = 2000;

// A live task as the history would have it, as far as the state knows.
TaskRecord record_of(const engine::State& state, const Task& task) {
  TaskRecord record;
  record.id = task.id;
  record.tenant = task.tenant;
  record.spec = *task.spec;
  record.state = task.state;
  record.submitted_at = task.submitted_at;
  record.attempts = task.epoch.value;
  record.run_time = task.attempt_time;
  record.list = record.net = task.charged;
  for (const LeaseId id : task.leases) {
    const Lease& lease = state.leases.at(id);
    if (lease.started()) record.billed_time += lease.billed_until - lease.started_at;
  }
  return record;
}

}  // namespace

namespace {

void add_notes(Backend& backend, std::span<DeviceView> devices) {
  const auto notes = backend.device_notes();
  for (DeviceView& device : devices) {
    const auto found = notes.find(device.uuid);
    if (found != notes.end() && device.note.empty()) device.note = found->second;
  }
}

}  // namespace

TopView top_view(ApiCore& core, const std::optional<TenantId>& only) {
  TopView view;
  const LiveLookup live = [&](LeaseId lease) { return core.backend.live(lease); };
  core.backend.read([&](const engine::State& state, Instant now) {
    view.now = to_text(now);
    for (const Device& device : state.devices) {
      if (view.devices.size() == top_devices_max) break;
      view.devices.push_back(view_of(state, device));
    }
    for (const Tenant& tenant : state.tenants) {
      if (only && tenant.id != *only) continue;
      view.tasks_running += tenant.tasks_running;
      view.tasks_waiting += tenant.tasks_waiting;
    }
    std::size_t visits = 0;
    engine::WaitReasons reasons(state);
    const auto show = [&](const Task& task) {
      if (only && task.tenant != *only) return;
      const bool why = view.tasks.size() < reasons_in_list_max;
      view.tasks.push_back(view_of(state, now, record_of(state, task), live, {why, &reasons}));
    };
    const auto go_on = [&] {
      return view.tasks.size() < top_tasks_max && visits++ < top_visits_max;
    };
    for (const auto& [id, lease] : state.leases) {
      if (!go_on()) break;
      show(state.tasks.at(lease.task));
    }
    for (const auto& [id, task] : state.tasks) {
      if (!go_on()) break;
      if (task.state == TaskState::waiting) show(task);
    }
  });
  add_notes(core.backend, view.devices);
  view.tasks_left_out = std::max<std::int64_t>(
      0, view.tasks_running + view.tasks_waiting - static_cast<std::int64_t>(view.tasks.size()));
  return view;
}

namespace handlers {
namespace {

Error no_device(const std::string& name) {
  return {ErrorKind::not_found, "there is no device '" + name + "'",
          "see the devices with: loam device list"};
}

std::string device_asked(const Call& call) {
  const bool by_name = std::string_view(call.route->pattern).find("{node}") != std::string::npos;
  return by_name ? call.parameter("node") + "/" + call.parameter("index")
                 : call.parameter("device");
}

DeviceList device_list(Backend& backend) {
  DeviceList list;
  std::vector<RefusedDevice> refused = backend.refused_devices();
  backend.read([&](const engine::State& state, Instant) {
    for (const Device& device : state.devices) list.devices.push_back(view_of(state, device));
    std::erase_if(refused, [&](const RefusedDevice& device) {
      return state.device_by_uuid.count(device.uuid) > 0;
    });
  });
  add_notes(backend, list.devices);
  for (const RefusedDevice& device : refused) list.devices.push_back(view_of(device));
  return list;
}

std::optional<DeviceView> device_view(Backend& backend, const std::string& name) {
  std::optional<DeviceView> view;
  backend.read([&](const engine::State& state, Instant) {
    if (const Device* device = find_device(state, name)) view = view_of(state, *device);
  });
  if (view) add_notes(backend, {&*view, 1});
  return view;
}

void set_draining(const CallPtr& call, bool draining) {
  const std::string name = device_asked(*call);
  DeviceId id;
  call->backend().read([&](const engine::State& state, Instant) {
    if (const Device* device = find_device(state, name)) id = device->id;
  });
  if (!id.valid()) return call->fail(no_device(name));
  call->post(DrainDevice{id, draining}, [call](const std::string& subject) -> Result<std::string> {
    const auto view = device_view(call->backend(), subject);
    if (!view) return no_device(subject);
    return to_json(*view);
  });
}

}  // namespace

void list_devices(const CallPtr& call) {
  call->answer(to_json(device_list(call->backend())));
}

void discover_devices(const CallPtr& call) {
  if (const auto done = call->backend().discover(); !done) return call->fail(done.error());
  call->answer(to_json(device_list(call->backend())));
}

void calibrate_device(const CallPtr& call) {
  const std::string name = device_asked(*call);
  std::string uuid;
  if (const auto view = device_view(call->backend(), name)) uuid = view->uuid;
  for (const RefusedDevice& device : call->backend().refused_devices()) {
    if (device.uuid == name || device.name == name) uuid = device.uuid;
  }
  if (uuid.empty()) return call->fail(no_device(name));
  if (call->core->calibrating.exchange(true)) {
    return call->fail(Error{ErrorKind::conflict, "a device is being calibrated already",
                            "wait for it to end: two measurements would disturb one another"});
  }
  call->core->metrics.on_request(200);
  http::Stream stream = call->responder.begin_events();
  const auto done = call->backend().calibrate(uuid, [&](double fraction, const std::string& step) {
    stream.send({"progress", to_json(ProgressView{step, fraction}), {}});
  });
  call->core->calibrating = false;
  const auto view = device_view(call->backend(), uuid);
  call->keep(done && view ? std::optional(to_json(*view)) : std::nullopt);
  if (!done) {
    stream.send({"problem", to_json(problem_of(done.error())), {}});
  } else if (!view) {
    stream.send({"problem", to_json(problem_of(no_device(uuid))), {}});
  } else {
    stream.send({"done", to_json(*view), {}});
  }
  stream.finish();
}

void drain_device(const CallPtr& call) {
  set_draining(call, true);
}

void undrain_device(const CallPtr& call) {
  set_draining(call, false);
}

}  // namespace handlers
}  // namespace loam::api
