// What each request used, a line of JSON each, for billing to take in. Format: docs/inference.md.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "gateway/ports.hpp"

namespace loam::serving {

std::string to_json_line(const gateway::UsageRecord& record);

class UsageFile final : public gateway::UsageSink {
 public:
  using Log = std::function<void(const std::string& line)>;
  // Appends to the file, which is made where it is not there.
  static Result<std::unique_ptr<UsageFile>> open(const std::string& path, Log log);
  UsageFile(const UsageFile&) = delete;
  UsageFile& operator=(const UsageFile&) = delete;
  ~UsageFile() override;

  // One write, which the kernel keeps should this process die. What cannot be written goes to the
  // log, so that it is not lost.
  void record(const gateway::UsageRecord& record) override;

 private:
  UsageFile(int fd, Log log) : fd_(fd), log_(std::move(log)) {}
  const int fd_;
  const Log log_;
};

}  // namespace loam::serving
