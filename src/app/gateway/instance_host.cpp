#include "app/gateway/instance_host.hpp"

#include <filesystem>
#include <random>

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

Mebibytes instance_memory(const EndpointConfig& endpoint) {
  if (endpoint.memory_mib > 0) return Mebibytes{endpoint.memory_mib};
  std::error_code fault;
  const auto bytes = std::filesystem::file_size(endpoint.file, fault);
  return Mebibytes{fault ? 1 : static_cast<std::int64_t>(bytes / 4 * 5 / (1U << 20U)) + 1};
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
