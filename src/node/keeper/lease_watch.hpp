// LeaseWatch: what the keeper keeps an eye on for one lease on one device: whether its promise is
// kept and whether it idles. Turns what the watches tell into reports. Pure but for the shared
// memory that the caller has read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "node/keeper/device_arena.hpp"
#include "node/keeper/idleness.hpp"
#include "node/keeper/promise.hpp"
#include "node/keeper/reports.hpp"

namespace loam::node {

class LeaseWatch {
 public:
  LeaseWatch(const PromiseTerms& promise, const IdleTerms& idle, std::string lease,
             std::uint32_t device, Nanoseconds now)
      : promise_(promise, now), idle_(idle, now), lease_(std::move(lease)), device_(device) {}

  // What the lease does from now on; `tell` gets reports, in the caller's clock.
  void note(const Standing& standing, Nanoseconds now,
            const std::function<void(KeeperReport)>& tell);

 private:
  PromiseWatch promise_;
  IdleWatch idle_;
  std::string lease_;
  std::uint32_t device_;
};

}  // namespace loam::node
