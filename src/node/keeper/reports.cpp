#include "node/keeper/reports.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace loam::node {

namespace {

constexpr off_t file_bytes_max = 4 << 20;
constexpr std::array<std::string_view, 6> kind_names{"hung",   "shortfall", "idle",
                                                     "active", "reclaim",   "overdue"};
constexpr std::size_t line_chars_max = 400;

Error failed(const std::string& what, const std::string& path) {
  return Error{ErrorKind::unavailable, "cannot " + what + " " + path + ": " + std::strerror(errno),
               ""};
}

// Splits off the next word; empty at the end.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <class Number>
bool next_number(std::string_view& line, Number& value) {
  const std::string_view word = next_word(line);
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
  return fault == std::errc{} && end == word.data() + word.size() && !word.empty();
}

}  // namespace

std::string report_line(const KeeperReport& report) {
  std::string line(kind_names[static_cast<std::size_t>(report.kind)]);
  line += " " + report.lease;
  for (const std::int64_t number :
       {std::int64_t{report.device}, std::int64_t{report.lane}, report.from_ns, report.until_ns,
        report.owed_ns, report.used_ns, report.missing_ns})
    line += " " + std::to_string(number);
  return line + " " + std::to_string(report.bytes) + (report.end ? " 1" : " 0");
}

Result<KeeperReport> parse_report(std::string_view line) {
  const auto wrong = [whole = std::string(line.substr(0, line_chars_max))] {
    return invalid("'" + whole + "' is no report of a keeper");
  };
  if (line.size() > line_chars_max || line.ends_with(' ')) return wrong();
  KeeperReport report;
  const std::string_view kind = next_word(line);
  std::size_t index = 0;
  while (index < kind_names.size() && kind_names[index] != kind) ++index;
  if (index == kind_names.size()) return wrong();
  report.kind = static_cast<ReportKind>(index);
  report.lease = next_word(line);
  std::uint32_t end = 0;
  const bool whole = !report.lease.empty() && next_number(line, report.device) &&
                     next_number(line, report.lane) && next_number(line, report.from_ns) &&
                     next_number(line, report.until_ns) && next_number(line, report.owed_ns) &&
                     next_number(line, report.used_ns) && next_number(line, report.missing_ns) &&
                     next_number(line, report.bytes) && next_number(line, end) && line.empty() &&
                     end <= 1 && report.from_ns <= report.until_ns && report.missing_ns >= 0;
  if (!whole) return wrong();
  report.end = end == 1;
  return report;
}

Result<void> ReportWriter::append(const KeeperReport& report) {
  struct stat facts {};
  if (::stat(path_.c_str(), &facts) == 0 && facts.st_size >= file_bytes_max &&
      ::rename(path_.c_str(), (path_ + ".old").c_str()) != 0)
    return failed("rename", path_);
  const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return failed("open", path_);
  const std::string line = report_line(report) + "\n";
  const ssize_t written = ::write(fd, line.data(), line.size());
  const Error fault = failed("write to", path_);
  ::close(fd);
  if (written != static_cast<ssize_t>(line.size())) return fault;
  return {};
}

ReportReader::~ReportReader() {
  if (fd_ >= 0) ::close(fd_);
}

void ReportReader::read_open(std::vector<KeeperReport>& reports) {
  std::array<char, 4096> block;
  ssize_t size = 0;
  while ((size = ::read(fd_, block.data(), block.size())) > 0) {
    rest_.append(block.data(), static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      auto report = parse_report(std::string_view(rest_).substr(begin, end - begin));
      if (report.ok())
        reports.push_back(std::move(report).value());
      else
        ++skipped_;
    }
    rest_.erase(0, begin);
  }
}

Result<std::vector<KeeperReport>> ReportReader::read() {
  std::vector<KeeperReport> reports;
  if (fd_ >= 0) read_open(reports);
  struct stat here {
  }, there{};
  if (::stat(path_.c_str(), &there) != 0) {
    if (errno == ENOENT) return reports;
    return failed("look at", path_);
  }
  if (fd_ >= 0 && ::fstat(fd_, &here) == 0 && here.st_ino == there.st_ino) return reports;
  // A new file: the old one has been read to its end.
  const int fresh = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fresh < 0) return failed("open", path_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = fresh;
  rest_.clear();
  read_open(reports);
  return reports;
}

}  // namespace loam::node
