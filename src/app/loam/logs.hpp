// `loam logs`: a task's output, as it is or as it grows.
#pragma once

#include <map>
#include <string>

#include "api/client.hpp"
#include "app/loam/session.hpp"

namespace loam::cli {

// How much of a task's output was rotated away before it could be read.
class RotatedAway {
 public:
  void see(const api::LogChunk& chunk);
  // "148 MiB of stdout were …", once for each stream; empty: nothing is missing.
  std::string words(const std::string& task) const;

 private:
  struct Stream {
    std::int64_t next = 0;  // offset
    std::int64_t missing = 0;
  };
  std::map<std::string, Stream> streams_;
};

Result<int> run_logs(Session& session, const Arguments& arguments);

}  // namespace loam::cli
