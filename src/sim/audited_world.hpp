// AuditedWorld: a world whose every durable record an auditor hears. Pure.
#pragma once

#include "sim/auditor.hpp"
#include "sim/world.hpp"

namespace loam::sim {

class AuditedWorld : public World {
 public:
  AuditedWorld(Instant start, std::uint64_t seed);

  // Also told every record, after the auditor.
  void on_record(std::function<void(const Record&)> listener) { second_ = std::move(listener); }

  // Compares the auditor's books with the engine's, where the daemon is up.
  void audit();
  // Rule 12: the journal, replayed from its start, gives the state that is; also from its snapshot.
  void check_replay();
  // Rule 4 and 8 against the truth of the nodes, by clocks that were not set back.
  void check_nodes();
  // Rule 6 likewise, whatever the clocks say.
  void check_notices();

  Auditor& auditor() { return auditor_; }
  // The first rule broken, in words; empty while all is well.
  const std::string& broken() const;

 private:
  Auditor auditor_;
  std::function<void(const Record&)> second_;
  std::string broken_;
};

}  // namespace loam::sim
