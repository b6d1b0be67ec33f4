// The deliveries of notices that are not done, in a file that outlives the daemon: JSON, mode 0600
// (channels may hold secrets), replaced as a whole. Notices are rare: the file is small.
#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::daemon {

struct PendingNotice {
  std::int64_t sequence = 0;  // of the journal row that told it; 0: none
  std::string name;           // for the log
  std::string json;
  std::string channel;
  std::int64_t tries = 0;  // made
  Instant due;             // by the wall clock
};
BOOST_DESCRIBE_STRUCT(PendingNotice, (), (sequence, name, json, channel, tries, due))

struct NoticeBox {
  // Journal rows up to here were told; absent before the first.
  std::optional<std::int64_t> told;
  std::vector<PendingNotice> pending;
};
BOOST_DESCRIBE_STRUCT(NoticeBox, (), (told, pending))

// An empty one where there is no file. corrupt: the file is not what was written.
Result<NoticeBox> read_notice_box(const std::string& path);
// Durable on return.
Result<void> write_notice_box(const std::string& path, const NoticeBox& box);

}  // namespace loam::daemon
