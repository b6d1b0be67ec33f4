// Devices that are lent more than once: which factors there may be, and what a lease is promised,
// in words. What is promised of a slice is reckoned in schedule/demand.cpp. Pure.
#pragma once

#include <optional>
#include <string>

#include "domain/command.hpp"
#include "domain/lease.hpp"
#include "domain/scheduling.hpp"

namespace loam::engine {

std::optional<Reject> validate(const Oversubscription& lent);

// "at least 0.2 of the device when all are busy"; empty where all that the slice has is promised.
std::string promise_words(const Slice& slice);

}  // namespace loam::engine
