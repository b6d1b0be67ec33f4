#include "node/launch/inside.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "node/launch/clock.hpp"
#include "node/launch/file.hpp"

namespace loam::node {

namespace {

constexpr int exit_broken = 125;  // the process itself failed, not the program

void send(int channel, const InsideReport& report) {
  while (::send(channel, &report, sizeof report, MSG_NOSIGNAL) < 0 && errno == EINTR) {
  }
}

InsideReport trouble(InsideReport::Step step, int error_number) {
  InsideReport report;
  report.kind = InsideReport::not_started;
  report.step = step;
  report.value = error_number;
  return report;
}

std::string_view search_path(const InsideTask& task) {
  constexpr std::string_view name = "PATH=";
  for (const auto& variable : task.environment) {
    if (variable.starts_with(name)) return std::string_view(variable).substr(name.size());
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

// The file to execute, or an error number in `fault`. As execvp(3), with the task's own PATH; a
// file that is there but may not be run wins over "not found".
std::string find_program(const InsideTask& task, int& fault) {
  const std::string& name = task.argv.front();
  fault = 0;
  if (name.find('/') != std::string::npos) return name;
  fault = ENOENT;
  std::string_view rest = search_path(task);
  while (true) {
    const auto end = rest.find(':');
    const std::string_view directory = rest.substr(0, end);
    const std::string candidate =
        (directory.empty() ? std::string(".") : std::string(directory)) + "/" + name;
    struct stat facts {};
    if (::stat(candidate.c_str(), &facts) == 0 && S_ISREG(facts.st_mode)) {
      if (::access(candidate.c_str(), X_OK) == 0) {
        fault = 0;
        return candidate;
      }
      fault = EACCES;
    }
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const auto& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

[[noreturn]] void run_program(const InsideTask& task, pid_t parent, int time_pipe) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(exit_broken);  // it went before the line above
  InsideReport forked;
  forked.kind = InsideReport::forked;
  forked.boottime_ns = boottime_ns();
  send(task.channel, forked);

  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(null, STDIN_FILENO);
  ::dup2(task.output, STDOUT_FILENO);
  ::dup2(task.errors, STDERR_FILENO);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGHUP, SIGPIPE, SIGINT, SIGTERM, SIGCHLD}) ::signal(number, SIG_DFL);

  InsideReport report;
  if (::chdir(task.directory.c_str()) != 0) {
    report = trouble(InsideReport::at_directory, errno);
  } else {
    int fault = 0;
    const std::string program = find_program(task, fault);
    if (fault != 0) {
      report = trouble(InsideReport::at_lookup, fault);
    } else {
      const auto argv = pointers(task.argv);
      const auto environment = pointers(task.environment);
      const std::int64_t now_ns = boottime_ns();
      if (::write(time_pipe, &now_ns, sizeof now_ns) != sizeof now_ns) ::_exit(exit_broken);
      ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
      ::execve(program.c_str(), argv.data(), environment.data());
      report = trouble(InsideReport::at_exec, errno);
      const std::int64_t never = 0;
      (void)!::write(time_pipe, &never, sizeof never);
    }
  }
  send(task.channel, report);
  ::_exit(exit_broken);
}

// Reads the time that the child wrote just before exec; the end of the pipe is the exec itself
// (or the child's end, of which it has told by then; a last word of 0 says that exec failed).
void await_exec(int time_pipe, int channel) {
  std::int64_t start_ns = 0;
  std::int64_t word = 0;
  ssize_t n = 0;
  while ((n = ::read(time_pipe, &word, sizeof word)) != 0) {
    if (n < 0 && errno != EINTR) break;
    if (n == sizeof word) start_ns = word;
  }
  InsideReport started;
  started.kind = InsideReport::started;
  started.boottime_ns = start_ns;
  if (start_ns != 0) send(channel, started);
}

// Bytes from /proc/self/io: the process's own and those of all children it reaped.
void read_io(InsideReport& report) {
  const auto text = read_file("/proc/self/io", 4096);
  if (!text) return;
  const auto value_after = [&](std::string_view name) -> std::int64_t {
    const auto at = text->find(name);
    if (at == std::string::npos) return -1;
    return std::strtoll(text->c_str() + at + name.size(), nullptr, 10);
  };
  report.io_read_bytes = value_after("\nread_bytes: ");
  report.io_write_bytes = value_after("\nwrite_bytes: ");
}

std::int64_t microseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000 + time.tv_usec;
}

// The program on its way to its end.
struct Ending {
  bool asked = false;                  // it was sent a signal: its children have the grace too
  std::optional<InsideReport> report;  // it is gone; sent when nothing is left to wait for
};

// Reaps what has ended; leaves the process when the program is gone. After a signal (a stop) the
// rest of its process group may finish too: a shell dies of SIGTERM at once, while what it started
// saves its work. The launcher ends the wait at the end of the grace.
void reap(pid_t program, int channel, Ending& ending) {
  while (true) {
    int status = 0;
    rusage used{};
    const pid_t ended = ::wait4(-1, &status, WNOHANG, &used);
    if (ended <= 0) break;
    if (ended != program) continue;
    InsideReport report;
    report.kind = InsideReport::exited;
    report.value = status;
    report.user_us = microseconds(used.ru_utime);
    report.system_us = microseconds(used.ru_stime);
    report.max_rss_bytes = static_cast<std::int64_t>(used.ru_maxrss) * 1024;
    ending.report = report;
  }
  if (!ending.report || (ending.asked && ::kill(-program, 0) == 0)) return;
  ending.report->boottime_ns = boottime_ns();
  read_io(*ending.report);
  send(channel, *ending.report);
  ::_exit(0);
}

}  // namespace

void run_inside(const InsideTask& task) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched;
  ::sigfillset(&watched);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC);
  int time_pipe[2];
  if (signals < 0 || ::pipe2(time_pipe, O_CLOEXEC) != 0) ::_exit(exit_broken);
  const pid_t self = ::getpid();
  const pid_t program = ::fork();
  if (program < 0) {
    send(task.channel, trouble(InsideReport::at_fork, errno));
    ::_exit(exit_broken);
  }
  if (program == 0) run_program(task, self, time_pipe[1]);
  ::close(time_pipe[1]);
  ::close(task.output);
  ::close(task.errors);
  await_exec(time_pipe[0], task.channel);
  ::close(time_pipe[0]);

  Ending ending;
  pollfd waits[2] = {{signals, POLLIN, 0}, {task.channel, POLLIN, 0}};
  while (true) {
    reap(program, task.channel, ending);
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) ::_exit(exit_broken);
    if (waits[0].revents != 0) {
      signalfd_siginfo info{};
      (void)!::read(signals, &info, sizeof info);
    }
    if (waits[1].revents != 0) {
      InsideCommand command;
      const ssize_t n = ::recv(task.channel, &command, sizeof command, 0);
      if (n == 0) ::_exit(exit_broken);  // the launcher is gone: so is everything here
      if (n == sizeof command) {
        ending.asked = true;
        ::kill(-program, command.signal);
      }
    }
  }
}

namespace {

constexpr std::string_view pack_magic = "loam-inside-1";

void append(std::string& bytes, std::string_view text) {
  const auto size = static_cast<std::uint64_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes.append(text);
}

bool take(const std::string& bytes, std::size_t& at, std::string& text) {
  std::uint64_t size = 0;
  if (bytes.size() - at < sizeof size) return false;
  std::memcpy(&size, bytes.data() + at, sizeof size);
  at += sizeof size;
  if (bytes.size() - at < size) return false;
  text.assign(bytes, at, size);
  at += size;
  return true;
}

void append(std::string& bytes, const std::vector<std::string>& words) {
  append(bytes, std::to_string(words.size()));
  for (const auto& word : words) append(bytes, std::string_view(word));
}

bool take(const std::string& bytes, std::size_t& at, std::vector<std::string>& words) {
  std::string count;
  if (!take(bytes, at, count)) return false;
  const auto expected = std::strtoull(count.c_str(), nullptr, 10);
  std::string word;
  while (words.size() < expected) {
    if (!take(bytes, at, word)) return false;
    words.push_back(word);
  }
  return true;
}

bool take(const std::string& bytes, std::size_t& at, int& fd) {
  std::string text;
  if (!take(bytes, at, text)) return false;
  fd = std::atoi(text.c_str());
  return fd > STDERR_FILENO;
}

}  // namespace

std::string pack(const InsideTask& task) {
  std::string bytes;
  append(bytes, pack_magic);
  append(bytes, task.argv);
  append(bytes, task.environment);
  append(bytes, std::string_view(task.directory));
  for (const int fd : {task.channel, task.output, task.errors}) append(bytes, std::to_string(fd));
  return bytes;
}

bool unpack(const std::string& bytes, InsideTask& task) {
  std::size_t at = 0;
  std::string magic;
  return take(bytes, at, magic) && magic == pack_magic && take(bytes, at, task.argv) &&
         take(bytes, at, task.environment) && take(bytes, at, task.directory) &&
         take(bytes, at, task.channel) && take(bytes, at, task.output) &&
         take(bytes, at, task.errors) && at == bytes.size() && !task.argv.empty();
}

void main_inside(int task_fd) {
  std::string bytes;
  char buffer[65536];
  ssize_t n = 0;
  off_t offset = 0;
  while ((n = ::pread(task_fd, buffer, sizeof buffer, offset)) > 0) {
    bytes.append(buffer, static_cast<std::size_t>(n));
    offset += n;
  }
  InsideTask task;
  if (!unpack(bytes, task)) ::_exit(exit_broken);
  ::close(task_fd);
  run_inside(task);
}

}  // namespace loam::node
