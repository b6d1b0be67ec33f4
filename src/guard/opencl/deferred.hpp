// Commands that the driver has but that cannot run until the program sets an event of its own
// (clCreateUserEvent). They hold no turn while they wait; when the program sets the event, the turn
// is taken first and the driver hears of the event afterwards. Not pure: driver, slice page.
#pragma once

#include <cstdint>

#include "guard/opencl/driver.hpp"
#include "guard/turns.hpp"

namespace loam::guard {

// The user events that a command waits for, directly or through other commands.
struct Roots {
  static constexpr std::uint32_t most = 8;
  std::uint32_t count = 0;
  cl_event events[most] = {};

  bool holds(cl_event event) const;
  void add(cl_event event);
  void remove(cl_event event);
};

// One command from its submission to its end; freed by command_over() or where that is noted.
struct Follow {
  enum class State : std::uint8_t {
    admitted,  // holds `ticket`
    deferred,  // waits for `roots`, in the list
    moving,    // its turn is being taken, out of the list
    ended,     // ended (with an error) while moving
    unpaid,    // will end with an error, or puts nothing on the device
  };
  State state = State::admitted;
  bool needs_turn = true;
  bool is_barrier = false;  // what follows in its queue waits for it, also out of order
  std::uint32_t device = 0;
  std::uint32_t lane = LOAM_LANE_COMPUTE;
  Ticket ticket;
  cl_event event = nullptr;  // compared, never used: the driver may have ended it
  cl_event own_event = nullptr;
  cl_command_queue queue = nullptr;
  Roots roots;
  Follow* next = nullptr;
  Follow* previous = nullptr;
};

// What a new command would wait for. With more than Roots::most events it counts as waiting for
// none: it takes a turn at once and holds it. Cost: a driver call per event in the list.
Roots roots_of(cl_command_queue queue, cl_uint waits, const cl_event* list);

// Puts a command with roots into the list.
void defer(Follow* follow);
// The command's end: true if it was admitted and its ticket is to be finished; the caller then
// frees it. False: do nothing more with it, it is freed.
bool leave(Follow* follow);

// clSetUserEventStatus: takes the turns of what can now run, then tells the driver. Where a turn is
// not to be had at once, a thread of its own does both, because the caller may be a callback on
// the very thread that the device needs.
cl_int set_user_event(cl_event event, cl_int status);

}  // namespace loam::guard
