// Snapshot: a plain copy of the state's tables, cheap to take (strings of devices are shared), to
// be encoded elsewhere while the loop goes on. Indexes are rebuilt on loading. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/state.hpp"

namespace loam::engine {

struct OpenChargesImage {
  TenantId tenant;
  Instant from;
  std::vector<InvoiceLine> lines;
};
BOOST_DESCRIBE_STRUCT(OpenChargesImage, (), (tenant, from, lines))

struct BalanceImage {
  Account account;
  Money amount;
};
BOOST_DESCRIBE_STRUCT(BalanceImage, (), (account, amount))

struct RequestImage {
  std::string scope;
  std::string key;
  std::string fingerprint;
  std::string subject;
  Instant at;
};
BOOST_DESCRIBE_STRUCT(RequestImage, (), (scope, key, fingerprint, subject, at))

struct StateImage {
  std::int64_t sequence = 0;
  Instant now;
  std::int64_t next_task = 1;
  std::int64_t next_lease = 1;
  std::int64_t next_usage = 1;
  std::int64_t next_transaction = 1;
  std::int64_t next_invoice = 1;
  std::vector<Node> nodes;
  std::vector<Device> devices;
  std::vector<Tenant> tenants;
  std::vector<Task> tasks;
  std::vector<Lease> leases;
  std::vector<RateCard> rate_cards;
  std::vector<BalanceImage> balances;
  std::vector<OpenChargesImage> open_charges;
  std::vector<RequestImage> requests;
};
BOOST_DESCRIBE_STRUCT(StateImage, (),
                      (sequence, now, next_task, next_lease, next_usage, next_transaction,
                       next_invoice, nodes, devices, tenants, tasks, leases, rate_cards, balances,
                       open_charges, requests))

// O(size of the state); the pause of a snapshot.
StateImage image_of(const State& state);
State state_of(StateImage image);

// The text a snapshot is stored as; versioned like events.
inline constexpr int snapshot_version = 1;
std::string encode(const StateImage& image);
Result<StateImage> decode_image(std::string_view text, int version);

// A digest of the whole state: equal states have equal digests on every machine (FNV-1a over the
// encoded image). For replay checks, not for security.
std::uint64_t digest(const State& state);

}  // namespace loam::engine
