#include "app/gateway/usage_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "gateway/api_error.hpp"

namespace loam::serving {
namespace {

class Line {
 public:
  Line& text(std::string_view name, std::string_view value) {
    begin(name);
    out_ += '"';
    gateway::append_escaped(out_, value);
    out_ += '"';
    return *this;
  }
  Line& texts(std::string_view name, const std::map<std::string, std::string>& values) {
    begin(name);
    char between = '{';
    for (const auto& [key, value] : values) {
      out_ += std::exchange(between, ',');
      out_ += '"';
      gateway::append_escaped(out_, key);
      out_ += "\":\"";
      gateway::append_escaped(out_, value);
      out_ += '"';
    }
    out_ += values.empty() ? "{}" : "}";
    return *this;
  }
  Line& number(std::string_view name, std::int64_t value) {
    begin(name);
    out_ += std::to_string(value);
    return *this;
  }
  Line& truth(std::string_view name, bool value) {
    begin(name);
    out_ += value ? "true" : "false";
    return *this;
  }
  std::string end() { return out_ + "}\n"; }

 private:
  void begin(std::string_view name) {
    out_ += out_.empty() ? "{\"" : ",\"";
    out_ += name;
    out_ += "\":";
  }
  std::string out_;
};

const char* name_of(gateway::Work work) {
  return work == gateway::Work::chat         ? "chat"
         : work == gateway::Work::completion ? "completion"
                                             : "embedding";
}

const char* name_of(gateway::UsageOutcome outcome) {
  return outcome == gateway::UsageOutcome::answered      ? "answered"
         : outcome == gateway::UsageOutcome::client_left ? "client_left"
                                                         : "failed";
}

}  // namespace

std::string to_json_line(const gateway::UsageRecord& record) {
  const TokenUsage& usage = record.usage;
  return Line()
      .text("request", record.request)
      .text("arrived", to_text(record.arrived))
      .text("tenant", record.caller.tenant)
      .text("project", record.caller.project)
      .text("environment", record.caller.environment)
      .texts("tags", record.tags)
      .text("key", record.caller.key)
      .text("model", record.model)
      .text("owner", record.owner)
      .text("owner_project", record.owner_attribution.project)
      .text("owner_environment", record.owner_attribution.environment)
      .texts("owner_tags", record.owner_attribution.tags)
      .text("instance", record.instance)
      .text("work", name_of(record.work))
      .text("outcome", name_of(record.outcome))
      .truth("settled", record.settled)
      .number("prompt_tokens", usage.prompt_tokens)
      .number("cached_tokens", usage.cached_tokens)
      .number("generated_tokens", usage.generated_tokens)
      .number("recomputed_tokens", usage.recomputed_tokens)
      .number("engine_time_us", static_cast<std::int64_t>(usage.engine_time_us))
      .number("wasted_prompt_tokens", record.wasted.prompt_tokens)
      .number("wasted_generated_tokens", record.wasted.generated_tokens)
      .number("to_first_token_ms", record.to_first_token.ms)
      .number("lasted_ms", record.lasted.ms)
      .end();
}

Result<std::unique_ptr<UsageFile>> UsageFile::open(const std::string& path, Log log) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (fd < 0) {
    return Error{ErrorKind::unavailable, "cannot write " + path + ": " + std::strerror(errno),
                 "set usage_file to a file in a folder that is there"};
  }
  return std::unique_ptr<UsageFile>(new UsageFile(fd, std::move(log)));
}

UsageFile::~UsageFile() {
  ::close(fd_);
}

void UsageFile::record(const gateway::UsageRecord& record) {
  const std::string line = to_json_line(record);
  if (::write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  log_("usage not written (" + std::string(std::strerror(errno)) + "): " + line);
}

}  // namespace loam::serving
