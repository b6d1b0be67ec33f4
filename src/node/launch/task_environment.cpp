#include "node/launch/task_environment.hpp"

#include <map>

namespace loam::node {

std::vector<std::string> task_environment(const LaunchOrder& order, const TaskPlaces& places) {
  std::map<std::string, std::string> all = order.environment;
  all.try_emplace("PATH", "/usr/local/bin:/usr/bin:/bin");
  all.try_emplace("HOME", places.working_directory);
  all.try_emplace("TMPDIR", places.temporary_directory);
  all.try_emplace("LANG", "C.UTF-8");
  all.try_emplace("POCL_CACHE_DIR", places.cache_directory);
  all.try_emplace("XDG_CACHE_HOME", places.cache_directory);

  all["LOAM_ATTEMPT"] = order.attempt;
  all["LOAM_TASK"] = order.task;
  all["LOAM_LEASE"] = order.lease;
  all["LOAM_RESTART"] = std::to_string(order.restart);
  all["LOAM_RANK"] = std::to_string(order.rank);
  all["LOAM_SIZE"] = std::to_string(order.size);
  all["LOAM_CHECKPOINT_DIR"] = places.checkpoint_directory;
  all.erase("LOAM_BACKUP_DIR");
  if (!places.backup_directory.empty()) all["LOAM_BACKUP_DIR"] = places.backup_directory;
  all["LOAM_NOTICE"] = places.notice_file;
  all["LOAM_OUTPUT_FILE"] = places.output_file;
  all.erase("LOAM_METADATA_URL");
  if (!places.metadata_url.empty()) {
    all["LOAM_METADATA_URL"] = places.metadata_url;
    // Where EC2's own tools look; it also keeps tasks from the node's instance role.
    all.try_emplace("AWS_EC2_METADATA_SERVICE_ENDPOINT", places.metadata_url);
  }
  all.erase("LOAM_RENDEZVOUS");
  all.erase("LOAM_SLICE_PAGE");
  if (!order.rendezvous.empty()) all["LOAM_RENDEZVOUS"] = order.rendezvous;
  if (!places.slice_page.empty()) all["LOAM_SLICE_PAGE"] = places.slice_page;
  if (!places.preload.empty()) {
    std::string& preload = all["LD_PRELOAD"];
    preload = preload.empty() ? places.preload : places.preload + ":" + preload;
  }

  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace loam::node
