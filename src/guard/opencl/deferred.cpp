#include "guard/opencl/deferred.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "guard/lock.hpp"
#include "guard/page.hpp"

namespace loam::guard {

namespace {

pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
Follow* list = nullptr;  // all that are deferred
// Events on their way to being set: what comes now does not wait for them in earnest.
constexpr std::uint32_t being_set_max = 64;
cl_event being_set[being_set_max];
std::uint32_t being_set_count = 0;
std::atomic<std::uint32_t> deferred_count{0};

void forget_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  std::memcpy(&list_lock, &fresh, sizeof fresh);
  list = nullptr;
  being_set_count = 0;
  deferred_count = 0;
}

[[gnu::constructor]] void forget_after_fork() {
  at_fork_in_child(&forget_in_child);
}

bool is_being_set(cl_event event) {
  for (std::uint32_t i = 0; i < being_set_count; ++i)
    if (being_set[i] == event) return true;
  return false;
}

void unlink(Follow* follow) {
  if (follow->previous)
    follow->previous->next = follow->next;
  else
    list = follow->next;
  if (follow->next) follow->next->previous = follow->previous;
  --deferred_count;
}

cl_int status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  driver().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                          nullptr);
  return status;
}

bool is_user_event(cl_event event) {
  cl_command_type type = 0;
  return driver().clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr) ==
             CL_SUCCESS &&
         type == CL_COMMAND_USER;
}

bool is_in_order(cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  driver().clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                 nullptr);
  return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
}

// Adds all of `more`; false when there is no room.
bool merge(Roots& roots, const Roots& more) {
  for (std::uint32_t i = 0; i < more.count; ++i) {
    if (!roots.holds(more.events[i]) && roots.count == Roots::most) return false;
    roots.add(more.events[i]);
  }
  return true;
}

// What a set event frees, handed to a thread.
struct Release {
  cl_event event = nullptr;
  cl_int status = CL_COMPLETE;
  Follow* ready = nullptr;  // linked by `next`
};

// The turn of one freed command has been taken (or not needed).
void settle(Page& page, Follow* follow, const Ticket& ticket) {
  bool ended = false;
  {
    const Locked locked(list_lock);
    ended = follow->state == Follow::State::ended;
    if (!ended) {
      follow->ticket = ticket;
      follow->state = Follow::State::admitted;
    }
  }
  if (!ended) return;
  finish(page, ticket, false);
  std::free(follow);
}

void release_now(const Release& release) {
  if (Page* const page = Page::of_process()) {
    for (Follow* follow = release.ready; follow;) {
      Follow* const next = follow->next;
      settle(*page, follow, admit_deferred(*page, follow->device, follow->lane));
      follow = next;
    }
  }
  driver().clSetUserEventStatus(release.event, release.status);
  {
    const Locked locked(list_lock);
    for (std::uint32_t i = 0; i < being_set_count; ++i)
      if (being_set[i] == release.event) {
        being_set[i] = being_set[--being_set_count];
        break;
      }
  }
  driver().clReleaseEvent(release.event);
}

void* release_in_thread(void* data) {
  const Release release = *static_cast<Release*>(data);
  std::free(data);
  release_now(release);
  return nullptr;
}

// Takes out of the list what only waited for `event`. With an error status nothing of it will run.
Follow* take_ready(cl_event event, bool will_run) {
  Follow* ready = nullptr;
  for (Follow* follow = list; follow;) {
    Follow* const next = follow->next;
    if (follow->roots.holds(event)) {
      follow->roots.remove(event);
      if (!will_run || follow->roots.count == 0) {
        unlink(follow);
        const bool pays = will_run && follow->needs_turn;
        follow->state = pays ? Follow::State::moving : Follow::State::unpaid;
        if (pays) {
          follow->next = ready;
          ready = follow;
        }
      }
    }
    follow = next;
  }
  return ready;
}

}  // namespace

bool Roots::holds(cl_event event) const {
  for (std::uint32_t i = 0; i < count; ++i)
    if (events[i] == event) return true;
  return false;
}

void Roots::add(cl_event event) {
  if (!holds(event) && count < most) events[count++] = event;
}

void Roots::remove(cl_event event) {
  for (std::uint32_t i = 0; i < count; ++i)
    if (events[i] == event) {
      events[i] = events[--count];
      return;
    }
}

Roots roots_of(cl_command_queue queue, cl_uint waits, const cl_event* waited) {
  Roots roots;
  if (!driver().clGetEventInfo || !driver().clRetainEvent) return roots;
  const bool any = deferred_count.load() > 0;
  if (!any && (waits == 0 || !waited)) return roots;
  const bool in_order = any && is_in_order(queue);
  const Locked locked(list_lock);
  bool room = true;
  for (cl_uint i = 0; waited && i < waits && room; ++i) {
    const cl_event event = waited[i];
    if (is_user_event(event)) {
      if (status_of(event) > CL_COMPLETE && !is_being_set(event)) {
        Roots one;
        one.add(event);
        room = merge(roots, one);
      }
      continue;
    }
    for (const Follow* follow = list; follow && room; follow = follow->next)
      if (follow->event == event) room = merge(roots, follow->roots);
  }
  for (const Follow* follow = list; follow && room; follow = follow->next)
    if (follow->queue == queue && (in_order || follow->is_barrier))
      room = merge(roots, follow->roots);
  return room ? roots : Roots{};
}

void defer(Follow* follow) {
  const Locked locked(list_lock);
  // An event that was set since roots_of() looked will not free this command: count it as gone.
  for (std::uint32_t i = 0; i < follow->roots.count;)
    if (is_being_set(follow->roots.events[i]) || status_of(follow->roots.events[i]) <= CL_COMPLETE)
      follow->roots.remove(follow->roots.events[i]);
    else
      ++i;
  if (follow->roots.count == 0) {
    follow->state = Follow::State::unpaid;
    return;
  }
  follow->state = Follow::State::deferred;
  follow->next = list;
  follow->previous = nullptr;
  if (list) list->previous = follow;
  list = follow;
  ++deferred_count;
}

bool leave(Follow* follow) {
  {
    const Locked locked(list_lock);
    switch (follow->state) {
      case Follow::State::admitted:
        return true;
      case Follow::State::deferred:
        unlink(follow);
        break;
      case Follow::State::moving:
        follow->state = Follow::State::ended;
        return false;  // freed by settle()
      case Follow::State::ended:
      case Follow::State::unpaid:
        break;
    }
  }
  std::free(follow);
  return false;
}

cl_int set_user_event(cl_event event, cl_int status) {
  const Driver& real = driver();
  if (deferred_count.load() == 0 || !is_user_event(event) || status_of(event) <= CL_COMPLETE ||
      status > CL_COMPLETE)
    return real.clSetUserEventStatus(event, status);
  Page* const page = Page::of_process();
  Follow* ready = nullptr;
  {
    const Locked locked(list_lock);
    if (is_being_set(event) || being_set_count == being_set_max) return CL_INVALID_OPERATION;
    being_set[being_set_count++] = event;
    ready = take_ready(event, status == CL_COMPLETE && page);
  }
  real.clRetainEvent(event);
  while (ready) {
    Follow* const next = ready->next;
    Ticket ticket;
    if (!admit_deferred_now(*page, ready->device, ready->lane, &ticket)) break;
    settle(*page, ready, ticket);
    ready = next;
  }
  Release release{event, status, ready};
  Release* const copy = ready ? static_cast<Release*>(std::malloc(sizeof(Release))) : nullptr;
  pthread_t thread;
  if (copy) *copy = release;
  if (copy && ::pthread_create(&thread, nullptr, &release_in_thread, copy) == 0) {
    ::pthread_detach(thread);
    return CL_SUCCESS;
  }
  std::free(copy);
  release_now(release);
  return CL_SUCCESS;
}

}  // namespace loam::guard
