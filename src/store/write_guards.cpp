#include "store/write_guards.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "store/schema.hpp"

namespace loam::store {
namespace {

constexpr const char* core_tables[] = {"journal", "meta", "snapshots", "snapshot_parts"};
constexpr const char* ways[] = {"INSERT", "UPDATE", "DELETE"};

std::vector<std::string> all_tables() {
  std::vector<std::string> names(std::begin(core_tables), std::end(core_tables));
  for (const ProjectionTable& table : projection_tables()) names.emplace_back(table.name);
  return names;
}

std::string guard_of(const std::string& table, const std::string& way) {
  return "loam_guards_" + table + "_" + way;
}

std::string guard_sql(const std::string& table, const std::string& way) {
  const bool core =
      std::find(std::begin(core_tables), std::end(core_tables), table) != std::end(core_tables);
  const std::string why =
      core ? table + " is written by loamd alone"
           : table +
                 " is a projection of the journal: loamd alone writes it, and would write it anew";
  return "CREATE TRIGGER IF NOT EXISTS " + guard_of(table, way) + " BEFORE " + way + " ON " +
         table + " BEGIN SELECT RAISE(ABORT, '" + why + "'); END;";
}

}  // namespace

Result<void> put_write_guards(Database& database) {
  std::string sql;
  for (const std::string& table : all_tables()) {
    for (const char* way : ways) sql += guard_sql(table, way);
  }
  return database.execute(sql);
}

Result<GuardsMissing> missing_write_guards(Database& database) {
  std::set<std::string> there;
  LOAM_TRY(found, database.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'"));
  while (true) {
    LOAM_TRY(row, found.step());
    if (!row) break;
    there.insert(std::string(found.text(0)));
  }
  GuardsMissing counted;
  for (const std::string& table : all_tables()) {
    for (const char* way : ways) {
      ++counted.of;
      if (there.count(guard_of(table, way)) == 0) ++counted.missing;
    }
  }
  return counted;
}

}  // namespace loam::store
