// Salvage: a damaged journal file whose records are all still readable is copied into a new file,
// and its projections are written anew. Not pure: files.
#pragma once

#include <string>

#include "base/result.hpp"

namespace loam::store {

// Replaces the file at `path` if, and only if, every record can be read and nothing says that
// there were more; the damaged file is kept beside it. Returns what was done, in words.
// Otherwise ErrorKind::corrupt, and nothing was changed. Requires that nobody has the file open.
Result<std::string> salvage(const std::string& path, const std::string& damage);

}  // namespace loam::store
