// Who tenants are on their invoices: personal data, so in a file of its own beside the journal,
// which never changes. An invoice names its buyer by tenant and time. Not pure: files.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "domain/ids.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

struct Buyer {
  std::string name;
  std::string address;
  std::string tax_id;

  friend bool operator==(const Buyer&, const Buyer&) = default;
};

// Thread-safe. Durable on return.
class BuyerStore {
 public:
  // Makes the file (mode 0600) where it is missing. ErrorKind::invalid_argument for a file that is
  // not ours, unsupported for one of a newer loam.
  static Result<BuyerStore> open(const std::string& path);
  BuyerStore(BuyerStore&& other) noexcept : database_(std::move(other.database_)) {}

  // Who it was at `at`; an empty one where nobody said.
  Result<Buyer> at(TenantId tenant, Instant at);
  // From `from` on; what was said before stays for the time before.
  Result<void> set(TenantId tenant, const Buyer& buyer, Instant from);
  // All that was ever said of it.
  Result<void> forget(TenantId tenant);

 private:
  explicit BuyerStore(Database database) : database_(std::move(database)) {}

  std::mutex turn_;
  Database database_;
};

}  // namespace loam::store
