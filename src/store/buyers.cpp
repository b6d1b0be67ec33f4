#include "store/buyers.hpp"

#include <filesystem>

namespace loam::store {
namespace {

// "LBUY" in ASCII: SQLite's application_id of this file.
constexpr std::int64_t buyers_application_id = 0x4c425559;
constexpr std::int64_t buyers_version = 1;

constexpr const char* buyers_sql = R"sql(
CREATE TABLE buyers(
  tenant_id INTEGER NOT NULL,
  from_ms INTEGER NOT NULL,
  name TEXT NOT NULL,
  address TEXT NOT NULL,
  tax_id TEXT NOT NULL,
  PRIMARY KEY(tenant_id, from_ms)
) STRICT, WITHOUT ROWID;
)sql";

Result<void> make_tables(Database& database) {
  LOAM_CHECK(database.execute("BEGIN IMMEDIATE"));
  LOAM_CHECK(database.execute(buyers_sql));
  LOAM_CHECK(database.execute("PRAGMA application_id=" + std::to_string(buyers_application_id)));
  LOAM_CHECK(database.execute("PRAGMA user_version=" + std::to_string(buyers_version)));
  return database.execute("COMMIT");
}

std::int64_t number(TenantId tenant) {
  return static_cast<std::int64_t>(tenant.value);
}

}  // namespace

Result<BuyerStore> BuyerStore::open(const std::string& path) {
  std::error_code fault;
  const bool there = std::filesystem::exists(path, fault);
  LOAM_TRY(database, Database::open(path, there ? OpenMode::read_write : OpenMode::create));
  // What is forgotten is overwritten on the disk too.
  LOAM_CHECK(database.execute("PRAGMA secure_delete=ON; PRAGMA synchronous=FULL"));
  LOAM_TRY(application, database.integer("PRAGMA application_id"));
  LOAM_TRY(version, database.integer("PRAGMA user_version"));
  if (application == 0 && version == 0) {
    LOAM_TRY(tables, database.integer("SELECT count(*) FROM sqlite_schema"));
    if (tables == 0) {  // new, or left by a start that was cut short
      LOAM_CHECK(make_tables(database));
      return BuyerStore(std::move(database));
    }
  }
  if (application != buyers_application_id)
    return invalid("'" + path + "' is not a file of loam's about buyers", "move it away");
  if (version > buyers_version) {
    return Error{ErrorKind::unsupported,
                 "'" + path + "' has version " + std::to_string(version) +
                     ", and this loam reads " + std::to_string(buyers_version),
                 "run the newer loam that wrote it"};
  }
  return BuyerStore(std::move(database));
}

Result<Buyer> BuyerStore::at(TenantId tenant, Instant at) {
  const std::lock_guard lock(turn_);
  LOAM_TRY(query, database_.prepare("SELECT name, address, tax_id FROM buyers WHERE tenant_id = ? "
                                    "AND from_ms <= ? ORDER BY from_ms DESC LIMIT 1"));
  query.bind_all(number(tenant), at.ms);
  LOAM_TRY(there, query.step());
  if (!there) return Buyer{};
  return Buyer{std::string(query.text(0)), std::string(query.text(1)), std::string(query.text(2))};
}

Result<void> BuyerStore::set(TenantId tenant, const Buyer& buyer, Instant from) {
  const std::lock_guard lock(turn_);
  LOAM_TRY(insert, database_.prepare("INSERT OR REPLACE INTO buyers VALUES(?,?,?,?,?)"));
  return insert.run(number(tenant), from.ms, std::string_view(buyer.name),
                    std::string_view(buyer.address), std::string_view(buyer.tax_id));
}

Result<void> BuyerStore::forget(TenantId tenant) {
  const std::lock_guard lock(turn_);
  LOAM_TRY(erase, database_.prepare("DELETE FROM buyers WHERE tenant_id = ?"));
  return erase.run(number(tenant));
}

}  // namespace loam::store
