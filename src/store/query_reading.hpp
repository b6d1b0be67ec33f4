// What the files of queries share: a connection for one call, and rows read by a function. Internal
// to this folder.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "store/columns.hpp"
#include "store/queries.hpp"

namespace loam::store {

inline constexpr std::int64_t page_max = 1000;

template <class Tag>
std::int64_t number(Id<Tag> id) {
  return static_cast<std::int64_t>(id.value);
}

// Runs a bound statement to its end, reading each row with `read`.
template <class Read>
auto read_all(Statement& statement, const Read& read)
    -> Result<std::vector<typename decltype(read(statement))::value_type>> {
  std::vector<typename decltype(read(statement))::value_type> rows;
  while (true) {
    LOAM_TRY(more, statement.step());
    if (!more) return rows;
    LOAM_TRY(row, read(statement));
    rows.push_back(std::move(row));
  }
}

// A connection for the length of one call, inside one read transaction: all of an answer is of
// one moment.
class Queries::Borrowed {
 public:
  static Result<Borrowed> take(Queries& owner) {
    LOAM_TRY(database, owner.connect());
    LOAM_CHECK(database.execute("BEGIN"));
    return Borrowed(owner, std::move(database));
  }
  Borrowed(Borrowed&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), database_(std::move(other.database_)) {}
  Borrowed& operator=(Borrowed&&) = delete;
  ~Borrowed() {
    if (owner_ == nullptr) return;
    database_.roll_back();
    owner_->give_back(std::move(database_));
  }
  Database& operator*() { return database_; }
  Database* operator->() { return &database_; }

 private:
  Borrowed(Queries& owner, Database database) : owner_(&owner), database_(std::move(database)) {}
  Queries* owner_;
  Database database_;
};

}  // namespace loam::store
