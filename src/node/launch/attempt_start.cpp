// The part of AttemptRun that leads from an order to a started process.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "guard/slice_page.h"
#include "node/launch/attempt_files.hpp"
#include "node/launch/attempt_run.hpp"
#include "node/launch/backup.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/leftovers.hpp"

namespace loam::node {

namespace {

constexpr int exit_broken = 125;

// Processes that a task needs besides its own: bwrap, its process 1, and one between.
constexpr std::int64_t own_processes = 3;

Result<void> make_pipe(Fd& read_end, Fd& write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error("making a pipe", errno);
  read_end = Fd(ends[0]);
  write_end = Fd(ends[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  return {};
}

// Closes every descriptor from 3 on but the three.
void close_all_but(std::array<int, 3> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned from = 3;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > from) ::close_range(from, number - 1, 0);
    from = number + 1;
  }
  ::close_range(from, ~0U, 0);
}

void let_through_exec(int fd) {
  ::fcntl(fd, F_SETFD, 0);
}

// The launcher may be protected from the kernel's choice of a victim; its program is not.
void become_oom_victim() {
  const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score.valid()) (void)write_all(score.get(), "0");
}

std::string own_program() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

Result<void> AttemptRun::prepare() {
  LOAM_TRY(text, read_file_at(directory_.get(), attempt_files::order));
  LOAM_TRY(order, parse_launch_order(text));
  if (order.attempt != status_.attempt) {
    return Error{ErrorKind::corrupt,
                 "order.json is for the attempt " + order.attempt + ", but lies in the directory " +
                     status_.attempt,
                 "let loamd make the attempt's directory"};
  }
  order_ = std::move(order);
  status_.task = order_.task;
  status_.lease = order_.lease;
  status_.epoch = order_.epoch;
  status_.log_segment_bytes = order_.log_segment_bytes;
  LOAM_CHECK(choose_isolation());
  LOAM_CHECK(prepare_directories());
  LOAM_CHECK(back_up());
  make_groups();

  sigset_t watched;
  ::sigemptyset(&watched);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT}) ::sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!signals_.valid() || !timer_.valid()) return os_error("making a signal or timer", errno);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  return spawn();
}

Result<void> AttemptRun::choose_isolation() {
  if (order_.sandbox == SandboxMode::none) {
    status_.isolation_detail = "no sandbox was asked for";
  } else {
    const std::string root = path_.substr(0, path_.rfind('/'));
    const SandboxProbe probe = probe_sandbox(root + "/" + attempt_files::sandbox_probe);
    bwrap_ = probe.program;
    sandboxed_ = probe.works && (order_.network || probe.network_works);
    if (!sandboxed_) {
      status_.isolation_detail =
          probe.works ? "bubblewrap makes no network of its own here" : probe.trouble;
    }
    if (!sandboxed_ && order_.sandbox == SandboxMode::bubblewrap) {
      return Error{ErrorKind::unsupported,
                   "a sandbox was asked for, but " + status_.isolation_detail,
                   "install bubblewrap or allow the task to run without"};
    }
  }
  if (!sandboxed_) LOAM_CHECK(check_unsandboxed());
  if (!order_.guard_library.empty() && ::access(order_.guard_library.c_str(), R_OK) != 0) {
    return os_error("reading the guard library " + order_.guard_library, errno,
                    "install loam's guard where the daemon looks for it");
  }
  const std::string limits = order_.slice_page + LOAM_SLICE_LIMITS_SUFFIX;
  if (!order_.slice_page.empty() && ::access(limits.c_str(), R_OK) != 0) {
    return os_error("reading the slice page " + limits, errno,
                    "make it before the attempt is launched");
  }
  status_.isolation = sandboxed_                      ? Isolation::sandboxed
                      : !order_.guard_library.empty() ? Isolation::advisory
                                                      : Isolation::none;
  return {};
}

// What only a sandbox can give is refused by name, not left out.
Result<void> AttemptRun::check_unsandboxed() const {
  for (const auto& mount : order_.mounts) {
    if (mount.source == mount.target) continue;
    return Error{ErrorKind::unsupported,
                 "the mount of " + mount.source + " at " + mount.target +
                     " needs a sandbox: " + status_.isolation_detail,
                 "mount it at its own path, or install bubblewrap"};
  }
  if (!order_.network) {
    return Error{ErrorKind::unsupported,
                 "keeping the task off the network needs a sandbox: " + status_.isolation_detail,
                 "allow the network, or install bubblewrap"};
  }
  return {};
}

Result<void> AttemptRun::prepare_directories() {
  const auto place = [&](const std::string& ordered, const char* name) {
    return ordered.empty() ? path_ + "/" + name : ordered;
  };
  work_ = place(order_.working_directory, attempt_files::work);
  checkpoint_ = place(order_.checkpoint_directory, attempt_files::checkpoint);
  cache_ = place(order_.cache_directory, attempt_files::cache);
  places_.working_directory = work_;
  places_.checkpoint_directory = checkpoint_;
  places_.cache_directory = cache_;
  const std::string temporary = path_ + "/" + attempt_files::temporary;
  const std::string notices = path_ + "/" + attempt_files::notice_directory;
  const std::string logs = path_ + "/" + attempt_files::logs;
  const std::string output = path_ + "/" + attempt_files::output_directory;
  places_.notice_file = notices + "/" + attempt_files::notice;
  places_.output_file = output + "/" + attempt_files::output;
  places_.temporary_directory = sandboxed_ ? "/tmp" : temporary;
  if (!sandboxed_) places_.preload = order_.guard_library;
  if (!order_.slice_page.empty()) {
    places_.slice_page = sandboxed_ ? LOAM_SLICE_PATH : order_.slice_page;
  }
  if (!order_.working_directory.empty() && ::access(work_.c_str(), F_OK) != 0) {
    return os_error("entering the working directory " + work_, errno,
                    "make it, or name another one");
  }
  const std::string pulse = path_ + "/" + attempt_files::pulse;
  for (const std::string& directory :
       {work_, checkpoint_, cache_, temporary, notices, output, logs, pulse}) {
    LOAM_CHECK(make_directories(directory));
  }
  const Fd reserve(
      ::openat(directory_.get(), attempt_files::reserve, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  constexpr off_t reserve_bytes = 65536;  // several times the largest status
  if (reserve.valid()) (void)::posix_fallocate(reserve.get(), 0, reserve_bytes);
  LOAM_TRY(opened, open_directory(pulse));
  pulse_ = std::move(opened);
  ::chmod(temporary.c_str(), 01777);
  for (auto& [stream, name] : {std::pair<Stream*, const char*>{&stdout_, "stdout"},
                               std::pair<Stream*, const char*>{&stderr_, "stderr"}}) {
    LOAM_TRY(directory, open_directory(logs));
    LOAM_TRY(log, LogWriter::open(std::move(directory), name, order_.log_segment_bytes,
                                  order_.log_segments));
    stream->log = std::move(log);
  }
  // Without it the notice still comes by file and by signal.
  if (order_.network) {
    if (auto listening = MetadataServer::listen()) metadata_ = std::move(*listening);
    places_.metadata_url = metadata_.address();
  }
  storage_ = std::make_unique<StorageMeter>(work_, checkpoint_, logs);
  return {};
}

// Where it cannot be done the program does not begin: its owner counts on it.
Result<void> AttemptRun::back_up() {
  if (order_.backups == 0) return {};
  LOAM_CHECK(keep_backup(checkpoint_, order_.backup_directory, order_.epoch, order_.backups));
  places_.backup_directory = order_.backup_directory;
  constexpr int limit_ms = 600'000;
  status_.usage.backup_bytes = backup_bytes(order_.backup_directory, limit_ms);
  return {};
}

void AttemptRun::make_groups() {
  CgroupLimits limits;
  limits.cpu_milli = order_.cpu_milli + order_.cpu_turns_milli;
  limits.cpu_in_turns = order_.cpu_turns_milli > 0;
  limits.cpu_weight_milli = order_.cpu_weight_milli;
  limits.memory_bytes = order_.host_memory_mib << 20;
  limits.pids_max = order_.pids_max > 0 ? order_.pids_max + own_processes : 0;
  cgroup_ = AttemptCgroup::make(read_cgroup_mounts(), cgroup_name(path_), limits);
  status_.cgroups = cgroup_.directories();
  status_.cpu_limit = cgroup_.cpu();
  status_.memory_limit = cgroup_.memory();
  status_.pids_limit = cgroup_.pids();
  // What no group keeps, a resource limit keeps where there is one: memory by RLIMIT_DATA (a
  // process at a time), processes by RLIMIT_NPROC (which does not bind root).
  if (status_.memory_limit == LimitBy::nothing) status_.memory_limit = LimitBy::rlimit;
  if (status_.pids_limit == LimitBy::nothing && ::geteuid() != 0) {
    status_.pids_limit = LimitBy::rlimit;
  }
  if (!cgroup_.trouble().empty()) {
    if (!status_.isolation_detail.empty()) status_.isolation_detail += "; ";
    status_.isolation_detail += cgroup_.trouble();
  }
  count_network();
}

// Where nothing can count, the figures stay out: nobody knows them.
void AttemptRun::count_network() {
  if (sandboxed_ && !order_.network) {
    status_.usage.network_rx_bytes = 0;  // a network of its own that leads nowhere
    status_.usage.network_tx_bytes = 0;
    return;
  }
  if (cgroup_.v2_directory().empty()) return;
  auto meter = NetworkMeter::attach(cgroup_.v2_directory());
  if (meter) network_ = std::move(*meter);
}

void AttemptRun::limit_by_rlimits() const {
  if (status_.memory_limit == LimitBy::rlimit) {
    const auto bytes = static_cast<rlim_t>(order_.host_memory_mib << 20);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  if (status_.pids_limit == LimitBy::rlimit) {
    // The kernel counts all of the user's threads, so those that are there come on top.
    const auto count =
        static_cast<rlim_t>(order_.pids_max + own_processes + count_threads_of_user());
    const rlimit limit{count, count};
    ::setrlimit(RLIMIT_NPROC, &limit);
  }
  rlimit core{};
  ::getrlimit(RLIMIT_CORE, &core);
  core.rlim_cur = 0;  // a core file may be as large as the memory; a program may raise it again
  ::setrlimit(RLIMIT_CORE, &core);
}

Result<void> AttemptRun::spawn() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return os_error("making a channel", errno);
  }
  channel_ = Fd(ends[0]);
  const Fd far_end(ends[1]);
  const int yes = 1;
  ::setsockopt(channel_.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  Fd output, errors, complaint;
  LOAM_CHECK(make_pipe(stdout_.pipe, output));
  LOAM_CHECK(make_pipe(stderr_.pipe, errors));
  if (sandboxed_) LOAM_CHECK(make_pipe(complaint_, complaint));

  InsideTask task;
  task.argv = order_.argv;
  task.environment = task_environment(order_, places_);
  task.directory = work_;
  task.channel = far_end.get();
  task.output = output.get();
  task.errors = errors.get();

  Fd packed;
  if (sandboxed_) {
    packed = Fd(::memfd_create("loam-task", MFD_CLOEXEC));
    if (!packed.valid() || !write_all(packed.get(), pack(task))) {
      return os_error("handing over the task", errno);
    }
    if (!order_.guard_library.empty()) {
      LOAM_CHECK(write_atomically_at(directory_.get(), attempt_files::preload_list,
                                     std::string(sandbox_guard) + "\n", Durable::no));
    }
  }
  cgroup_.limit_cpu(false);  // until the program starts
  child_ = cgroup_.fork_inside();
  if (child_ < 0) return os_error("making a process", errno, "see the node's process limit");
  if (child_ == 0) {
    if (cgroup_.join_fault() != 0) ::_exit(exit_broken);
    become_oom_victim();
    limit_by_rlimits();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sandboxed_) become_bubblewrap(task, packed.get(), complaint.get());
    become_inside(task);
  }
  return {};
}

void AttemptRun::become_inside(const InsideTask& task) {
  close_all_but({task.channel, task.output, task.errors});
  run_inside(task);
}

void AttemptRun::become_bubblewrap(const InsideTask& task, int task_fd, int complaint_fd) {
  SandboxPaths paths;
  paths.launcher = own_program();
  paths.temporary = path_ + "/" + attempt_files::temporary;
  if (!order_.guard_library.empty()) {
    paths.preload_list = path_ + "/" + attempt_files::preload_list;
  }
  paths.notice_directory = path_ + "/" + attempt_files::notice_directory;
  paths.output_directory = path_ + "/" + attempt_files::output_directory;
  paths.working_directory = work_;
  paths.checkpoint_directory = checkpoint_;
  paths.cache_directory = cache_;
  SandboxCommand command = sandbox_command(order_, paths);
  std::vector<std::string>& words = command.arguments;
  words.insert(words.begin(), "bwrap");
  words.insert(words.end(), {sandbox_launcher, "--inside", std::to_string(task_fd)});
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  ::dup2(complaint_fd, STDOUT_FILENO);
  ::dup2(complaint_fd, STDERR_FILENO);
  for (const int fd : {task.channel, task.output, task.errors, task_fd}) let_through_exec(fd);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // bwrap runs outside the sandbox: nothing of the task's environment may reach it.
  char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
  char* environment[] = {path, nullptr};
  ::execve(bwrap_.c_str(), argv.data(), environment);
  ::dprintf(STDERR_FILENO, "running %s: error %d\n", bwrap_.c_str(), errno);
  ::_exit(exit_broken);
}

}  // namespace loam::node
