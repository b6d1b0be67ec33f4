#include "api/fixture.hpp"
#include "api/log_piece.hpp"

namespace loam::api::testing {
namespace {

class LiveTest : public ApiTest {
 protected:
  void tick(Duration length = Duration::seconds(1)) {
    now_.ms += length.ms;
    api->tick(now_);
  }
  void say(TaskId task, const std::string& text, LogStream stream = LogStream::out) {
    daemon.logs[{task, stream}] += text;
  }
  static std::vector<std::string> types(const Caught& answer) {
    std::vector<std::string> found;
    for (const auto& event : answer.stream->events()) found.push_back(event.type);
    return found;
  }
  static std::string text_of(const Caught& answer, const std::string& stream = "stdout") {
    std::string text;
    for (const auto& event : answer.stream->events()) {
      if (event.type != "log") continue;
      const auto view = from_json<LogView>(event.data);
      if (view->stream == stream) text += *bytes_of(*view);
    }
    return text;
  }
  static TaskView last_task(const Caught& answer) {
    TaskView view;
    for (const auto& event : answer.stream->events()) {
      if (event.type == "task") view = *from_json<TaskView>(event.data);
    }
    return view;
  }

 private:
  Instant now_{1'000'000};
};

TEST_F(LiveTest, a_log_is_read_in_pieces) {
  const TaskId id = submit();
  say(id, "hello\n");
  const auto view = get("/v1/tasks/" + id.text() + "/logs").as<LogView>();
  EXPECT_EQ(view.data, "hello\n");
  EXPECT_EQ(view.next_offset, 6);
  EXPECT_FALSE(view.ended);
  EXPECT_EQ(get("/v1/tasks/" + id.text() + "/logs?offset=4").as<LogView>().data, "o\n");
  EXPECT_EQ(get("/v1/tasks/" + id.text() + "/logs?offset=99").as<LogView>().data, "");
  EXPECT_EQ(get("/v1/tasks/" + id.text() + "/logs?stream=stderr").as<LogView>().data, "");
}

TEST_F(LiveTest, bytes_that_are_no_text_survive) {
  const TaskId id = submit();
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  say(id, bytes);
  const auto view = get("/v1/tasks/" + id.text() + "/logs").as<LogView>();
  EXPECT_EQ(view.encoding, "base64");
  EXPECT_EQ(*bytes_of(view), bytes);
  const Caught followed = get("/v1/tasks/" + id.text() + "/logs?follow=true");
  EXPECT_EQ(text_of(followed), bytes);
}

TEST_F(LiveTest, what_was_rotated_away_is_said) {
  const TaskId id = submit();
  say(id, "0123456789");
  daemon.log_start = 6;
  const auto view = get("/v1/tasks/" + id.text() + "/logs?offset=2").as<LogView>();
  EXPECT_TRUE(view.truncated);
  EXPECT_EQ(view.offset, 6);
  EXPECT_EQ(view.data, "6789");
}

TEST_F(LiveTest, a_followed_log_goes_on_until_the_task_ends) {
  const TaskId id = submit();
  daemon.start(id);
  say(id, "one ");
  const Caught answer = get("/v1/tasks/" + id.text() + "/logs?follow=true");
  EXPECT_EQ(answer.response->status, 200);
  EXPECT_EQ(text_of(answer), "one ");
  say(id, "two ");
  tick(Duration{100});
  EXPECT_EQ(text_of(answer), "one two ");
  say(id, "three");
  daemon.end(id);
  tick(Duration{100});
  EXPECT_EQ(text_of(answer), "one two three");
  EXPECT_TRUE(answer.stream->finished);
}

TEST_F(LiveTest, a_follower_that_comes_back_goes_on_where_it_was) {
  const TaskId id = submit();
  say(id, "one two ");
  Caught first = get("/v1/tasks/" + id.text() + "/logs?follow=true");
  const std::string last = first.stream->events().back().id;
  first.stream->closed_ = true;
  say(id, "three");
  const Caught second = ask(http::Method::get, "/v1/tasks/" + id.text() + "/logs?follow=true", {},
                            root, {{"Last-Event-ID", last}});
  EXPECT_EQ(text_of(second), "three");
  EXPECT_EQ(ask(http::Method::get, "/v1/tasks/" + id.text() + "/logs?follow=true", {}, root,
                {{"Last-Event-ID", "x"}})
                .status(),
            400);
}

TEST_F(LiveTest, a_character_cut_in_two_is_sent_whole) {
  const TaskId id = submit();
  daemon.start(id);
  say(id, "\xe2\x82");
  const Caught answer = get("/v1/tasks/" + id.text() + "/logs?follow=true");
  EXPECT_EQ(answer.stream->events().size(), 0U);
  say(id, "\xac!");
  tick();
  ASSERT_EQ(answer.stream->events().size(), 1U);
  EXPECT_EQ(from_json<LogView>(answer.stream->events()[0].data)->data, "€!");
  say(id, "\xe2");
  daemon.end(id);
  tick();
  EXPECT_EQ(text_of(answer), "€!\xe2");
  EXPECT_TRUE(answer.stream->finished);
}

TEST_F(LiveTest, a_reader_that_is_too_slow_loses_nothing) {
  const TaskId id = submit();
  daemon.start(id);
  const Caught answer = get("/v1/tasks/" + id.text() + "/logs?follow=true");
  answer.stream->room = 1;
  say(id, "a");
  tick();
  say(id, "b");
  daemon.end(id);
  tick();
  EXPECT_EQ(text_of(answer), "a");
  EXPECT_FALSE(answer.stream->finished);
  answer.stream->room = 1 << 20;
  tick();
  EXPECT_EQ(text_of(answer), "ab");
  EXPECT_TRUE(answer.stream->finished);
}

TEST_F(LiveTest, a_watched_task_tells_changes_at_once_and_cost_each_second) {
  const TaskId id = submit();
  const Caught answer = get("/v1/tasks/" + id.text() + "/events");
  EXPECT_EQ(last_task(answer).state, "starting");
  daemon.start(id);
  tick(Duration{10});
  EXPECT_EQ(last_task(answer).state, "running");
  const std::size_t before = answer.stream->events().size();
  daemon.clock.advance(Duration::seconds(1));
  tick(Duration{100});
  EXPECT_EQ(answer.stream->events().size(), before);
  tick(Duration::seconds(1));
  EXPECT_EQ(answer.stream->events().size(), before + 1);
  EXPECT_EQ(last_task(answer).run_ms, 1000);
  EXPECT_NE(last_task(answer).cost, "0");
  daemon.end(id, 3);
  tick(Duration{10});
  EXPECT_EQ(last_task(answer).state, "finished");
  EXPECT_EQ(last_task(answer).exit_code, 3);
  EXPECT_TRUE(answer.stream->finished);
}

TEST_F(LiveTest, a_watched_task_that_waits_is_quiet) {
  for (int i = 0; i < 4; ++i) submit();
  const TaskId id = submit();
  const Caught answer = get("/v1/tasks/" + id.text() + "/events");
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_EQ(answer.stream->events().size(), 1U);
  // A sign of life all the same.
  for (int i = 0; i < 10; ++i) tick();
  EXPECT_NE(answer.stream->text.find(": still here"), std::string::npos);
}

TEST_F(LiveTest, all_output_comes_before_the_end) {
  const TaskId id = submit();
  daemon.start(id);
  const Caught answer = get("/v1/tasks/" + id.text() + "/events?logs=true");
  say(id, "out");
  say(id, "err", LogStream::err);
  daemon.end(id);
  tick(Duration{10});
  EXPECT_EQ(text_of(answer), "out");
  EXPECT_EQ(text_of(answer, "stderr"), "err");
  EXPECT_EQ(types(answer), (std::vector<std::string>{"task", "log", "log", "task"}));
  EXPECT_EQ(last_task(answer).state, "finished");
  const std::string last = answer.stream->events().back().id;
  const Caught again = ask(http::Method::get, "/v1/tasks/" + id.text() + "/events?logs=true", {},
                           root, {{"Last-Event-ID", last}});
  EXPECT_EQ(types(again), (std::vector<std::string>{"task"}));
}

TEST_F(LiveTest, more_output_than_one_step_sends_comes_whole) {
  const TaskId id = submit();
  daemon.start(id);
  std::string text;
  for (int i = 0; text.size() < 5'000'000; ++i) text += "line " + std::to_string(i) + "\n";
  say(id, text);
  daemon.end(id);
  const Caught answer = get("/v1/tasks/" + id.text() + "/events?logs=true");
  for (int i = 0; i < 20 && !answer.stream->finished; ++i) tick(Duration{10});
  EXPECT_TRUE(answer.stream->finished);
  EXPECT_EQ(text_of(answer), text);
}

TEST_F(LiveTest, only_the_head_of_a_stream_can_be_asked_for) {
  const TaskId id = submit();
  for (const std::string& target :
       {"/v1/tasks/" + id.text() + "/events", "/v1/tasks/" + id.text() + "/logs?follow=true",
        std::string("/v1/top?follow=true")}) {
    const Caught answer = ask(http::Method::head, target);
    EXPECT_EQ(answer.status(), 200);
    EXPECT_EQ(answer.stream, nullptr);
  }
}

TEST_F(LiveTest, who_leaves_is_forgotten) {
  const TaskId id = submit();
  const Caught answer = get("/v1/tasks/" + id.text() + "/events");
  answer.stream->closed_ = true;
  const std::size_t before = answer.stream->text.size();
  daemon.start(id);
  tick();
  EXPECT_EQ(answer.stream->text.size(), before);
  EXPECT_EQ(answer.stream.use_count(), 1);
}

TEST_F(LiveTest, the_top_view_comes_each_second) {
  const Caught answer = get("/v1/top?follow=true");
  EXPECT_EQ(answer.stream->events().size(), 1U);
  tick();
  tick(Duration{100});
  tick();
  EXPECT_EQ(answer.stream->events().size(), 3U);
}

}  // namespace
}  // namespace loam::api::testing
