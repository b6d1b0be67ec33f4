// Backup of a journal in use to one file, and the way back. Not pure: files.
#pragma once

#include <string>

#include "store/verify.hpp"

namespace loam::store {

// Copies one moment of the journal at `journal` to `target` and verifies the copy before it gets
// that name. Appends go on meanwhile. ErrorKind::conflict when `target` is there already.
// For a thread beside the loop's.
Result<VerifyReport> back_up(const std::string& journal, const std::string& target);

enum class Overwrite { refuse, set_aside };

struct Restored {
  VerifyReport report;
  std::string set_aside;  // where the journal that was there went; empty where there was none
};

// Verifies `backup`, then puts a copy of it into the data folder, which no loamd may be using. A
// journal already there is refused (ErrorKind::conflict) or renamed.
Result<Restored> restore(const std::string& backup, const std::string& folder, Overwrite overwrite);

}  // namespace loam::store
