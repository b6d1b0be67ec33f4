// Verification of a whole journal file: structure, hash chain, every event, and the books.
// Not pure: reads a file; changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::store {

struct VerifyReport {
  std::string path;
  std::uint64_t records = 0;
  Instant first;  // of the first record; {0} where there is none
  Instant last;
  std::string head;                   // hash of the last record, hexadecimal
  std::vector<std::string> checked;   // what was looked at and found good, in words
  std::vector<std::string> problems;  // what was not; empty: the file is good
  bool good() const { return problems.empty(); }
};

// Also of a journal in use: it sees one moment of it. Cost: a replay into a temporary database.
// An Error only where the file cannot be read as a journal at all.
Result<VerifyReport> verify_journal(const std::string& path);

}  // namespace loam::store
