// Availability of spot, as JSON and as a model: no input crashes the readers, and what they accept
// can be run.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "sim/trace/spot.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loam;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = sim::parse_availability("trace", text);
  if (trace.ok()) {
    LOAM_ASSERT(trace->gap.ms > 0 && !trace->available.empty());
    const auto terms =
        schedule::spot::terms_of(trace->gap * 3, trace->gap * 6, trace->gap, trace->gap, 317'000);
    LOAM_ASSERT(terms.ok());
    const auto outcome =
        sim::run_spot(schedule::spot::Policy::reserve, *terms, trace->available, 0);
    LOAM_ASSERT(!outcome.ok() || !outcome->missed);
  } else {
    LOAM_ASSERT(!trace.error().message.empty() && !trace.error().next_step.empty());
  }
  const auto model = sim::parse_availability_model("model", text);
  if (model.ok()) {
    LOAM_ASSERT(model->transitions.size() == model->states() * model->states());
    LOAM_ASSERT(sim::generate_availability(*model, 8, 1).size() == 8);
  } else {
    LOAM_ASSERT(!model.error().message.empty() && !model.error().next_step.empty());
  }
  return 0;
}
