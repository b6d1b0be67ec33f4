// The API's shapes of reservations. Part of api/money_types.hpp. Pure.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace loam::api {

// POST /v1/reservations and POST /v1/reservations/quote: what is locked, asked for as a task asks
// for it, and for when.
struct ReservationRequest {
  std::string tenant;                 // may be left out by a member of one tenant
  std::optional<std::string> from;    // UTC instant; default: now
  std::optional<std::string> to;      // UTC instant, not included; this, or `length`
  std::optional<std::string> length;  // such as 4h, from `from` on
  std::int64_t gang = 1;
  std::optional<std::string> ce;
  std::optional<std::string> share;
  std::optional<std::string> memory;
  std::optional<std::string> bandwidth;
  std::int64_t devices = 1;
  std::string device;
  std::string device_type;
  std::string region;
  std::vector<std::string> labels;
  std::string work_class = "general";
  std::string isolation = "any";
  std::string mode = "strict";
  std::optional<std::string> cpu;
  std::optional<std::string> host_memory;
  std::string project = "default";  // whose cost is what is not used
  std::string environment = "default";
  std::string model;  // "name", or "name@version"
  std::map<std::string, std::string> tags;
  std::string tariff = "flat";
  std::string queue;
};
BOOST_DESCRIBE_STRUCT(ReservationRequest, (),
                      (tenant, from, to, length, gang, ce, share, memory, bandwidth, devices,
                       device, device_type, region, labels, work_class, isolation, mode, cpu,
                       host_memory, project, environment, model, tags, tariff, queue))

struct ReservationQuoteView {
  std::string tenant;
  std::string currency;
  std::string from;
  std::string to;
  std::string devices;  // where it would be: "n1/0 0.6, n1/1 1", with the share of each
  std::string ce;
  std::string billable_ce;
  std::string isolation;
  std::string unit_price;      // list, per CE-hour, when it begins
  std::string per_hour;        // net, then
  std::string used;            // net, of the whole of it, used in full
  std::string unused;          // the same, not used at all
  std::string unused_percent;  // of the price, for what is not used
  std::string held;            // what is set aside: the dearest it can be, with tax
};
BOOST_DESCRIBE_STRUCT(ReservationQuoteView, (),
                      (tenant, currency, from, to, devices, ce, billable_ce, isolation, unit_price,
                       per_hour, used, unused, unused_percent, held))

struct ReservationView {
  std::string id;
  std::string tenant;
  std::string currency;
  std::string state;  // coming, in_force, over, cancelled, unpaid, lost
  std::string ce;     // billable
  std::string devices;
  std::string from;
  std::string to;  // where it ends before its time: then
  std::string isolation;
  std::string tariff;
  std::string project;
  std::string environment;
  std::string model;
  std::string model_version;
  std::string charged_to;  // what was not used of it is charged up to then
  std::string held;
  std::string reason;  // of its end, or of its last move
  std::map<std::string, std::string> tags;
};
BOOST_DESCRIBE_STRUCT(ReservationView, (),
                      (id, tenant, currency, state, ce, devices, from, to, isolation, tariff,
                       project, environment, model, model_version, charged_to, held, reason, tags))

struct ReservationList {
  std::vector<ReservationView> reservations;  // by id, ended ones too
};
BOOST_DESCRIBE_STRUCT(ReservationList, (), (reservations))

}  // namespace loam::api
