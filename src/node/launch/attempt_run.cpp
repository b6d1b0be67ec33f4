#include "node/launch/attempt_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "base/time.hpp"
#include "node/launch/attempt_files.hpp"
#include "node/launch/clock.hpp"
#include "node/launch/leftovers.hpp"

namespace loam::node {

namespace {

constexpr std::int64_t beat_interval_ns = 10'000'000'000;  // 10 s: what a lost node may cost
constexpr int kill_wait_ms = 10'000;  // a process in a hung call may stay longer
constexpr int final_walk_ms = 500;    // who waits for the end shall not wait long
constexpr std::size_t complaint_bytes_max = 2000;

}  // namespace

AttemptRun::AttemptRun(std::string path, Fd directory, ControlServer control)
    : path_(std::move(path)), directory_(std::move(directory)), control_(std::move(control)) {}

AttemptRun::~AttemptRun() = default;

bool AttemptRun::run() {
  status_.attempt = path_.substr(path_.rfind('/') + 1);
  status_.boot_id = boot_id();
  status_.launcher_pid = ::getpid();
  status_.launcher_start_ticks = process_start_ticks(::getpid()).value_or(0);
  const Result<void> prepared = prepare();
  if (!prepared.ok()) {
    // What was ordered cannot be had here or anywhere; else this node lacks something just now.
    const ErrorKind kind = prepared.error().kind;
    const std::string why = to_text(prepared.error());
    const bool ordered = kind == ErrorKind::unsupported || kind == ErrorKind::invalid_argument;
    if (status_.phase != Phase::refused) ordered ? refuse(126, why) : refuse_as_unable(why);
  } else {
    write_status(Durable::no);
    loop();
  }
  conclude();
  const bool written = write_status(Durable::yes);
  clean_up();
  return written;
}

bool AttemptRun::write_status(Durable durable) {
  status_.stdout_bytes = stdout_.log ? stdout_.log->size() : 0;
  status_.stderr_bytes = stderr_.log ? stderr_.log->size() : 0;
  status_.log_dropped_bytes = (stdout_.log ? stdout_.log->dropped_bytes() : 0) +
                              (stderr_.log ? stderr_.log->dropped_bytes() : 0);
  const std::string text = to_json(status_);
  auto written = write_atomically_at(directory_.get(), attempt_files::status, text, durable);
  if (!written.ok() && ::unlinkat(directory_.get(), attempt_files::reserve, 0) == 0) {
    written = write_atomically_at(directory_.get(), attempt_files::status, text, durable);
  }
  if (!written.ok()) std::fprintf(stderr, "loam-launch: %s\n", to_text(written.error()).c_str());
  return written.ok();
}

// ------------------------------------------------------------------------------------- the loop

void AttemptRun::arm_timer() {
  std::int64_t next_ns = next_beat_ns_;
  if (grace_end_ns_ != 0) next_ns = std::min(next_ns, grace_end_ns_);
  next_ns = std::min(next_ns, limit_end_ns());
  itimerspec when{};
  when.it_value.tv_sec = next_ns / 1'000'000'000;
  when.it_value.tv_nsec = std::max<std::int64_t>(1, next_ns % 1'000'000'000);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void AttemptRun::loop() {
  std::vector<pollfd> waits;
  beat();
  while (!over_) {
    arm_timer();
    waits.clear();
    waits.push_back({signals_.get(), POLLIN, 0});
    waits.push_back({timer_.get(), POLLIN, 0});
    waits.push_back({channel_.get(), POLLIN, 0});
    for (const Fd* fd : {&stdout_.pipe, &stderr_.pipe, &complaint_}) {
      if (fd->valid()) waits.push_back({fd->get(), POLLIN, 0});
    }
    control_.add_waits(waits);
    metadata_.add_waits(waits);
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    pump(stdout_, false);
    pump(stderr_, false);
    hear_complaint();
    hear_inside();
    handle_signals();
    control_.serve([this](std::string_view line) { return answer(line); });
    metadata_.serve({status_.attempt, deadline_});
    if (over_) break;
    const std::int64_t now_ns = boottime_ns();
    if (grace_end_ns_ != 0 && now_ns >= grace_end_ns_) {
      grace_end_ns_ = 0;
      kill_now();
    }
    if (now_ns >= limit_end_ns())
      begin_stop(order_.grace_ms, "its time limit is reached", notice_limit);
    if (now_ns >= next_beat_ns_) beat();
  }
}

void AttemptRun::pump(Stream& stream, bool to_the_end) {
  if (!stream.pipe.valid()) return;
  constexpr int reads_max = 16;  // then the other stream and the control socket have their turn
  static char buffer[65536];     // the size of a pipe
  for (int reads = 0; to_the_end || reads < reads_max; ++reads) {
    const ssize_t n = ::read(stream.pipe.get(), buffer, sizeof buffer);
    if (n > 0) {
      stream.log->write({buffer, static_cast<std::size_t>(n)});
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || errno != EAGAIN) stream.pipe.close();
    return;
  }
}

void AttemptRun::hear_complaint() {
  if (!complaint_.valid()) return;
  char buffer[1024];
  ssize_t n = 0;
  while ((n = ::read(complaint_.get(), buffer, sizeof buffer)) > 0) {
    complaint_text_.append(buffer, static_cast<std::size_t>(n));
    if (complaint_text_.size() > complaint_bytes_max) complaint_text_.resize(complaint_bytes_max);
  }
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) complaint_.close();
}

void AttemptRun::hear_inside() {
  while (channel_.valid() && !over_) {
    InsideReport report;
    iovec part{&report, sizeof report};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(channel_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {  // everybody inside is gone
      over_ = true;
      return;
    }
    pid_t sender = 0;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_CREDENTIALS) continue;
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
      sender = credentials.pid;
    }
    if (n == sizeof report) handle(report, sender);
  }
}

void AttemptRun::handle(const InsideReport& report, pid_t sender) {
  switch (report.kind) {
    case InsideReport::forked:
      status_.program_pid = sender;
      forked_ns_ = report.boottime_ns;
      return;
    case InsideReport::started: {
      cgroup_.limit_cpu(true);
      note_start(report.boottime_ns);
      if (status_.phase == Phase::starting) status_.phase = Phase::running;
      if (status_.phase == Phase::stopping) {  // asked before there was anything to stop
        const InsideCommand command{SIGTERM};
        ::send(channel_.get(), &command, sizeof command, MSG_NOSIGNAL);
      }
      write_status(Durable::yes);
      return;
    }
    case InsideReport::not_started:
      not_started_ = report;
      over_ = true;
      return;
    case InsideReport::exited:
      exit_report_ = report;
      over_ = true;
      return;
  }
}

void AttemptRun::note_start(std::int64_t start_ns) {
  status_.start_boottime_ns = start_ns;
  status_.start_wall_ms = wall_ms() - (boottime_ns() - start_ns) / 1'000'000;
}

void AttemptRun::handle_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGCHLD) continue;
    begin_stop(order_.grace_ms, "loam-launch was told to end by signal " +
                                    std::to_string(info.ssi_signo) + " (the node goes down?)");
  }
  reap();
}

void AttemptRun::reap() {
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    if (ended == child_) child_ = -1;
  }
}

// ------------------------------------------------------------------------------ what may be asked

std::string AttemptRun::answer(std::string_view line) {
  const auto request = parse_control_request(line);
  if (!request) return control_answer_error(request.error());
  switch (request->action) {
    case ControlRequest::Action::stop:
      begin_stop(request->grace_ms < 0 ? order_.grace_ms : request->grace_ms, request->reason);
      return control_answer_ok();
    case ControlRequest::Action::kill: {
      kill_asked_ = true;
      const std::int64_t now_ns = boottime_ns();
      status_.notices.push_back({notice_kill, request->reason, now_ns, now_ns});
      kill_now();
      return control_answer_ok();
    }
    case ControlRequest::Action::pause:
    case ControlRequest::Action::resume: {
      const auto done = pause(request->action == ControlRequest::Action::pause);
      return done.ok() ? control_answer_ok() : control_answer_error(done.error());
    }
    case ControlRequest::Action::status:
      note_usage();
      return control_answer_ok(to_json(status_));
    case ControlRequest::Action::memory: {
      const auto told =
          ask_for_memory(std::max<std::int64_t>(request->grace_ms, 0), request->bytes);
      return told.ok() ? control_answer_ok() : control_answer_error(told.error());
    }
  }
  return control_answer_error(invalid("no such action"));
}

std::int64_t AttemptRun::limit_end_ns() const {
  const bool runs_down = order_.run_limit_ms != 0 && status_.phase == Phase::running &&
                         status_.paused_since_boottime_ns == 0;
  if (!runs_down) return std::numeric_limits<std::int64_t>::max();
  return status_.start_boottime_ns + status_.paused_ns + order_.run_limit_ms * 1'000'000;
}

// A file of its own: the one of a stop means that SIGTERM has come.
Result<void> AttemptRun::ask_for_memory(std::int64_t grace_ms, std::int64_t bytes) {
  const std::int64_t end_ns = boottime_ns() + grace_ms * 1'000'000;
  const std::string notice =
      "{\"version\":1,\"action\":\"give_back_memory\",\"bytes\":" + std::to_string(bytes) +
      ",\"deadline\":\"" + to_text(Instant{wall_ms() + grace_ms}) +
      "\",\"deadline_boottime_ns\":" + std::to_string(end_ns) + "}\n";
  LOAM_TRY(opened, open_directory(path_ + "/" + attempt_files::notice_directory));
  return write_atomically_at(opened.get(), attempt_files::memory_notice, notice, Durable::no);
}

void AttemptRun::begin_stop(std::int64_t grace_ms, const std::string& reason, const char* action) {
  const std::int64_t now_ns = boottime_ns();
  const std::int64_t end_ns = now_ns + grace_ms * 1'000'000;
  const bool first = status_.phase != Phase::stopping;
  // A later stop may shorten the grace, never lengthen it.
  if (!first && (killed_ || grace_end_ns_ == 0 || end_ns >= grace_end_ns_)) return;
  grace_end_ns_ = end_ns;
  status_.notices.push_back({action, reason, now_ns, end_ns});
  const std::int64_t deadline_ms = wall_ms() + grace_ms;
  // The words of a spot handler: an action and a time.
  deadline_ = to_text(Instant{deadline_ms});
  const std::string notice = "{\"version\":1,\"action\":\"stop\",\"deadline\":\"" + deadline_ +
                             "\",\"deadline_boottime_ns\":" + std::to_string(end_ns) +
                             ",\"grace_ms\":" + std::to_string(grace_ms) + "}\n";
  const std::string directory = path_ + "/" + attempt_files::notice_directory;
  if (const auto opened = open_directory(directory)) {
    const auto written =
        write_atomically_at(opened->get(), attempt_files::notice, notice, Durable::no);
    if (!written.ok()) std::fprintf(stderr, "loam-launch: %s\n", to_text(written.error()).c_str());
  }
  if (status_.paused_since_boottime_ns != 0) (void)pause(false);
  if (first) {
    status_.phase = Phase::stopping;
    if (status_.start_boottime_ns != 0) {
      const InsideCommand command{SIGTERM};
      ::send(channel_.get(), &command, sizeof command, MSG_NOSIGNAL);
    }
  }
  write_status(Durable::yes);
}

Result<void> AttemptRun::pause(bool frozen) {
  const bool is_frozen = status_.paused_since_boottime_ns != 0;
  if (frozen == is_frozen) return {};
  if (frozen && status_.phase != Phase::running) {
    return Error{ErrorKind::conflict,
                 std::string("the attempt is ") + name_of(status_.phase) + ", not running", ""};
  }
  LOAM_CHECK(cgroup_.freeze(frozen));
  const std::int64_t now_ns = boottime_ns();
  if (frozen) {
    status_.paused_since_boottime_ns = now_ns;
  } else {
    status_.paused_ns += now_ns - status_.paused_since_boottime_ns;
    status_.paused_since_boottime_ns = 0;
  }
  write_status(Durable::yes);
  return {};
}

// False where some processes stay after `wait_ms`.
bool AttemptRun::kill_everything(int wait_ms) {
  if (!cgroup_.can_kill() && child_ > 0) kill_descendants(child_);
  // By its pid too: it may not have entered its groups yet. What is below it goes with it.
  if (child_ > 0) ::kill(child_, SIGKILL);
  return !cgroup_.can_kill() ||
         cgroup_.kill_all(
             wait_ms, [](void* run) { static_cast<AttemptRun*>(run)->reap(); }, this);
}

void AttemptRun::kill_now() {
  killed_ = true;
  kill_everything(0);
  // The channel's end, or the exit report, then ends the loop.
}

void AttemptRun::beat() {
  next_beat_ns_ = boottime_ns() + beat_interval_ns;
  storage_->tick();
  note_usage();
  // Not synced: a node that loses power loses up to some 30 s more of billable time, and the disk
  // never holds up the program's output.
  (void)write_atomically_at(pulse_.get(), attempt_files::heartbeat,
                            to_json(Heartbeat{status_.boot_id, boottime_ns(), status_.usage}),
                            Durable::no);
}

void AttemptRun::note_usage() {
  const CgroupUsage used = cgroup_.usage();
  if (used.user_cpu_ms) status_.usage.user_cpu_ms = *used.user_cpu_ms;
  if (used.system_cpu_ms) status_.usage.system_cpu_ms = *used.system_cpu_ms;
  if (used.memory_peak_bytes) status_.usage.memory_peak_bytes = used.memory_peak_bytes;
  const StorageHeld held = storage_->held();
  status_.usage.work_bytes = held.work_bytes;
  status_.usage.checkpoint_bytes = held.checkpoint_bytes;
  status_.usage.log_bytes = held.log_bytes;
  status_.usage.storage_mib_ms = held.storage_mib_ms;
  status_.usage.checkpoint_mib_ms = held.checkpoint_mib_ms;
  const auto moved = network_ ? network_->moved() : std::nullopt;
  if (!moved) return;
  status_.usage.network_rx_bytes = moved->received_bytes;
  status_.usage.network_tx_bytes = moved->sent_bytes;
}

// --------------------------------------------------------------------------------------- the end

void AttemptRun::refuse(int exit_code, std::string detail) {
  status_.phase = Phase::refused;
  status_.outcome = Outcome::refused;
  status_.exit_code = exit_code;
  status_.detail = std::move(detail);
}

void AttemptRun::refuse_as_unable(std::string detail) {
  refuse(126, std::move(detail));
  status_.outcome = Outcome::unable;
}

// Says in words why the program did not start.
void AttemptRun::refuse_after_inside() {
  const std::string& program = order_.argv.front();
  if (!not_started_) {
    std::string why = complaint_text_;
    while (!why.empty() && (why.back() == '\n' || why.back() == ' ')) why.pop_back();
    for (char& c : why) {
      if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = ' ';
    }
    if (killed_) return refuse(126, "stopped before it started");
    return refuse(126, std::string(sandboxed_ ? "the sandbox could not be made: "
                                              : "the program's process could not be made: ") +
                           (why.empty() ? "no reason was given" : why));
  }
  const std::string error = std::strerror(not_started_->value);
  switch (not_started_->step) {
    case InsideReport::at_directory:
      return refuse(126, "the working directory " + work_ + " cannot be entered: " + error);
    case InsideReport::at_fork:
      return refuse_as_unable("no process could be made for " + program + ": " + error);
    case InsideReport::at_lookup:
      if (not_started_->value == ENOENT) {
        return refuse(127, "program not found: `" + program + "` is in no directory of PATH");
      }
      return refuse(126, "program not executable: `" + program + "`: " + error);
    case InsideReport::at_exec:
      break;
  }
  if (not_started_->value != ENOENT && not_started_->value != ENOTDIR) {
    return refuse(126, "program not executable: `" + program + "`: " + error);
  }
  std::string hint;
  if (::access(program.c_str(), F_OK) == 0) {
    hint = sandboxed_ ? "; it (or the interpreter it names) exists on the node but is not mounted "
                        "into the sandbox"
                      : "; it exists, so the interpreter it names does not";
  }
  refuse(127, "program not found: `" + program + "`: " + error + hint);
}

void AttemptRun::settle_outcome() {
  const bool stopping = !status_.notices.empty();
  const bool oom = cgroup_.usage().oom_killed;
  status_.phase = Phase::exited;
  // Without a word from inside, everything was killed at once.
  const int wait_status = exit_report_ ? exit_report_->value : SIGKILL;
  if (WIFEXITED(wait_status)) {
    status_.exit_code = WEXITSTATUS(wait_status);
    status_.outcome = stopping ? Outcome::stopped : Outcome::exited;
    if (oom) status_.detail = "the kernel killed a process of it over the host memory limit";
    return;
  }
  status_.signal = WTERMSIG(wait_status);
  if (*status_.signal == SIGKILL && oom && !killed_) {
    status_.outcome = Outcome::out_of_memory;
    status_.detail = "over the host memory limit of " + std::to_string(order_.host_memory_mib) +
                     " MiB; ask for more host memory";
  } else if (killed_) {
    status_.outcome = kill_asked_ ? Outcome::killed : Outcome::killed_after_grace;
  } else if (stopping) {
    status_.outcome = Outcome::stopped;
  } else {
    status_.outcome = Outcome::signalled;
    if (!exit_report_) status_.detail = "the process above the program was killed from outside";
  }
}

void AttemptRun::conclude() {
  const bool all_gone = kill_everything(kill_wait_ms);
  reap();
  // Orphans come to this process (it is their subreaper), so without children there are none.
  if (::waitpid(-1, nullptr, WNOHANG) == 0) kill_descendants(::getpid());
  reap();
  if (status_.paused_since_boottime_ns != 0) {
    status_.paused_ns += boottime_ns() - status_.paused_since_boottime_ns;
    status_.paused_since_boottime_ns = 0;
  }
  pump(stdout_, true);
  pump(stderr_, true);
  hear_complaint();
  if (status_.phase == Phase::refused) return;
  // Everything was killed before the word of the start came through: it may have run.
  if (status_.start_boottime_ns == 0 && forked_ns_ != 0 && !not_started_) note_start(forked_ns_);
  if (status_.start_boottime_ns == 0) {
    refuse_after_inside();
    return;
  }
  status_.end_boottime_ns = boottime_ns();
  status_.end_wall_ms = wall_ms();
  settle_outcome();
  if (!all_gone) status_.detail += " (some of its processes hang in the kernel and stay)";
  storage_->finish(final_walk_ms);
  note_usage();
  if (!exit_report_) return;
  Usage& usage = status_.usage;
  if (!cgroup_.usage().user_cpu_ms) {
    usage.user_cpu_ms = exit_report_->user_us / 1000;
    usage.system_cpu_ms = exit_report_->system_us / 1000;
  }
  usage.max_rss_bytes = exit_report_->max_rss_bytes;
  if (exit_report_->io_read_bytes >= 0) usage.io_read_bytes = exit_report_->io_read_bytes;
  if (exit_report_->io_write_bytes >= 0) usage.io_write_bytes = exit_report_->io_write_bytes;
}

void AttemptRun::clean_up() {
  if (!cgroup_.remove()) std::fprintf(stderr, "loam-launch: a control group stays behind\n");
  (void)remove_tree(path_ + "/" + attempt_files::temporary);
  ::unlinkat(directory_.get(), attempt_files::control, 0);
  ::unlinkat(directory_.get(), attempt_files::reserve, 0);
}

}  // namespace loam::node
