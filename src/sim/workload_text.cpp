// Workloads in words, for whoever reads what a seed has found. Pure.
#include <boost/describe/enum_to_string.hpp>

#include "sim/workload.hpp"

namespace loam::sim {
namespace {

std::string described(const ResourceRequest& request) {
  std::string text =
      request.ce ? " ce=" + to_text(*request.ce) : " share=" + to_text(*request.share);
  if (request.memory) text += " memory=" + to_text(*request.memory);
  if (!request.device.empty()) text += " device=" + request.device;
  if (!request.device_type.empty()) text += " type=" + request.device_type;
  if (request.devices != 1) text += " devices=" + std::to_string(request.devices);
  if (request.mode == ShareMode::burstable) text += " mode=burstable";
  return text + " class=" + boost::describe::enum_to_string(request.work_class, "?");
}

std::string described(const Workload::NodePlan& node) {
  std::string text = "\n  node " + node.name;
  for (const DeviceFacts& device : node.devices) {
    text += " [" + device.type + " " + to_text(device.memory);
    const CeFactors& ce = device.factors;
    for (const MilliCe factor : {ce.general, ce.train, ce.prefill, ce.decode})
      text += " " + to_text(factor);
    text += "]";
  }
  return text;
}

std::string described(const TenantSpec& tenant) {
  const Quota& quota = tenant.quota;
  std::string text = "\n  tenant " + tenant.name;
  if (quota.ce) text += " quota_ce=" + to_text(*quota.ce);
  if (quota.memory) text += " quota_memory=" + to_text(*quota.memory);
  if (quota.devices) text += " quota_devices=" + to_text(*quota.devices);
  if (quota.tasks) text += " quota_tasks=" + std::to_string(*quota.tasks);
  if (quota.ce_hours_month) text += " month=" + decimal_text(*quota.ce_hours_month, 3);
  if (!quota.cohort.empty()) text += " cohort=" + quota.cohort;
  if (quota.borrow) text += " borrow=" + std::to_string(quota.borrow->value);
  if (quota.lend) text += " lend=" + std::to_string(quota.lend->value);
  return text;
}

std::string described(const QueueSettings& queue) {
  std::string text = "\n  queue " + queue.name + " " + queue.discipline +
                     " rank=" + std::to_string(queue.rank) +
                     " weight=" + std::to_string(queue.weight);
  const auto add = [&](const char* name, const auto& value, const auto& to) {
    if (value) text += std::string(" ") + name + "=" + to(*value);
  };
  const auto time = [](Duration value) { return to_text(value); };
  add("safe", queue.safe, time);
  add("preemptions", queue.preemptions, [](std::int64_t value) { return std::to_string(value); });
  add("window", queue.preemption_window, time);
  add("ageing", queue.ageing, time);
  add("overdue", queue.overdue, time);
  for (const std::string& type : queue.device_types) text += " type=" + type;
  return text;
}

std::string described(const TaskSpec& spec) {
  std::string text = described(spec.request) + " gang=" + std::to_string(spec.gang) +
                     " limit=" + to_text(spec.limit) + " grace=" + to_text(spec.grace) +
                     " restarts=" + std::to_string(spec.restarts_max);
  if (!spec.queue.empty()) text += " queue=" + spec.queue;
  if (spec.service_class != "standard") text += " service_class=" + spec.service_class;
  if (spec.purchase_model != PurchaseModel::on_demand)
    text += std::string(" ") + boost::describe::enum_to_string(spec.purchase_model, "?");
  if (spec.deadline) {
    text += " deadline=" + to_text(*spec.deadline) +
            " spot_policy=" + boost::describe::enum_to_string(spec.spot_policy, "?");
  }
  if (spec.wait_at_most) text += " wait_at_most=" + to_text(*spec.wait_at_most);
  if (spec.backups > 0) text += " backups=" + std::to_string(spec.backups);
  if (spec.changeover) text += " changeover=" + to_text(*spec.changeover);
  for (const std::string& word : spec.command) text += " " + word;
  return text;
}

}  // namespace

std::string described(const Workload& plan) {
  std::string text;
  for (const QueueSettings& queue : plan.scheduling.queues) text += described(queue);
  if (const DefragSettings& defrag = plan.scheduling.defrag; defrag.moves_per_hour > 0) {
    text += "\n  defrag moves=" + std::to_string(defrag.moves_per_hour) +
            " at_once=" + std::to_string(defrag.moves_at_once) +
            " lost=" + to_text(defrag.lost_work_max);
  }
  if (const Oversubscription& lent = plan.scheduling.oversubscription; lent != Oversubscription{}) {
    text += "\n  oversubscribe ce=" + factor_text(lent.ce_permille) +
            " memory=" + factor_text(lent.memory_permille);
  }
  if (plan.scheduling.hold_expires)
    text += "\n  hold_expires " + to_text(*plan.scheduling.hold_expires);
  for (const Workload::TenantPlan& tenant : plan.tenants) text += described(tenant.spec);
  for (const Workload::NodePlan& node : plan.nodes) text += described(node);
  for (const Act& act : plan.acts) {
    text += "\n  at " + to_text(act.at) + " " + name_of(act.kind);
    const bool asks = act.kind == ActKind::submit || act.kind == ActKind::reserve;
    if (asks) {
      text += " " + act.spec.name + " tenant" + std::to_string(act.which + 1) + described(act.spec);
    }
    if (!asks || act.amount != 0) {
      text += (asks ? " " : " " + std::to_string(act.which) + " ") + std::to_string(act.amount);
    }
  }
  return text;
}

}  // namespace loam::sim
