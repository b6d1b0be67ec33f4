// The protocol between gateway and engine: what is written is read back, and bad bytes are refused.
#include "infer/wire.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace loam::infer::wire {
namespace {

Submit full_submit() {
  Submit submit;
  submit.stream = 7;
  submit.request = "chatcmpl-1";
  submit.tenant = "acme";
  submit.weight = 3;
  submit.service_class = ServiceClass::interactive;
  submit.prompt.kind = Prompt::Kind::messages;
  submit.prompt.messages = {{"system", "Be brief."}, {"user", "Gr\xC3\xBC\xC3\x9F dich"}};
  submit.prompt.public_extent = 1;
  submit.tokens_max = 100;
  submit.choices = 2;
  submit.sampling.temperature = 0.7F;
  submit.sampling.seed = 42;
  submit.sampling.logit_bias = {{5, -100.0F}, {9, 2.5F}};
  submit.sampling.logprobs = true;
  submit.sampling.top_logprobs = 3;
  submit.sampling.stop = {"\n\n", "END"};
  submit.sampling.grammar = {Grammar::Kind::json_schema, "{}"};
  submit.adapters = {{"legal", 0.5F}};
  return submit;
}

std::vector<Frame> every_type() {
  Stats stats;
  stats.uptime_ms = 5;
  stats.usage = {1, 2, 3, 4, 5};
  stats.tenants = {{"acme", 1, 2, 3, 4, {5, 6, 7, 8, 9}, 10}};
  Welcome welcome;
  welcome.model = "tiny";
  welcome.adapters = {"legal"};
  welcome.chat_template = true;
  return {Hello{protocol_version, "gateway"},
          full_submit(),
          Cancel{7},
          Tokenize{8, {Prompt::Kind::text, {}, "abc", {}, 0}},
          AskStats{},
          Drain{},
          welcome,
          Accepted{7, 20, 3},
          Chunk{7, 1, 12, "x\0y", {{{3, "a", -0.5F}, {{3, "a", -0.5F}, {4, "b", -1.5F}}}}},
          ChoiceDone{7, 1, FinishReason::length, 12},
          Embedding{9, {0.6F, -0.8F}},
          Finished{7, FinishReason::cancelled, {1, 2, 3, 4, 5}, {6, 7, 8, 9}},
          Failed{7, ErrorKind::exhausted, "full", "wait", 250, {1, 0, 0, 0, 2}},
          Tokens{8, {1, -1, 50256}},
          stats,
          Drained{}};
}

TEST(Wire, EveryFrameIsReadAsItWasWritten) {
  const std::vector<Frame> frames = every_type();
  ASSERT_EQ(frames.size(), std::variant_size_v<Frame>);
  for (std::size_t type = 0; type < frames.size(); ++type) {
    ASSERT_EQ(frames[type].index(), type) << "the list names every type once, in order";
    const std::string bytes = encode(frames[type]);
    const auto back = decode(std::string_view(bytes).substr(4));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_TRUE(*back == frames[type]) << "type " << type;
  }
}

TEST(Wire, ALayoutOnTheWireDoesNotChangeUnnoticed) {
  const std::string bytes = encode(ChoiceDone{0x0102, 3, FinishReason::length, 5});
  EXPECT_EQ(bytes, std::string("\x12\0\0\0\x09\x02\x01\0\0\0\0\0\0\x03\0\0\0\x01\x05\0\0\0", 22));
}

TEST(Wire, FramesAreCutOutOfAnyPieces) {
  std::string stream;
  for (const Frame& frame : every_type()) encode(frame, stream);
  for (const std::size_t piece : {1UL, 3UL, 7UL, 1000UL}) {
    FrameReader reader;
    std::vector<Frame> seen;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.append(std::string_view(stream).substr(at, piece));
      while (true) {
        auto next = reader.next();
        ASSERT_TRUE(next.ok());
        if (!next->has_value()) break;
        seen.push_back(std::move(**next));
      }
    }
    EXPECT_TRUE(seen == every_type()) << "pieces of " << piece;
    EXPECT_EQ(reader.held_bytes(), 0U);
  }
}

TEST(Wire, EveryCutFrameIsRefused) {
  for (const Frame& frame : every_type()) {
    const std::string bytes = encode(frame).substr(4);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode(std::string_view(bytes).substr(0, size)).ok());
    }
    EXPECT_FALSE(decode(bytes + "x").ok());
  }
}

TEST(Wire, ChangedBytesNeverDoMoreThanFail) {
  Random random(1);
  const std::vector<Frame> frames = every_type();
  std::size_t refused = 0;
  for (int run = 0; run < 20'000; ++run) {
    std::string bytes = encode(frames[random.below(frames.size())]).substr(4);
    for (auto flips = random.between(1, 4); flips > 0; --flips) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    const auto frame = decode(bytes);
    if (frame.ok()) {
      // What is read must be what these bytes say, or a field would be read in two ways. Floats may
      // be NaN, which equals nothing, so the bytes are compared.
      EXPECT_EQ(encode(*frame).substr(4), bytes);
    } else {
      EXPECT_EQ(frame.error().kind, ErrorKind::corrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000U);
}

TEST(Wire, AListThatLiesAboutItsLengthTakesNoMemory) {
  std::string bytes = encode(Tokens{1, {1}}).substr(4);
  bytes.replace(9, 4, "\xff\xff\xff\x7f");
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(Wire, ALengthOutsideTheBoundsIsAnError) {
  for (const std::string& head : {std::string("\0\0\0\0", 4), std::string("\xff\xff\xff\xff", 4)}) {
    FrameReader reader;
    reader.append(head);
    EXPECT_FALSE(reader.next().ok());
  }
}

TEST(Submit, WhatIsInRangePasses) {
  EXPECT_TRUE(check_submit(full_submit()).ok());
}

TEST(Submit, EachValueOutOfRangeIsRefusedByName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refused = [](auto change, const std::string& word) {
    Submit submit = full_submit();
    change(submit);
    const auto checked = check_submit(submit);
    ASSERT_FALSE(checked.ok()) << word;
    EXPECT_EQ(checked.error().kind, ErrorKind::invalid_argument);
    EXPECT_NE(checked.error().message.find(word), std::string::npos) << checked.error().message;
    EXPECT_FALSE(checked.error().next_step.empty());
  };
  refused([](Submit& s) { s.stream = 0; }, "stream");
  refused([](Submit& s) { s.tenant.clear(); }, "tenant");
  refused([](Submit& s) { s.weight = 0; }, "weight");
  refused([](Submit& s) { s.choices = 0; }, "choices");
  refused([](Submit& s) { s.choices = 17; }, "choices");
  refused([](Submit& s) { s.prompt.messages.clear(); }, "prompt");
  refused([](Submit& s) { s.prompt.messages[0].role.clear(); }, "role");
  refused([](Submit& s) { s.prompt.public_extent = 3; }, "public");
  refused([&](Submit& s) { s.sampling.temperature = nan; }, "temperature");
  refused([](Submit& s) { s.sampling.temperature = -1; }, "temperature");
  refused([](Submit& s) { s.sampling.top_p = 1.5F; }, "top_p");
  refused([&](Submit& s) { s.sampling.min_p = nan; }, "min_p");
  refused([](Submit& s) { s.sampling.frequency_penalty = 3; }, "frequency_penalty");
  refused([](Submit& s) { s.sampling.presence_penalty = -3; }, "presence_penalty");
  refused([](Submit& s) { s.sampling.repeat_penalty = 0; }, "repeat_penalty");
  refused([](Submit& s) { s.sampling.top_logprobs = 21; }, "top_logprobs");
  refused([](Submit& s) { s.sampling.logit_bias = {{-1, 0.0F}}; }, "logit_bias");
  refused([&](Submit& s) { s.sampling.logit_bias = {{1, nan}}; }, "logit_bias");
  refused([](Submit& s) { s.sampling.stop = {""}; }, "stop");
  refused([](Submit& s) { s.sampling.stop.assign(17, "x"); }, "stop");
  refused([](Submit& s) { s.sampling.stop = {std::string(300, 'x')}; }, "stop");
  refused([](Submit& s) { s.sampling.grammar = {Grammar::Kind::gbnf, ""}; }, "grammar");
}

}  // namespace
}  // namespace loam::infer::wire
