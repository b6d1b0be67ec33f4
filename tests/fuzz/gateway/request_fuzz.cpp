// A body is a request whose every figure is in range, or an error with a message; and what is
// taken fits the engine's own checks.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "gateway/request.hpp"
#include "http/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace loam;
  using namespace loam::gateway;
  if (size == 0) return 0;
  const auto work = static_cast<Work>(data[0] % 3);
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto parsed = parse_request(work, body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    LOAM_ASSERT(error->status == 400);
    LOAM_ASSERT(!error->message.empty());
    LOAM_ASSERT(http::is_utf8(to_response(*error).body));
    return 0;
  }
  const auto& request = std::get<InferenceRequest>(parsed);
  LOAM_ASSERT(!request.model.empty());
  LOAM_ASSERT(!request.prompts.empty() && request.prompts.size() <= prompts_max);
  LOAM_ASSERT(request.choices >= 1 && request.choices <= infer::choices_max);
  LOAM_ASSERT(infer::check_sampling(request.sampling).ok());
  for (const infer::Prompt& prompt : request.prompts) LOAM_ASSERT(infer::check_prompt(prompt).ok());
  return 0;
}
