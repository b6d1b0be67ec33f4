// The metadata address: answers to what spot handlers ask, and to what they never would.
#include "node/launch/metadata.hpp"

#include <gmock/gmock.h>

namespace loam::node {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ask(const std::string& line, const std::string& deadline = {}) {
  return metadata_answer(line + " HTTP/1.1\r\nHost: x\r\n\r\n", {"t1-l1-e1", deadline});
}

constexpr const char* when = "2026-03-02T00:02:00.000Z";

TEST(Metadata, without_a_notice_handlers_hear_that_there_is_none) {
  for (const char* path : {"spot/instance-action", "spot/termination-time"})
    EXPECT_THAT(ask(std::string("GET /latest/meta-data/") + path), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("GET /computeMetadata/v1/instance/preempted"), EndsWith("\r\n\r\nFALSE"));
}

TEST(Metadata, a_notice_has_the_words_of_each_cloud) {
  EXPECT_THAT(ask("GET /latest/meta-data/spot/instance-action", when),
              EndsWith(R"({"action":"terminate","time":"2026-03-02T00:02:00.000Z"})"));
  EXPECT_THAT(ask("GET /latest/meta-data/spot/termination-time", when), EndsWith(when));
  EXPECT_THAT(ask("GET /computeMetadata/v1/instance/preempted?wait_for_change=false", when),
              EndsWith("\r\n\r\nTRUE"));
}

TEST(Metadata, clients_that_want_a_session_get_one) {
  EXPECT_THAT(ask("PUT /latest/api/token"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask("GET /latest/meta-data/instance-id"), EndsWith("t1-l1-e1"));
  EXPECT_THAT(ask("HEAD /latest/meta-data/instance-id"), EndsWith("\r\n\r\n"));
}

TEST(Metadata, everything_else_is_answered_by_an_error) {
  EXPECT_THAT(ask("GET /"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("GET /latest/meta-data/iam/security-credentials/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("DELETE /latest/meta-data/instance-id"), StartsWith("HTTP/1.1 405 "));
  for (const char* head : {"", "\r\n\r\n", "GET", "GET \r\n", "GET /x\r\n\r\n", "a b c d"})
    EXPECT_THAT(metadata_answer(head, {}), StartsWith("HTTP/1.1 400 ")) << head;
}

}  // namespace
}  // namespace loam::node
