#include "app/gateway/instance_host.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>
#include <string_view>

namespace loam::serving {

std::string engines_folder(const Config& config) {
  return config.run_dir + "/engines";
}

std::string fresh_socket(const Config& config) {
  std::random_device entropy;
  constexpr const char* digits = "0123456789abcdef";
  std::string stem;
  for (int word = 0; word < 2; ++word) {
    std::uint32_t value = entropy();
    for (int i = 0; i < 6; ++i, value >>= 4U) stem += digits[value & 15U];
  }
  return engines_folder(config) + "/" + stem + ".sock";
}

std::string instance_name(const std::string& model, const std::string& socket) {
  return model + "-" + std::filesystem::path(socket).stem().string();
}

namespace {

constexpr std::uint64_t bytes_per_mib = 1U << 20U;
// The engine's own numbers where the arguments do not say otherwise.
constexpr std::uint64_t context_default = 512;
constexpr std::uint64_t chunk_default = 32;
constexpr std::uint64_t cache_mib_default = 256;
constexpr std::uint64_t contexts_max = 4;
constexpr std::uint64_t step_tokens = 512;
constexpr std::uint64_t cells_step = 256;  // the library rounds a context up to it

std::uint64_t after(const std::vector<std::string>& arguments, std::string_view option,
                    std::uint64_t otherwise) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] != option) continue;
    const std::string& text = arguments[i + 1];
    std::uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc{}) otherwise = value;  // the last one counts
  }
  return otherwise;
}

}  // namespace

Mebibytes predicted_memory(const EndpointConfig& endpoint, const ModelFacts& facts) {
  const auto& arguments = endpoint.arguments;
  const auto mebibytes = [](std::uint64_t bytes) {
    return Mebibytes{static_cast<std::int64_t>(bytes / bytes_per_mib) + 1};
  };
  if (facts.kv_token_bytes == 0) return mebibytes(facts.file_bytes / 4 * 5);
  const std::uint64_t slots =
      after(arguments, "--slots", static_cast<std::uint64_t>(endpoint.slots));
  const auto rounded = [](std::uint64_t cells) {
    return (cells + cells_step - 1) / cells_step * cells_step;
  };
  // Those that one stream attends over, and all.
  std::uint64_t seen = rounded(after(arguments, "--context", context_default));
  std::uint64_t cells = slots * seen;
  if (const std::uint64_t shared = after(arguments, "--cells", 0); shared > 0)
    seen = cells = rounded(shared);
  const bool adapts = std::find(arguments.begin(), arguments.end(), "--adapter") != arguments.end();
  // A step's values: some rows as wide as the model for each token, a mask over the cells that it
  // attends to, and logits for each stream and each token of a text to embed.
  constexpr std::uint64_t rows = 16;
  constexpr std::uint64_t value_bytes = 4;
  const std::uint64_t outputs = slots + after(arguments, "--chunk", chunk_default);
  const std::uint64_t step = value_bytes * (step_tokens * (rows * facts.embedding + seen) +
                                            2 * outputs * facts.vocabulary);
  const std::uint64_t context = facts.kv_token_bytes * cells + step;
  return mebibytes(facts.file_bytes + (adapts ? contexts_max : 1) * context);
}

Mebibytes instance_memory(const EndpointConfig& endpoint) {
  if (endpoint.memory_mib > 0) return Mebibytes{endpoint.memory_mib};
  const auto facts = read_model_facts(endpoint.file);
  if (facts.ok()) return predicted_memory(endpoint, *facts);
  std::error_code fault;
  const auto bytes = std::filesystem::file_size(endpoint.file, fault);
  return Mebibytes{fault ? 1 : static_cast<std::int64_t>(bytes / 4 * 5 / bytes_per_mib) + 1};
}

Mebibytes host_memory_beside(const EndpointConfig& endpoint) {
  constexpr std::int64_t program_mib = 768;
  const std::uint64_t cache = after(endpoint.arguments, "--cache-mib", cache_mib_default);
  return Mebibytes{program_mib + static_cast<std::int64_t>(
                                     std::min<std::uint64_t>(cache, std::uint64_t{1} << 40U))};
}

Result<void> check_model(const EndpointConfig& endpoint) {
  LOAM_TRY(facts, read_model_facts(endpoint.file));
  const Mebibytes need = predicted_memory(endpoint, facts);
  if (endpoint.memory_mib == 0 || facts.kv_token_bytes == 0 || endpoint.memory_mib >= need.value) {
    return {};
  }
  return Error{ErrorKind::exhausted,
               "an instance takes " + std::to_string(need.value) + " MiB (weights " +
                   std::to_string(facts.file_bytes / bytes_per_mib) + ", the rest contexts) and " +
                   std::to_string(endpoint.memory_mib) + " MiB are asked for it",
               "ask for more memory, or make --context or --slots smaller"};
}

std::vector<std::string> engine_command(const Config& config, const EndpointConfig& endpoint,
                                        const std::string& socket) {
  std::vector<std::string> command{config.engine_program,
                                   "--model",
                                   endpoint.file,
                                   "--name",
                                   endpoint.model,
                                   "--socket",
                                   socket,
                                   "--slots",
                                   std::to_string(endpoint.slots),
                                   "--usage",
                                   engines_folder(config) + "/engine-usage.jsonl"};
  command.insert(command.end(), endpoint.arguments.begin(), endpoint.arguments.end());
  return command;
}

}  // namespace loam::serving
