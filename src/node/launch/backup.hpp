// Copies of a task's checkpoint directory, made before it goes on from there, which it cannot write
// to. Shell: files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace loam::node {

// Copies what is below `checkpoint` to `backups`/`epoch`, durably and whole or not at all, and then
// deletes the oldest copies but `most`. Nothing where there is a copy of that epoch already, or
// nothing to copy. Links are copied, not followed. Requires that nobody writes there meanwhile.
// Errors: os_error(), and what is neither a file, a directory nor a link. Cost: the bytes copied;
// none on file systems that share them.
Result<void> keep_backup(const std::string& checkpoint, const std::string& backups,
                         std::uint64_t epoch, std::int64_t most);

// Bytes on disk of all copies that there are; nothing where that took longer than `limit_ms` of
// any.
std::optional<std::int64_t> backup_bytes(const std::string& backups, int limit_ms);

}  // namespace loam::node
