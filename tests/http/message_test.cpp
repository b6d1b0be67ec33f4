#include "http/message.hpp"

#include <gtest/gtest.h>

#include "http/responder.hpp"
#include "http/wire.hpp"

namespace loam::http {
namespace {

TEST(Headers, CompareNamesWithoutCase) {
  Headers headers{{"Content-Type", "a"}, {"X-Two", "1"}, {"x-two", "2"}};
  EXPECT_EQ(headers.get("content-TYPE"), "a");
  EXPECT_EQ(headers.get("missing", "none"), "none");
  EXPECT_EQ(headers.count("X-TWO"), 2u);
  headers.set("X-TWO", "3");
  EXPECT_EQ(headers.count("x-two"), 1u);
  headers.remove("content-type");
  EXPECT_EQ(headers.find("Content-Type"), nullptr);
}

TEST(Headers, ForgeriesAreSeen) {
  EXPECT_TRUE(valid_header("X-A", "b\tc \xc3\xa4"));
  EXPECT_TRUE(valid_header("X-A", ""));
  for (const char* name : {"", "a b", "a:", "a\n", "\xc3\xa4", "a("})
    EXPECT_FALSE(valid_header(name, "x")) << name;
  for (const char* value : {"a\r\nSet-Cookie: b", "a\n", "\x01", "\x7f"})
    EXPECT_FALSE(valid_header("X", value)) << value;
  EXPECT_FALSE(valid_header("X", std::string_view("a\0b", 3)));
}

TEST(Method, NamesAreCaseSensitive) {
  for (Method method : {Method::get, Method::head, Method::post, Method::put, Method::patch,
                        Method::del, Method::options})
    EXPECT_EQ(parse_method(name_of(method)), method);
  EXPECT_EQ(parse_method("get"), std::nullopt);
  EXPECT_EQ(parse_method("BREW"), std::nullopt);
}

TEST(Wire, WritesHeads) {
  Response response = make_response(404, "text/plain", "no");
  response.headers.add("Connection", "upgrade");  // the server's own, so left out
  response.headers.add("content-length", "99");
  EXPECT_EQ(response_head(response, {Framing::length, 2, false, 0}),
            "HTTP/1.1 404 Not Found\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
            "Content-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(http_date(1'772'409'600), "Mon, 02 Mar 2026 00:00:00 GMT");
  EXPECT_EQ(chunk(std::string(26, 'x')), "1a\r\n" + std::string(26, 'x') + "\r\n");
  Request request;
  request.method = Method::post;
  request.path = "/a b";
  EXPECT_EQ(request_bytes(request, "h"),
            "POST /a%20b HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}

// An exchange of the test's own, as the users of the seam write them.
struct RecordedExchange final : Exchange {
  explicit RecordedExchange(std::vector<int>& given) : statuses(given) {}
  void answer(Response response) override { statuses.push_back(response.status); }
  std::shared_ptr<StreamSink> begin(Response response, bool) override {
    statuses.push_back(response.status);
    return nullptr;
  }
  std::vector<int>& statuses;
};

TEST(Responder, AnswersExactlyOnce) {
  std::vector<int> statuses;
  {
    Responder first(std::make_unique<RecordedExchange>(statuses));
    Responder second = std::move(first);
    second.respond(make_response(204, "", ""));
    EXPECT_FALSE(second.pending());
  }
  EXPECT_EQ(statuses, std::vector<int>{204});
  statuses.clear();
  { Responder dropped(std::make_unique<RecordedExchange>(statuses)); }
  EXPECT_EQ(statuses, std::vector<int>{500});
  statuses.clear();
  {
    Responder one(std::make_unique<RecordedExchange>(statuses));
    one = Responder(std::make_unique<RecordedExchange>(statuses));  // the first is dropped
    EXPECT_EQ(statuses, std::vector<int>{500});
    one.respond({});
  }
  EXPECT_EQ(statuses, (std::vector<int>{500, 200}));
}

TEST(ResponderDeathTest, ASecondAnswerIsAProgrammersError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::vector<int> statuses;
        Responder responder(std::make_unique<RecordedExchange>(statuses));
        responder.respond({});
        responder.respond({});
      },
      "pending");
}

}  // namespace
}  // namespace loam::http
