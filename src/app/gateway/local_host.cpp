#include "app/gateway/local_host.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace loam::serving {
namespace {

// Starts the program with its output in `log`; it ends with this process. -1 where it cannot.
pid_t spawn(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (out < 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {  // nothing but system calls: other threads may have held locks
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out);
  return pid;
}

std::string log_of(const std::string& socket) {
  return std::filesystem::path(socket).replace_extension(".log").string();
}

bool says_unusable(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == model_unusable_status;
}

std::string words_of(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  if (says_unusable(status)) return model_unusable_words;
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<void> LocalHost::open(std::function<void()>) {
  std::error_code fault;
  std::filesystem::create_directories(engines_folder(config_), fault);
  if (!fault) return {};
  return Error{ErrorKind::unavailable,
               "cannot make " + engines_folder(config_) + ": " + fault.message(),
               "set run_dir to a folder that this user may make"};
}

Result<void> LocalHost::check(const EndpointConfig& endpoint, Mebibytes memory) {
  constexpr std::int64_t bytes_per_mib = 1 << 20;
  const std::int64_t machine_mib =
      std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE) / bytes_per_mib;
  const std::int64_t most = config_.memory_mib > 0 ? config_.memory_mib : machine_mib;
  if (memory.value <= most) return {};
  return Error{ErrorKind::exhausted,
               "an instance of " + endpoint.model + " takes " + std::to_string(memory.value) +
                   " MiB and there are " + std::to_string(most) + " MiB for all",
               "make --context or --slots smaller, import the model at a lower precision, or raise "
               "memory_mib"};
}

void LocalHost::launch(InstanceOrder order) {
  ::unlink(order.socket.c_str());
  std::lock_guard lock(mutex_);
  children_[order.name] = {spawn(order.command, log_of(order.socket)), order.endpoint.model,
                           order.socket};
}

void LocalHost::end(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto found = children_.find(name);
  if (found != children_.end() && found->second.pid > 0) ::kill(found->second.pid, SIGTERM);
}

std::vector<InstanceFact> LocalHost::facts() {
  std::lock_guard lock(mutex_);
  std::vector<InstanceFact> facts;
  for (auto one = children_.begin(); one != children_.end();) {
    InstanceFact fact;
    fact.name = one->first;
    fact.model = one->second.model;
    fact.socket = one->second.socket;
    fact.state = InstanceFact::State::running;
    int status = 0;
    const pid_t pid = one->second.pid;
    if (pid < 0) fact.words = "it cannot be started";
    if (pid > 0 && ::waitpid(pid, &status, WNOHANG) == pid) {
      fact.words = words_of(status);
      fact.log = log_of(fact.socket);
      fact.is_refused = says_unusable(status);
    }
    const bool ended = !fact.words.empty();
    if (ended) fact.state = InstanceFact::State::ended;
    facts.push_back(std::move(fact));
    one = ended ? children_.erase(one) : std::next(one);
  }
  return facts;
}

void LocalHost::close() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, child] : children_) {
    if (child.pid > 0) ::kill(child.pid, SIGTERM);
  }
  for (const auto& [name, child] : children_) {
    constexpr int tries = 100;
    for (int i = 0; child.pid > 0 && ::waitpid(child.pid, nullptr, WNOHANG) == 0; ++i) {
      if (i == tries) ::kill(child.pid, SIGKILL);
      ::usleep(50'000);
    }
    ::unlink(child.socket.c_str());
  }
  children_.clear();
}

}  // namespace loam::serving
