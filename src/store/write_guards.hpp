// Triggers that keep other programs from writing to the journal's tables: whoever opens the file
// with a tool of their own reads what they like, and is told why they cannot write. loamd's own
// connections run no triggers, so these cost them nothing.
// Not pure: a database.
#pragma once

#include "store/sqlite.hpp"

namespace loam::store {

// Puts one on every table for each way of writing, where it is not there. In the transaction of
// the caller.
Result<void> put_write_guards(Database& database);

// How many of them are missing: all in a file of an older loam, none in one of ours that nobody
// has tampered with.
struct GuardsMissing {
  std::int64_t missing = 0;
  std::int64_t of = 0;
};
Result<GuardsMissing> missing_write_guards(Database& database);

}  // namespace loam::store
