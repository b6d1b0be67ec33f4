// The journal's text of an event: JSON, named by type and version. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "domain/event.hpp"

namespace loam {

struct EncodedEvent {
  std::string type;
  int version = 0;
  std::string payload;  // one JSON object without newlines
};

// "task_accepted": the stable name of the event's type.
std::string_view type_of(const Event& event);

EncodedEvent encode(const Event& event);

// Reads any version ever written, lifting old ones. ErrorKind::corrupt for a payload that is not
// what was written, ErrorKind::unsupported for a type or version newer than this program.
Result<Event> decode(const EncodedEvent& encoded);

}  // namespace loam
