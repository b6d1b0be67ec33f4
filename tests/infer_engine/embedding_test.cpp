// Embeddings on the real library: in pieces they are what they are in one, and a flood of them or
// of long prompts stops no stream.
#include <cmath>

#include "fixture.hpp"

namespace loam::serve {
namespace {

wire::Submit ask_embedding(const std::string& text, const std::string& tenant = "acme") {
  wire::Submit ask = Client::ask(text, 0);
  ask.work = wire::Submit::Work::embed;
  ask.tenant = tenant;
  return ask;
}

double product(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

std::vector<float> embedding_in_pieces(std::uint32_t chunk, const std::string& text) {
  ServerOptions options = small_engine(2);
  options.instance.batching.chunk_tokens = chunk;
  options.instance.batching.chunk_tokens_least = std::min(chunk, 8U);
  const RunningEngine engine(options);
  Client client(engine);
  return client.run(ask_embedding(text)).embedding;
}

TEST(Embedding, InPiecesItIsWhatItIsInOne) {
  const std::string text = words(200, 7);
  const auto whole = embedding_in_pieces(400, text);
  ASSERT_FALSE(whole.empty());
  for (const std::uint32_t chunk : {1U, 7U, 32U}) {
    const auto pieces = embedding_in_pieces(chunk, text);
    ASSERT_EQ(pieces.size(), whole.size());
    EXPECT_NEAR(product(pieces, whole), 1.0, 1e-3) << chunk;
  }
  const auto other = embedding_in_pieces(32, words(200, 8));
  EXPECT_LT(product(other, whole), 0.9999) << "so that the comparison above can fail";
}

TEST(Embedding, BesideAFloodOfThemAStreamGetsATokenInEachStep) {
  const RunningEngine engine(small_engine(4));
  Client reader(engine);
  const auto stream = reader.submit(Client::ask(words(10, 1), 100));
  reader.until([&] { return reader.streams[stream].generated_told > 0; });
  Client flood(engine);
  std::vector<wire::StreamId> texts;
  // 16 x 400 tokens, at most 32 a step: 200 steps, and the stream needs 100.
  for (unsigned i = 0; i < 16; ++i) {
    texts.push_back(flood.submit(ask_embedding(words(400, i), "flood")));
  }
  reader.wait(stream);
  const wire::Stats then = reader.stats();
  EXPECT_EQ(reader.streams[stream].finished->usage.generated_tokens, 100U);
  EXPECT_GT(then.waiting + then.running, 4U) << "the flood was not served first";
  for (const auto text : texts) {
    EXPECT_EQ(flood.wait(text).finished->reason, wire::FinishReason::stop);
    EXPECT_GT(flood.streams[text].finished->usage.prompt_tokens, 300U);
  }
}

TEST(Embedding, ACancelledOneIsMeteredAsFarAsItCameAndItsSlotIsFree) {
  ServerOptions options = small_engine(1);
  options.instance.batching.chunk_tokens = 1;
  options.instance.batching.chunk_tokens_least = 1;
  options.instance.batching.cells_per_slot = 4096;
  const RunningEngine engine(options);
  Client client(engine);
  // A token a step: thousands of steps, of which the cancel comes after few.
  const auto text = client.submit(ask_embedding(words(3000, 3)));
  while (client.stats().running == 0 && !client.streams[text].over()) {
  }
  client.send(wire::Cancel{text});
  const Stream& stream = client.wait(text);
  ASSERT_TRUE(stream.finished.has_value());
  EXPECT_EQ(stream.finished->reason, wire::FinishReason::cancelled);
  EXPECT_LT(stream.finished->usage.prompt_tokens, stream.prompt_tokens);
  EXPECT_TRUE(client.run(Client::ask(words(5, 1), 3)).finished.has_value());
}

TEST(LongPrompts, OneThatCannotFitIsRefusedByItsLengthInBytes) {
  const RunningEngine engine(small_engine(2));
  Client client(engine);
  for (const auto work : {wire::Submit::Work::complete, wire::Submit::Work::embed}) {
    wire::Submit ask = Client::ask(std::string(8U << 20U, 'x'), 5);
    ask.work = work;
    const Stream refused = client.run(ask);
    ASSERT_TRUE(refused.failed.has_value());
    EXPECT_EQ(refused.failed->kind, ErrorKind::invalid_argument);
    EXPECT_NE(refused.failed->message.find("8388608 bytes do not fit a context of 512"),
              std::string::npos)
        << refused.failed->message;
  }
}

TEST(LongPrompts, NothingThatFitsIsRefusedForItsBytes) {
  // The longest token of the vocabulary, again and again, is the most that a context can hold.
  const Model& model = shared_model();
  infer::Token longest = 0;
  for (infer::Token token = 0; token < model.vocabulary_size(); ++token) {
    if (model.piece(token).size() > model.piece(longest).size()) longest = token;
  }
  std::string text;
  for (int i = 0; i < 100; ++i) text += model.piece(longest);
  infer::Prompt prompt;
  prompt.text = text;
  const auto read = model.tokenize(prompt, 100);
  EXPECT_TRUE(read.ok()) << read.error().message;
  EXPECT_TRUE(model.check_length(text, 100).ok());
  EXPECT_FALSE(model.check_length(std::string(1U << 20U, 'x'), 100).ok());
}

UnreadRequest unread(const std::string& tenant, std::uint64_t serial, std::size_t bytes) {
  wire::Submit submit = Client::ask(words(static_cast<int>(bytes / 6), 1), 1);
  submit.tenant = tenant;
  return {1, serial, std::move(submit), 0, 0, 0};
}

TEST(LongPrompts, TenantsPromptsAreReadInTurns) {
  auto reader = PromptReader::make(shared_model());
  ASSERT_TRUE(reader.ok());
  for (std::uint64_t i = 1; i <= 12; ++i) {
    ASSERT_TRUE((*reader)->add(unread("flood", i, 20'000)).ok());
  }
  ASSERT_TRUE((*reader)->add(unread("newcomer", 100, 5'000)).ok());
  std::vector<std::uint64_t> order;
  while (std::find(order.begin(), order.end(), 100U) == order.end()) {
    for (auto& done : (*reader)->take()) {
      EXPECT_TRUE(done.read.ok());
      EXPECT_GT(done.read->prompt.tokens.size(), 100U);
      order.push_back(done.request.serial);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto at = std::find(order.begin(), order.end(), 100U) - order.begin();
  EXPECT_LE(at, 3) << "after at most what was in work and one more";
}

TEST(LongPrompts, WhatATenantLeavesUnreadIsBounded) {
  auto reader = PromptReader::make(shared_model(), 1'000'000);
  ASSERT_TRUE(
      (*reader)->add(unread("flood", 1, 600'000)).ok());  // in work, some tenths of a second
  const auto refused = (*reader)->add(unread("flood", 2, 600'000));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::exhausted);
  EXPECT_TRUE((*reader)->add(unread("other", 100, 600'000)).ok()) << "and that of others apart";
  (*reader)->forget(100);
}

TEST(LongPrompts, OneThatIsBeingReadCanBeCancelledAndItsNumberUsedAgain) {
  ServerOptions options = small_engine(2);
  options.instance.batching.cells_per_slot = 8192;
  const RunningEngine engine(options);
  Client client(engine);
  // Tokens of which there are too many, in a text that might just fit by its bytes.
  wire::Submit ask = Client::ask(words(60'000, 5), 5);
  ask.stream = 900;
  client.send(ask);
  client.send(wire::Cancel{900});
  client.until([&] { return client.streams[900].finished.has_value(); });
  EXPECT_EQ(client.streams[900].finished->reason, wire::FinishReason::cancelled);
  client.streams[900] = {};
  ask.prompt.text = words(5, 5);
  client.send(ask);
  client.until([&] { return client.streams[900].over(); });
  ASSERT_TRUE(client.streams[900].finished.has_value());
  EXPECT_EQ(client.streams[900].finished->usage.generated_tokens, 5U);
  EXPECT_FALSE(client.run(Client::ask(words(60'000, 5), 5)).finished.has_value());
  EXPECT_TRUE(client.run(Client::ask(words(4'000, 5), 5)).finished.has_value());
}

}  // namespace
}  // namespace loam::serve
