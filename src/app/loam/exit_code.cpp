#include "app/loam/exit_code.hpp"

namespace loam::cli {

int exit_code_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return exit_usage;
    case ErrorKind::not_found:
      return exit_not_found;
    case ErrorKind::conflict:
    case ErrorKind::exhausted:
    case ErrorKind::unsupported:
      return exit_rejected;
    case ErrorKind::unavailable:
      return exit_unreachable;
    case ErrorKind::unauthenticated:
    case ErrorKind::permission_denied:
      return exit_not_allowed;
    case ErrorKind::corrupt:
      return exit_corrupt;
    case ErrorKind::internal:
      return exit_failed;
  }
  return exit_failed;
}

int exit_code_of(const std::string& outcome, std::int64_t code) {
  if (outcome == "succeeded") return exit_ok;
  if (outcome == "stopped") return exit_stopped;
  if (outcome == "limit_reached") return exit_limit;
  if (outcome == "refused") return exit_refused;
  if (outcome == "device_lost") return exit_device_lost;
  if (outcome == "expired") return exit_expired;
  return code >= 1 && code <= 255 ? static_cast<int>(code) : exit_failed;
}

std::string exit_codes_text() {
  return "Exit codes\n"
         "    0  done; from `loam run`: the task succeeded\n"
         "    1  a fault of loam itself, or a check that found something\n"
         "    2  the words typed are off: an unknown option, a quantity that is none\n"
         "    3  there is no such thing, or it is not yours\n"
         "    4  rejected: by policy, quota, funds, or the present state\n"
         "    5  no daemon can be reached, or it cannot work now; try again\n"
         "    6  not known or not allowed: see LOAM_TOKEN and `loam whoami`\n"
         "    7  stored data is not what was written\n"
         "\n"
         "Of `loam run` besides\n"
         "    N  the task's own exit code; 128 + the signal where one ended it\n"
         "  121  the task expired: it waited as long as it would and did not start\n"
         "  122  the device was lost\n"
         "  123  detached by a second Ctrl-C; the task ends within its grace\n"
         "  124  the task reached its time limit\n"
         "  125  the task was refused before its first instruction\n"
         "  130  the task was stopped, by Ctrl-C or by somebody else\n"
         "\n"
         "An exit code of loam's own comes with a line `error: …` on standard error.\n";
}

}  // namespace loam::cli
