// The route table as a tree of path segments. Pure.
#include "http/router.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/assert.hpp"

namespace loam::http {
namespace {

constexpr std::array<Method, 7> all_methods{Method::get,    Method::head,  Method::post,
                                            Method::put,    Method::patch, Method::del,
                                            Method::options};

struct Endpoint {
  std::size_t index = 0;
  std::vector<std::string> names;
};
using Endpoints = std::map<Method, Endpoint>;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  for (std::size_t at = 1; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    segments.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return segments;
}

enum class SegmentKind { literal, capture, rest };
struct Segment {
  SegmentKind kind = SegmentKind::literal;
  std::string_view text;  // the literal, or the name
};

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<Segment> parse_segment(std::string_view pattern, std::string_view text) {
  const auto bad = [&](const char* why) {
    return invalid("route '" + std::string(pattern) + "', segment '" + std::string(text) +
                   "': " + why);
  };
  if (text.empty() || text == "." || text == "..") return bad("no path has such a segment");
  if (text.find_first_of("{}") == std::string_view::npos)
    return Segment{SegmentKind::literal, text};
  if (text.front() != '{' || text.back() != '}') return bad("braces must enclose a whole segment");
  std::string_view name = text.substr(1, text.size() - 2);
  const bool rest = name.ends_with("...");
  if (rest) name.remove_suffix(3);
  if (!is_name(name)) return bad("a name is made of a-z, 0-9 and _");
  return Segment{rest ? SegmentKind::rest : SegmentKind::capture, name};
}

}  // namespace

struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> capture;
  Endpoints here;
  Endpoints rest;

  // The state of one match() on its way down the tree.
  struct Search {
    Method method;
    std::string_view path;
    const std::vector<std::string_view>& segments;
    std::vector<std::string> captured;
    std::array<bool, all_methods.size()> allowed{};
  };

  static std::optional<RouteMatch> take(const Endpoints& endpoints, Search& search) {
    for (const auto& [method, endpoint] : endpoints)
      search.allowed[static_cast<std::size_t>(method)] = true;
    auto found = endpoints.find(search.method);
    if (found == endpoints.end() && search.method == Method::head)
      found = endpoints.find(Method::get);
    if (found == endpoints.end()) return std::nullopt;
    RouteMatch match;
    match.index = found->second.index;
    LOAM_ASSERT(found->second.names.size() == search.captured.size());
    for (std::size_t i = 0; i < search.captured.size(); ++i)
      match.parameters.push_back({found->second.names[i], search.captured[i]});
    return match;
  }

  // Each node has one path from the root, so a match visits it at most once.
  std::optional<RouteMatch> descend(Search& search, std::size_t depth) const {
    if (depth == search.segments.size()) return take(here, search);
    const std::string_view segment = search.segments[depth];
    if (const auto next = literals.find(segment); next != literals.end()) {
      if (auto match = next->second->descend(search, depth + 1)) return match;
    }
    if (capture != nullptr && !segment.empty()) {
      search.captured.emplace_back(segment);
      if (auto match = capture->descend(search, depth + 1)) return match;
      search.captured.pop_back();
    }
    if (rest.empty()) return std::nullopt;
    const auto offset = static_cast<std::size_t>(segment.data() - search.path.data());
    search.captured.emplace_back(search.path.substr(offset));
    auto match = take(rest, search);
    if (!match) search.captured.pop_back();
    return match;
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

const std::string& RouteMatch::operator[](std::string_view name) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return parameter.value;
  }
  constexpr bool pattern_has_this_name = false;
  LOAM_ASSERT(pattern_has_this_name);
  return parameters.front().value;
}

Result<void> Router::add(Method method, std::string_view pattern, std::size_t index) {
  if (!pattern.starts_with('/') || (pattern.size() > 1 && pattern.ends_with('/')))
    return invalid("route '" + std::string(pattern) + "' must start with '/' and not end with it");
  Node* node = root_.get();
  Endpoints* endpoints = nullptr;
  Endpoint endpoint{index, {}};
  for (std::string_view text : split(pattern)) {
    if (endpoints != nullptr)
      return invalid("route '" + std::string(pattern) + "': nothing may follow the rest of a path");
    LOAM_TRY(segment, parse_segment(pattern, text));
    if (segment.kind == SegmentKind::literal) {
      auto& next = node->literals[std::string(segment.text)];
      if (next == nullptr) next = std::make_unique<Node>();
      node = next.get();
      continue;
    }
    const auto& names = endpoint.names;
    if (std::find(names.begin(), names.end(), segment.text) != names.end())
      return invalid("route '" + std::string(pattern) + "' has '" + std::string(segment.text) +
                     "' twice");
    endpoint.names.emplace_back(segment.text);
    if (segment.kind == SegmentKind::rest) {
      endpoints = &node->rest;
      continue;
    }
    if (node->capture == nullptr) node->capture = std::make_unique<Node>();
    node = node->capture.get();
  }
  if (endpoints == nullptr) endpoints = &node->here;
  if (!endpoints->emplace(method, std::move(endpoint)).second)
    return Error{ErrorKind::conflict,
                 std::string("route '") + name_of(method) + " " + std::string(pattern) +
                     "' is in the table already",
                 {}};
  return {};
}

RouteResult Router::match(Method method, std::string_view path) const {
  if (!path.starts_with('/')) return NoRoute{};
  const std::vector<std::string_view> segments = split(path);
  Node::Search search{method, path, segments, {}, {}};
  if (auto match = root_->descend(search, 0)) return *std::move(match);

  if (search.allowed[static_cast<std::size_t>(Method::get)])
    search.allowed[static_cast<std::size_t>(Method::head)] = true;
  WrongMethod wrong;
  for (Method known : all_methods) {
    if (!search.allowed[static_cast<std::size_t>(known)]) continue;
    if (!wrong.allow.empty()) wrong.allow += ", ";
    wrong.allow += name_of(known);
  }
  if (wrong.allow.empty()) return NoRoute{};
  return wrong;
}

}  // namespace loam::http
