#include "guard/cuda/marks.hpp"

#include "guard/cuda/gate.hpp"

namespace loam::guard::cuda {

namespace {

CUresult record_on(CUevent event, CUstream stream, bool per_thread) {
  const Driver* const real = driver();
  if (per_thread && real->cuEventRecord_ptsz) return real->cuEventRecord_ptsz(event, stream);
  return real->cuEventRecord ? real->cuEventRecord(event, stream) : cuda_not_supported;
}

}  // namespace

CUevent Marks::take_event(CUcontext context) {
  const Driver* const real = driver();
  Event* empty = nullptr;
  for (Event& event : events_) {
    if (event.in_use) continue;
    if (event.event && event.context == context) {
      event.in_use = true;
      return event.event;
    }
    if (!event.event && !empty) empty = &event;
  }
  if (!empty || !real->cuEventCreate || real->cuEventCreate(&empty->event, 0) != cuda_success) {
    if (empty) empty->event = nullptr;
    return nullptr;
  }
  empty->context = context;
  empty->in_use = true;
  return empty->event;
}

void Marks::return_event(CUevent wanted) {
  for (Event& event : events_)
    if (event.event == wanted) event.in_use = false;
}

void Marks::record(CUstream stream, bool per_thread, std::uint64_t expected_ns,
                   const Mixture* mixture, std::uint64_t now) {
  if (count_ == marks_max) {
    // The last one stands for this work too.
    Mark& last = marks_[(first_ + count_ - 1) % marks_max];
    if (last.event && last.stream == stream && last.per_thread == per_thread)
      record_on(last.event, stream, per_thread);
    last.expected_ns += expected_ns;
    last.mixture.clear();
    expected_ns_ += expected_ns;
    return;
  }
  Mark mark;
  driver()->cuCtxGetCurrent(&mark.context);
  mark.stream = stream;
  mark.per_thread = per_thread;
  mark.expected_ns = expected_ns;
  mark.recorded_ns = now;
  if (mixture) mark.mixture = *mixture;
  mark.event = take_event(mark.context);
  if (mark.event && record_on(mark.event, stream, per_thread) != cuda_success) {
    return_event(mark.event);
    mark.event = nullptr;
  }
  marks_[(first_ + count_++) % marks_max] = mark;
  expected_ns_ += expected_ns;
}

void Marks::begin(CUstream stream, bool per_thread) {
  do_not_measure();
  driver()->cuCtxGetCurrent(&last_context_);
  last_ = take_event(last_context_);
  if (last_ && record_on(last_, stream, per_thread) != cuda_success) do_not_measure();
}

void Marks::do_not_measure() {
  if (last_) return_event(last_);
  last_ = nullptr;
  measured_ns_ = 0;
}

void Marks::finish_first(std::uint32_t lane) {
  Mark& mark = marks_[first_];
  float ms = 0;
  if (mark.event && last_ && mark.context == last_context_ && driver()->cuEventElapsedTime &&
      driver()->cuEventElapsedTime(&ms, last_, mark.event) == cuda_success && ms >= 0) {
    const auto took = static_cast<std::uint64_t>(static_cast<double>(ms) * 1e6);
    measured_ns_ += took;
    if (mark.mixture.count > 0) learn(lane, mark.mixture, took);
  }
  if (mark.event) {
    if (last_) {
      return_event(last_);
      last_ = mark.event;
    } else {
      return_event(mark.event);
    }
  }
  expected_ns_ -= mark.expected_ns < expected_ns_ ? mark.expected_ns : expected_ns_;
  first_ = (first_ + 1) % marks_max;
  --count_;
}

void Marks::poll(std::uint32_t lane, std::uint64_t now) {
  const Driver* const real = driver();
  while (count_ > 0) {
    const Mark& mark = marks_[first_];
    if (!mark.event) {
      if (now < mark.recorded_ns + mark.expected_ns) return;
    } else if (real->cuEventQuery && real->cuEventQuery(mark.event) == cuda_not_ready) {
      return;
    }
    finish_first(lane);
  }
}

void Marks::all_over() {
  while (count_ > 0) {
    if (marks_[first_].event) return_event(marks_[first_].event);
    first_ = (first_ + 1) % marks_max;
    --count_;
  }
  expected_ns_ = 0;
}

bool Marks::all_on(CUstream stream, bool per_thread) const {
  for (std::uint32_t i = 0; i < count_; ++i) {
    const Mark& mark = marks_[(first_ + i) % marks_max];
    if (mark.stream != stream || mark.per_thread != per_thread) return false;
  }
  return true;
}

void Marks::drop_context(CUcontext context) {
  if (last_context_ == context) do_not_measure();
  for (std::uint32_t i = 0; i < count_; ++i) {
    Mark& mark = marks_[(first_ + i) % marks_max];
    if (mark.context != context) continue;
    mark.event = nullptr;  // it ends with the context
    mark.expected_ns = 0;
    mark.recorded_ns = 0;
  }
  for (Event& event : events_) {
    if (!event.event || event.context != context) continue;
    if (driver()->cuEventDestroy_v2) driver()->cuEventDestroy_v2(event.event);
    event = Event{};
  }
}

void Marks::forget() {
  *this = Marks{};
}

}  // namespace loam::guard::cuda
