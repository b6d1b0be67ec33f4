#include "http/router.hpp"

#include <gtest/gtest.h>

namespace loam::http {
namespace {

Router table(std::vector<std::pair<Method, const char*>> routes) {
  Router router;
  for (std::size_t i = 0; i < routes.size(); ++i)
    EXPECT_TRUE(router.add(routes[i].first, routes[i].second, i).ok()) << routes[i].second;
  return router;
}

std::size_t index_of(const Router& router, Method method, std::string_view path) {
  const auto result = router.match(method, path);
  const auto* match = std::get_if<RouteMatch>(&result);
  EXPECT_NE(match, nullptr) << path;
  return match != nullptr ? match->index : 999;
}

std::string allow_of(const Router& router, Method method, std::string_view path) {
  const auto result = router.match(method, path);
  const auto* wrong = std::get_if<WrongMethod>(&result);
  EXPECT_NE(wrong, nullptr) << path;
  return wrong != nullptr ? wrong->allow : "";
}

TEST(Router, FindsRoutesAndCaptures) {
  const auto router = table({{Method::get, "/"},
                             {Method::get, "/v1/tasks"},
                             {Method::post, "/v1/tasks"},
                             {Method::get, "/v1/tasks/{id}"},
                             {Method::get, "/v1/tasks/{id}/attempts/{number}"},
                             {Method::get, "/ui/{path...}"}});
  EXPECT_EQ(index_of(router, Method::get, "/"), 0u);
  EXPECT_EQ(index_of(router, Method::get, "/v1/tasks"), 1u);
  EXPECT_EQ(index_of(router, Method::post, "/v1/tasks"), 2u);
  EXPECT_EQ(index_of(router, Method::head, "/v1/tasks"), 1u);
  const auto attempt = std::get<RouteMatch>(router.match(Method::get, "/v1/tasks/t17/attempts/2"));
  EXPECT_EQ(attempt.index, 4u);
  EXPECT_EQ(attempt["id"], "t17");
  EXPECT_EQ(attempt["number"], "2");
  const auto file = std::get<RouteMatch>(router.match(Method::get, "/ui/css/a.css"));
  EXPECT_EQ(file["path"], "css/a.css");
}

TEST(Router, TellsUnknownPathsFromWrongMethods) {
  const auto router = table({{Method::get, "/v1/tasks"},
                             {Method::post, "/v1/tasks"},
                             {Method::del, "/v1/tasks/{id}"},
                             {Method::get, "/ui/{path...}"}});
  for (const char* path : {"/", "/v1", "/v1/task", "/v1/tasks/t1/x", "/ui", "", "v1/tasks"})
    EXPECT_TRUE(std::holds_alternative<NoRoute>(router.match(Method::get, path))) << path;
  EXPECT_EQ(allow_of(router, Method::del, "/v1/tasks"), "GET, HEAD, POST");
  EXPECT_EQ(allow_of(router, Method::get, "/v1/tasks/t1"), "DELETE");
  EXPECT_EQ(allow_of(router, Method::head, "/v1/tasks/t1"), "DELETE");
}

TEST(Router, LiteralsWinOverCapturesOverTheRest) {
  const auto router = table({{Method::get, "/{a}/x"},
                             {Method::get, "/v1/{b}"},
                             {Method::get, "/{rest...}"},
                             {Method::get, "/v1/x"},
                             {Method::post, "/{a}/y"}});
  EXPECT_EQ(index_of(router, Method::get, "/v1/x"), 3u);
  EXPECT_EQ(index_of(router, Method::get, "/v1/q"), 1u);
  EXPECT_EQ(index_of(router, Method::get, "/v2/x"), 0u);
  EXPECT_EQ(index_of(router, Method::get, "/v2/q"), 2u);
  EXPECT_EQ(index_of(router, Method::get, "/v1/x/z"), 2u);  // back from two dead ends
  EXPECT_EQ(index_of(router, Method::post, "/v1/y"), 4u);   // the literal has no POST
  EXPECT_EQ(allow_of(router, Method::put, "/v1/y"), "GET, HEAD, POST");
}

TEST(Router, RefusesBadPatterns) {
  for (const char* pattern :
       {"", "v1", "/v1/", "//", "/a//b", "/{", "/}", "/{}", "/{A}", "/a{b}", "/{a}b", "/{a}{b}",
        "/{a}/{a}", "/{a...}/b", "/..", "/./a", "/{...}"}) {
    Router router;
    EXPECT_FALSE(router.add(Method::get, pattern, 0).ok()) << pattern;
  }
  Router router;
  EXPECT_TRUE(router.add(Method::get, "/a/{b}", 0).ok());
  EXPECT_TRUE(router.add(Method::post, "/a/{c}", 1).ok());
  const auto twice = router.add(Method::get, "/a/{d}", 2);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().kind, ErrorKind::conflict);
}

}  // namespace
}  // namespace loam::http
