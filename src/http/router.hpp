// A route table: METHOD /v1/tasks/{id} to the index of whoever answers it. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "http/message.hpp"

namespace loam::http {

struct RouteMatch {
  std::size_t index = 0;              // what add() was given
  std::vector<Parameter> parameters;  // by name, in the pattern's order

  // Requires a name that the pattern has.
  const std::string& operator[](std::string_view name) const;
};
struct NoRoute {};  // 404
struct WrongMethod {
  std::string allow;  // the Allow header of the 405: "GET, HEAD, POST"
};
using RouteResult = std::variant<RouteMatch, NoRoute, WrongMethod>;

class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // `pattern`: '/' and segments, each literal, "{name}" (exactly one segment) or, last,
  // "{name...}" (the rest of the path, at least one segment). Refused: a malformed pattern, a name
  // used twice in it, and a method and pattern that are there already (names do not matter).
  Result<void> add(Method method, std::string_view pattern, std::size_t index);

  // `path` as Request::path has it. Literal segments win over captures, captures over the rest
  // of the path. HEAD takes the GET route where it has none of its own. Costs at most one visit to
  // each node of the table.
  RouteResult match(Method method, std::string_view path) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

}  // namespace loam::http
