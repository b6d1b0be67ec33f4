// The shapes of the HTTP API, shared by its two sides. Quantities people type travel as the text
// that they type ("25", "10GiB", "2h", "0.3"); answers carry both numbers for programs (unit last
// in the name) and exact decimal text for money. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loam::api {

struct MountRequest {
  std::string source;
  std::string target;
  bool read_only = true;
};
BOOST_DESCRIBE_STRUCT(MountRequest, (), (source, target, read_only))

// POST /v1/quote and POST /v1/tasks. What is left out gets the default that the quote shows.
struct TaskRequest {
  std::string tenant;  // may be left out by a member of one tenant
  std::string name;
  std::vector<std::string> command;
  std::string image;
  std::string working_directory;
  std::vector<MountRequest> mounts;
  std::map<std::string, std::string> env;      // variables of the process
  std::map<std::string, std::string> secrets;  // variable -> secret reference
  std::vector<std::int64_t> ports;
  std::optional<std::string> deadline;  // UTC instant
  // Of a spot task with a deadline: reserve, uniform_progress or greedy; to save and to load.
  std::string spot_policy = "reserve";
  std::optional<std::string> changeover;  // default: 1m
  std::string recurrence;
  std::int64_t segments = 1;
  std::int64_t gang = 1;
  std::optional<std::string> ce;  // "40"; "auto:40": what earlier runs of its name used, at most 40
  std::optional<std::string> share;
  std::optional<std::string> memory;
  std::optional<std::string> bandwidth;
  std::int64_t devices = 1;
  std::string device;
  std::string device_type;
  std::string region;
  std::vector<std::string> labels;  // the node bears all of these
  std::string work_class = "general";
  std::string isolation = "any";
  std::string mode = "strict";
  std::optional<std::string> cpu;
  std::optional<std::string> host_memory;
  std::string project = "default";
  std::string environment = "default";  // attribution: production, test, …
  std::string model;                    // "name", or "name@version"
  std::map<std::string, std::string> tags;
  std::string role = "auxiliary";             // of a hybrid task: critical ones run on demand
  std::string group;                          // whose cost is shown together
  std::optional<std::string> purchase_model;  // default: on_demand, or reservation with one
  std::string tariff = "flat";
  std::string service_class = "standard";
  std::string queue;
  std::optional<std::string> time;      // longest run time
  std::optional<std::string> expected;  // run time thought likely, for the quote; default: time
  std::optional<std::string> grace;
  std::int64_t restarts_max = 0;
  std::string reservation;                  // on which it runs, such as rsv-1
  std::optional<std::string> wait_at_most;  // to run for the first time; then it has expired
  std::int64_t backups = 0;                 // copies kept of the checkpoints that it goes on from
};
BOOST_DESCRIBE_STRUCT(TaskRequest, (),
                      (tenant, name, command, image, working_directory, mounts, env, secrets, ports,
                       deadline, spot_policy, changeover, recurrence, segments, gang, ce, share,
                       memory, bandwidth, devices, device, device_type, region, labels, work_class,
                       isolation, mode, cpu, host_memory, project, environment, model, tags, role,
                       group, purchase_model, tariff, service_class, queue, time, expected, grace,
                       restarts_max, reservation, wait_at_most, backups))

struct QuoteView {
  std::string tenant;
  std::string device;
  std::string device_type;
  std::int64_t devices = 1;     // slices in all: members × devices
  double share = 0;             // of each device, 0–1; for people and scripts, never for money
  std::int64_t memory_mib = 0;  // of each
  std::string ce;               // of all together
  std::string billable_ce;
  std::string ce_per_gibibyte;
  std::string currency;
  std::string unit_price;  // list, per CE-hour, or per task
  bool per_task = false;
  std::string discount_percent;  // the tenant's and the rate card's
  std::string per_hour;          // net
  std::string expected;          // net, for the time expected
  std::string best;              // the same at the cheapest price of the card
  std::string worst;             // the longest run at the dearest price known
  std::string tax_percent;       // on top of these
  std::string expected_with_tax;
  std::string best_with_tax;
  std::string worst_with_tax;
  std::string at_most;  // what is set aside: the worst, with tax
  std::string rule;     // how it is billed
  std::int64_t expected_ms = 0;
  std::int64_t limit_ms = 0;
  bool starts_now = false;
  std::string waits_for;
  // While there is no room: by when there is, should all that runs use its whole time.
  std::optional<std::string> room_by;
  // Of a spot task with a deadline: when it is bought on demand should no spot come before.
  std::optional<std::string> turns_at;
  std::string purchase_model;
  std::string tariff;
  std::string service_class;
  std::string isolation;
  // From what finished tasks of its name used: what would do, and the figures in words.
  std::optional<std::string> suggested_ce;
  std::string suggestion;
  std::string takes;  // of CE left to earlier runs: how much and why, in words
  // Of an oversubscribed device: what it gets at the least, in words; empty: all of its share.
  std::string promise;
};
BOOST_DESCRIBE_STRUCT(QuoteView, (),
                      (tenant, device, device_type, devices, share, memory_mib, ce, billable_ce,
                       ce_per_gibibyte, currency, unit_price, per_task, discount_percent, per_hour,
                       expected, best, worst, tax_percent, expected_with_tax, best_with_tax,
                       worst_with_tax, at_most, rule, expected_ms, limit_ms, starts_now, waits_for,
                       room_by, turns_at, purchase_model, tariff, service_class, isolation,
                       suggested_ce, suggestion, takes, promise))

struct TaskView {
  std::string id;
  std::string name;
  std::string tenant;
  std::string state;    // waiting, starting, running, stopping, paused, finished
  std::string outcome;  // none until finished
  std::int64_t exit_code = 0;
  std::string reason;  // how it ended, or why it waits
  std::vector<std::string> command;
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::map<std::string, std::string> tags;
  std::string role;
  std::string group;
  std::string device;  // of the last lease
  std::string device_type;
  std::string isolation;       // given: software, hardware, or advisory where no sandbox binds it
  std::string isolation_note;  // while it runs: why not better
  double share = 0;            // promised, unless `promise` says less
  std::optional<double> share_measured;  // of the device's time while it ran; absent until measured
  std::string ce;
  std::string billable_ce;
  std::int64_t memory_mib = 0;
  std::optional<std::string> submitted_at;
  std::optional<std::string> started_at;
  std::optional<std::string> finished_at;
  std::int64_t limit_ms = 0;
  std::int64_t run_ms = 0;     // all attempts, until now
  std::int64_t billed_ms = 0;  // in usage records, until the last full hour or the end
  std::int64_t attempts = 0;
  std::string currency;
  std::string cost;  // net, until now
  std::string cost_with_tax;
  std::string held;
  std::string purchase_model;
  std::string tariff;
  std::optional<std::string> output;  // what it says it made, of its own unit; attempts added up
  std::string reservation;            // on which it runs
  std::optional<std::string> expires_at;  // while it waits: then it waits no longer
  std::string takes;                      // of CE left to earlier runs: how much and why, in words
  std::int64_t backups = 0;        // copies to be kept of the checkpoints that it goes on from
  std::int64_t backed_up_mib = 0;  // held in them now
  // While it has an oversubscribed device: what it gets at the least, in words, of each.
  std::string promise;
};
BOOST_DESCRIBE_STRUCT(TaskView, (),
                      (id, name, tenant, state, outcome, exit_code, reason, command, project,
                       environment, model, model_version, tags, role, group, device, device_type,
                       isolation, isolation_note, share, share_measured, ce, billable_ce,
                       memory_mib, submitted_at, started_at, finished_at, limit_ms, run_ms,
                       billed_ms, attempts, currency, cost, cost_with_tax, held, purchase_model,
                       tariff, output, reservation, expires_at, takes, backups, backed_up_mib,
                       promise))

struct LeaseSliceView {
  std::string device;  // node/index
  double share = 0;    // of it
  std::int64_t memory_mib = 0;
};
BOOST_DESCRIBE_STRUCT(LeaseSliceView, (), (device, share, memory_mib))

// What one attempt at a task held, and what it used of that.
struct LeaseView {
  std::string id;
  std::string task;
  std::string name;  // of the task
  std::string tenant;
  std::vector<LeaseSliceView> slices;
  double share = 0;  // of all slices together
  // Of the devices' time, added up, in the time asked for; absent where nobody measured it.
  std::optional<double> share_measured;
  std::string ce;
  std::string billable_ce;
  std::string isolation;
  std::string queued_at;  // since when the task had waited for it
  std::string granted_at;
  std::optional<std::string> started_at;
  std::optional<std::string> ended_at;
  std::int64_t run_ms = 0;  // until now
  std::string outcome;      // none while it lives
  std::string stop_reason;  // why it was asked to end, or none
  std::string currency;
  std::string cost;                   // net, until now
  std::optional<std::string> output;  // what it says it made
};
BOOST_DESCRIBE_STRUCT(LeaseView, (),
                      (id, task, name, tenant, slices, share, share_measured, ce, billable_ce,
                       isolation, queued_at, granted_at, started_at, ended_at, run_ms, outcome,
                       stop_reason, currency, cost, output))

// GET /v1/leases.
struct LeasePage {
  std::vector<LeaseView> leases;  // newest first
  std::string next;               // pass as ?after= for the following page; empty at the end
};
BOOST_DESCRIBE_STRUCT(LeasePage, (), (leases, next))

// A device that was in service over [from, to) and worth so much.
struct CapacityPieceView {
  std::string device;  // node/index
  std::string from;
  std::string to;
  std::string ce;  // general
};
BOOST_DESCRIBE_STRUCT(CapacityPieceView, (), (device, from, to, ce))

// GET /v1/capacity.
struct CapacityList {
  std::string from;
  std::string to;                         // now, where later was asked for
  std::vector<CapacityPieceView> pieces;  // by device, then in order of time
};
BOOST_DESCRIBE_STRUCT(CapacityList, (), (from, to, pieces))

struct TaskPage {
  std::vector<TaskView> tasks;  // newest first
  std::string next;             // pass as ?after= for the following page; empty at the end
};
BOOST_DESCRIBE_STRUCT(TaskPage, (), (tasks, next))

struct DeviceView {
  std::string id;
  std::string name;  // node/index
  std::string uuid;
  std::string type;
  std::string backend;
  std::string driver_version;
  std::string state;  // ready, draining, lost, or refused (known but not attached: see note)
  std::string note;
  std::int64_t memory_mib = 0;
  std::int64_t memory_used_mib = 0;
  double used = 0;      // share lent to leases; above 1 where it is oversubscribed
  double promised = 0;  // of that, what they get at the least, when all are busy: 0–1
  std::int64_t memory_promised_mib = 0;  // likewise of memory_used_mib
  std::int64_t leases = 0;
  std::string ce;  // general
  std::string ce_train;
  std::string ce_prefill;
  std::string ce_decode;
  std::string factors_source;
  // Devices of a node with the same one are joined by a fast link; empty: unknown, or to none.
  std::string link_group;
  std::optional<std::int64_t> numa_node;
};
BOOST_DESCRIBE_STRUCT(DeviceView, (),
                      (id, name, uuid, type, backend, driver_version, state, note, memory_mib,
                       memory_used_mib, used, promised, memory_promised_mib, leases, ce, ce_train,
                       ce_prefill, ce_decode, factors_source, link_group, numa_node))

struct TenantRequest {
  std::string name;
  std::string payment = "prepaid";
  std::string currency = "USD";
  std::optional<std::string> credit_limit;
  std::optional<std::string> discount_percent;
  std::optional<std::string> quota_ce;
  std::optional<std::string> quota_memory;
  std::optional<std::int64_t> quota_tasks;
  std::optional<std::int64_t> quota_queued;
  std::optional<std::string> quota_devices;   // parts of devices: "2.5"
  std::optional<std::string> quota_longest;   // longest time limit of a task: "24h"
  std::optional<std::string> quota_ce_hours;  // of a calendar month, UTC: "1000"
  std::optional<std::string> cohort;          // whose idle quota it may use
  std::optional<std::string> borrow_percent;
  std::optional<std::string> lend_percent;
  std::optional<std::string> billing_zone;  // whose months its invoices are of: "Europe/Berlin"
  std::optional<std::string> invoicing;     // monthly, or on_demand
};
BOOST_DESCRIBE_STRUCT(TenantRequest, (),
                      (name, payment, currency, credit_limit, discount_percent, quota_ce,
                       quota_memory, quota_tasks, quota_queued, quota_devices, quota_longest,
                       quota_ce_hours, cohort, borrow_percent, lend_percent, billing_zone,
                       invoicing))

struct TenantView {
  std::string id;
  std::string name;
  std::string payment;
  std::string currency;
  std::string wallet;  // free
  std::string held;
  std::string available;  // wallet and credit
  std::string credit_limit;
  std::string discount_percent;
  std::optional<std::string> quota_ce;
  std::optional<std::string> quota_memory;
  std::optional<std::int64_t> quota_tasks;
  std::optional<std::int64_t> quota_queued;
  std::optional<std::string> quota_devices;   // parts of devices: "2.5"
  std::optional<std::string> quota_longest;   // longest time limit of a task: "24h"
  std::optional<std::string> quota_ce_hours;  // of a calendar month, UTC: "1000"
  std::optional<std::string> cohort;          // whose idle quota it may use
  std::optional<std::string> borrow_percent;
  std::optional<std::string> lend_percent;
  std::string ce_used;
  std::int64_t tasks_running = 0;
  std::int64_t tasks_waiting = 0;
  std::string billing_zone;
  std::string invoicing;
};
BOOST_DESCRIBE_STRUCT(TenantView, (),
                      (id, name, payment, currency, wallet, held, available, credit_limit,
                       discount_percent, quota_ce, quota_memory, quota_tasks, quota_queued,
                       quota_devices, quota_longest, quota_ce_hours, cohort, borrow_percent,
                       lend_percent, ce_used, tasks_running, tasks_waiting, billing_zone,
                       invoicing))

// ---- shapes around the nouns --------------------------------------------------------------

struct HealthView {
  std::string status;  // ok, degraded: the journal cannot be written, so new work is refused
  std::string version;
  std::string started_at;
  std::string now;
  bool journal_ok = false;
};
BOOST_DESCRIBE_STRUCT(HealthView, (), (status, version, started_at, now, journal_ok))

struct WhoAmIView {
  std::string name;    // "uid:0", or the token's name
  std::string via;     // socket, token
  std::string role;    // admin, operator, finance, member
  std::string tenant;  // of a member
};
BOOST_DESCRIBE_STRUCT(WhoAmIView, (), (name, via, role, tenant))

// A piece of a task's log; one event of a followed log has the same shape.
struct LogView {
  std::string stream;            // stdout, stderr
  std::int64_t offset = 0;       // of the first byte in `data`
  std::int64_t next_offset = 0;  // where the following piece begins
  std::string encoding;          // utf8, or base64 where the bytes are not UTF-8
  std::string data;
  bool truncated = false;  // bytes before `offset` that were asked for are gone (rotated away)
  bool ended = false;      // nothing will follow
};
BOOST_DESCRIBE_STRUCT(LogView, (), (stream, offset, next_offset, encoding, data, truncated, ended))

struct DeviceList {
  std::vector<DeviceView> devices;
};
BOOST_DESCRIBE_STRUCT(DeviceList, (), (devices))

// One step of a calibration; the last event of the stream is `done` with a DeviceView.
struct ProgressView {
  std::string step;
  double fraction = 0;  // 0–1
};
BOOST_DESCRIBE_STRUCT(ProgressView, (), (step, fraction))

struct TenantList {
  std::vector<TenantView> tenants;
};
BOOST_DESCRIBE_STRUCT(TenantList, (), (tenants))

// PATCH /v1/tenants/{name}: what is left out stays; a quota of "none" is no limit, a cohort of
// "none" is none.
struct TenantPatch {
  std::optional<std::string> payment;
  std::optional<std::string> credit_limit;
  std::optional<std::string> discount_percent;
  std::optional<std::string> quota_ce;
  std::optional<std::string> quota_memory;
  std::optional<std::string> quota_tasks;
  std::optional<std::string> quota_queued;
  std::optional<std::string> quota_devices;   // parts of devices: "2.5"
  std::optional<std::string> quota_longest;   // longest time limit of a task: "24h"
  std::optional<std::string> quota_ce_hours;  // of a calendar month, UTC: "1000"
  std::optional<std::string> cohort;          // whose idle quota it may use
  std::optional<std::string> borrow_percent;
  std::optional<std::string> lend_percent;
  std::optional<std::string> billing_zone;  // whose months its invoices are of: "Europe/Berlin"
  std::optional<std::string> invoicing;     // monthly, or on_demand
};
BOOST_DESCRIBE_STRUCT(TenantPatch, (),
                      (payment, credit_limit, discount_percent, quota_ce, quota_memory, quota_tasks,
                       quota_queued, quota_devices, quota_longest, quota_ce_hours, cohort,
                       borrow_percent, lend_percent, billing_zone, invoicing))

struct TokenRequest {
  std::string name;
  std::string role;    // admin, operator, finance, member
  std::string tenant;  // with member only
};
BOOST_DESCRIBE_STRUCT(TokenRequest, (), (name, role, tenant))

struct TokenView {
  std::string name;
  std::string role;
  std::string tenant;
  std::string created_at;
  std::optional<std::string> revoked_at;
  std::string token;  // the secret: in the answer that made it only, else empty
};
BOOST_DESCRIBE_STRUCT(TokenView, (), (name, role, tenant, created_at, revoked_at, token))

struct TokenList {
  std::vector<TokenView> tokens;
};
BOOST_DESCRIBE_STRUCT(TokenList, (), (tokens))

struct BackupRequest {
  std::string path;  // absolute, on the daemon's machine; must not exist
};
BOOST_DESCRIBE_STRUCT(BackupRequest, (), (path))

struct BackupView {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t sequence = 0;  // of the last journal record in it
};
BOOST_DESCRIBE_STRUCT(BackupView, (), (path, bytes, sequence))

struct ReloadView {
  std::string summary;  // what changed, in words
};
BOOST_DESCRIBE_STRUCT(ReloadView, (), (summary))

// GET /v1/top, and one event of its stream.
struct TopView {
  std::string now;
  std::vector<DeviceView> devices;
  std::vector<TaskView> tasks;  // those that hold a device, then those that wait; oldest first
  std::int64_t tasks_running = 0;
  std::int64_t tasks_waiting = 0;
  std::int64_t tasks_left_out = 0;  // beyond the most that is shown
};
BOOST_DESCRIBE_STRUCT(TopView, (),
                      (now, devices, tasks, tasks_running, tasks_waiting, tasks_left_out))

// RFC 9457. `code` is stable, `next_step` is ours.
struct Problem {
  std::string type = "about:blank";
  std::string title;
  std::int64_t status = 500;
  std::string detail;
  std::string code;
  std::string next_step;
};
BOOST_DESCRIBE_STRUCT(Problem, (), (type, title, status, detail, code, next_step))

}  // namespace loam::api
