// The projector: writes each event into the projection tables. A function of the journal alone,
// so that the tables can be rebuilt from it. Not pure: writes a database.
#pragma once

#include <memory>

#include "domain/event.hpp"
#include "store/sqlite.hpp"

namespace loam::store {

class Projector {
 public:
  // Prepares every statement. Requires the projection tables; `database` must outlive this.
  static Result<Projector> prepare(Database& database);

  Projector(Projector&&) noexcept;
  Projector& operator=(Projector&&) noexcept;
  ~Projector();

  // In the transaction of the caller. A failure leaves the tables half written: roll back.
  Result<void> apply(const Record& record);
  // Remembers in meta that every record up to `sequence` is in the tables.
  Result<void> mark(std::uint64_t sequence);

 private:
  struct Statements;
  explicit Projector(std::unique_ptr<Statements> statements);
  std::unique_ptr<Statements> statements_;
};

}  // namespace loam::store
