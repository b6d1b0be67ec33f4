#include "app/loam/top.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>

#include "app/loam/human.hpp"
#include "app/loam/top_endpoints.hpp"
#include "base/assert.hpp"

namespace loam::cli {
namespace {

http::Canceller* to_cancel = nullptr;  // by the signal handler; one `top` runs at a time

void on_signal(int) {
  if (to_cancel != nullptr) to_cancel->cancel();
}

// The alternate screen without a cursor and with keys read one by one, and the way back.
class Screen {
 public:
  explicit Screen(std::ostream& out) : out_(out) {
    keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (keys_) {
      termios raw = before_;
      raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    out_ << "\x1b[?1049h\x1b[?25l" << std::flush;
  }
  ~Screen() {
    out_ << "\x1b[?25h\x1b[?1049l" << std::flush;
    if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool keys() const { return keys_; }

  void draw(const api::TopView& view, const TopEndpoints& endpoints, bool colour) {
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const std::size_t columns = size.ws_col == 0 ? 80 : size.ws_col;
    std::size_t rows = size.ws_row == 0 ? 24 : size.ws_row;
    std::istringstream lines(top_text(view, colour, columns) + endpoints.text(colour, columns));
    std::string frame = "\x1b[H";
    for (std::string line; rows > 1 && std::getline(lines, line); --rows)
      frame += line + "\x1b[K\n";
    out_ << frame << "\x1b[J" << std::flush;
  }

 private:
  std::ostream& out_;
  bool keys_ = false;
  termios before_{};
};

// Cancels when somebody presses q.
class QuitKey {
 public:
  QuitKey(bool wanted, const http::Canceller& canceller) {
    if (wanted) thread_ = std::thread([this, &canceller] { wait(canceller); });
  }
  ~QuitKey() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  QuitKey(const QuitKey&) = delete;
  QuitKey& operator=(const QuitKey&) = delete;

 private:
  void wait(const http::Canceller& canceller) {
    constexpr int patience_ms = 200;  // until it looks whether the stream has ended
    while (!ended_ && !canceller.cancelled()) {
      pollfd key{STDIN_FILENO, POLLIN, 0};
      if (::poll(&key, 1, patience_ms) != 1) continue;
      char pressed = 0;
      if (::read(STDIN_FILENO, &pressed, 1) != 1) return;
      if (pressed == 'q') canceller.cancel();
    }
  }

  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

std::string tasks_text(const api::TopView& view, bool colour, std::size_t width) {
  Table table({{"ID"},
               {"TENANT"},
               {"NAME", Align::left, true, 2},
               {"STATE"},
               {"DEVICE", Align::left, false, 1},
               {"SHARE", Align::right},
               {"MEASURED", Align::right},
               {"TIME", Align::right},
               {"COST", Align::right},
               {"", Align::left, false, 3},
               {"", Align::left, true, 4}});
  for (const api::TaskView& task : view.tasks) {
    const bool placed = task.state != "waiting" && task.state != "paused";
    table.add({task.id, task.tenant, task.name, Cell(task.state, style_of(task)),
               placed ? task.device : "", placed ? percent(task.share) : "",
               task.share_measured ? percent(*task.share_measured) : "",
               human_duration(task.run_ms), money_short(task.cost_with_tax, task.currency),
               task.currency, placed ? command_text(task.command) : task.reason});
  }
  return table.text(colour, width);
}

// The view with the endpoints, where there is a gateway.
int print_json(Session& session, const api::TopView& view, const TopEndpoints& endpoints) {
  if (endpoints.json.empty()) return session.print_json(view);
  std::string document = api::to_json(view);
  const std::size_t end = document.rfind('}');
  LOAM_ASSERT(end != std::string::npos);
  session.out() << document.substr(0, end) << ",\"endpoints\":" << endpoints.json << "}\n";
  return 0;
}

}  // namespace

std::string top_text(const api::TopView& view, bool colour, std::size_t width) {
  std::string text = "loam  " + instant_text(view.now) + "  " + std::to_string(view.tasks_running) +
                     " running, " + std::to_string(view.tasks_waiting) + " waiting\n\n";
  Table devices({{"DEVICE"},
                 {"TYPE", Align::left, true, 2},
                 {"STATE"},
                 {"CE", Align::right},
                 {"PROMISED", Align::right},
                 {"MEMORY", Align::right},
                 {"OF", Align::right},
                 {"TASKS", Align::right},
                 {"", Align::left, true, 3}});
  for (const api::DeviceView& device : view.devices) {
    devices.add({device.name, device.type,
                 Cell(device.state, device.state == "ready" ? Style::good : Style::warn), device.ce,
                 promised_text(device.promised, device.used), memory_text(device.memory_used_mib),
                 memory_text(device.memory_mib), std::to_string(device.leases), device.note});
  }
  text += devices.empty() ? "no devices\n" : devices.text(colour, width);
  if (!view.tasks.empty()) text += "\n" + tasks_text(view, colour, width);
  if (view.tasks_left_out > 0)
    text += "… and " + count_of(view.tasks_left_out, "more task") + ": loam ps\n";
  return text;
}

Result<int> run_top(Session& session, const Arguments& arguments) {
  LOAM_TRY(client, session.client());
  Console& console = session.console();
  if (session.json() || arguments.has("once") || !console.out_is_terminal) {
    LOAM_TRY(view, client->top());
    const TopEndpoints endpoints = top_endpoints(session);
    if (session.json()) return print_json(session, view, endpoints);
    session.out() << top_text(view, console.colour, session.width())
                  << endpoints.text(console.colour, session.width());
    return 0;
  }
  http::Canceller canceller;
  to_cancel = &canceller;
  struct sigaction action {};
  struct sigaction before_interrupt {};
  struct sigaction before_end {};
  action.sa_handler = on_signal;
  ::sigaction(SIGINT, &action, &before_interrupt);
  ::sigaction(SIGTERM, &action, &before_end);
  Result<void> followed;
  bool asked_to_end = false;
  {
    Screen screen(session.out());
    const QuitKey quit(screen.keys(), canceller);
    followed = client->follow_top(
        [&](const api::TopView& view) {
          screen.draw(view, top_endpoints(session), console.colour);
          return true;
        },
        &canceller);
    asked_to_end = canceller.cancelled();
  }
  ::sigaction(SIGINT, &before_interrupt, nullptr);
  ::sigaction(SIGTERM, &before_end, nullptr);
  to_cancel = nullptr;
  if (!followed && !asked_to_end) return followed.error();
  return 0;
}

}  // namespace loam::cli
