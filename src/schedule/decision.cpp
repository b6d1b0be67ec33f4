#include "schedule/decision.hpp"

namespace loam::schedule {

const char* name_of(WaitCode code) noexcept {
  switch (code) {
    case WaitCode::no_room:
      return "no_room";
    case WaitCode::quota_exceeded:
      return "quota_exceeded";
    case WaitCode::would_delay:
      return "would_delay";
    case WaitCode::behind:
      return "behind";
    case WaitCode::drains_for:
      return "drains_for";
    case WaitCode::held_by_reservation:
      return "held_by_reservation";
    case WaitCode::barred_environment:
      return "barred_environment";
    case WaitCode::backing_off:
      return "backing_off";
    case WaitCode::not_due:
      return "not_due";
    case WaitCode::victims_leaving:
      return "victims_leaving";
    case WaitCode::moving:
      return "moving";
    case WaitCode::no_reservation:
      return "no_reservation";
    case WaitCode::never_fits:
      return "never_fits";
    case WaitCode::funds:
      return "funds";
  }
  return "";
}

std::string code_text(const Wait& wait) {
  std::string text = name_of(wait.code);
  if (wait.other.valid()) return text + "(" + wait.other.text() + ")";
  if (wait.reservation.valid()) return text + "(" + wait.reservation.text() + ")";
  return text;
}

std::string to_text(const Wait& wait) {
  switch (wait.code) {
    case WaitCode::no_room:
      return "nothing that is free holds it";
    case WaitCode::quota_exceeded:
      return to_text(wait.shortfall);
    case WaitCode::would_delay:
      return "starting it now would delay " + wait.other.text() + ", which has a promised start";
    case WaitCode::behind:
      return wait.other.text() + " is before it and waits for the same devices";
    case WaitCode::drains_for:
      return "devices are kept for " + wait.other.text() + ", which has waited too long";
    case WaitCode::held_by_reservation:
      return "what is free is locked for " + wait.reservation.text();
    case WaitCode::barred_environment:
      return "its environment may not use this queue's devices";
    case WaitCode::backing_off:
      return "its last start failed; it is tried again at " + to_text(wait.at);
    case WaitCode::not_due:
      return "it is to start at " + to_text(wait.at);
    case WaitCode::victims_leaving:
      return "its place is being cleared";
    case WaitCode::moving:
      return "moved to make room for " + wait.other.text() +
             "; it goes on once its new place is cleared";
    case WaitCode::no_reservation:
      return "its reservation " + wait.reservation.text() + " has not begun, is over, or is full";
    case WaitCode::never_fits:
      return "no device in the pool could hold it even if it were empty";
    case WaitCode::funds:
      return "its tenant cannot pay for it now";
  }
  return {};
}

}  // namespace loam::schedule
