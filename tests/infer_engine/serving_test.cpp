// What a client gets from a running engine: right tokens, right counts, also under pressure.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "fixture.hpp"

namespace loam::serve {
namespace {

using infer::ServiceClass;

// What the library gives by itself, one token after the other.
std::string direct(const std::string& prompt, int count) {
  const Model& model = shared_model();
  llama_context_params params = llama_context_default_params();
  params.n_ctx = 512;
  params.n_threads = params.n_threads_batch = 1;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  const ContextHandle context(llama_init_from_model(model.handle(), params));
  infer::Prompt text;
  text.text = prompt;
  std::vector<llama_token> tokens = model.tokenize(text)->tokens;
  std::string out;
  while (count-- > 0) {
    EXPECT_EQ(
        llama_decode(context.get(),
                     llama_batch_get_one(tokens.data(), static_cast<std::int32_t>(tokens.size()))),
        0);
    const float* logits = llama_get_logits_ith(context.get(), -1);
    const auto best = static_cast<llama_token>(
        std::max_element(logits, logits + model.vocabulary_size()) - logits);
    out += model.piece(best);
    tokens.assign(1, best);
  }
  return infer::valid_utf8(out);
}

TEST(Serving, TheTextIsWhatTheLibraryGivesByItself) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  const Stream stream = client.run(Client::ask(words(20, 1), 24));
  ASSERT_TRUE(stream.finished.has_value());
  EXPECT_EQ(stream.text.at(0), direct(words(20, 1), 24));
  EXPECT_EQ(stream.reason.at(0), wire::FinishReason::length);
  EXPECT_EQ(stream.finished->usage.generated_tokens, 24U);
  EXPECT_EQ(stream.finished->usage.prompt_tokens, stream.prompt_tokens);
  EXPECT_EQ(stream.generated_told, 24U);
  EXPECT_GT(stream.finished->timing.first_token_us, 0U);
  EXPECT_LE(stream.finished->timing.started_us, stream.finished->timing.first_token_us);
}

TEST(Serving, ManyAtOnceEachGetTheirOwnText) {
  const RunningEngine engine(small_engine(8));
  Client client(engine);
  std::vector<wire::StreamId> ids;
  for (unsigned i = 0; i < 12; ++i)
    ids.push_back(client.submit(Client::ask(words(10 + 5 * static_cast<int>(i), i), 16)));
  for (unsigned i = 0; i < 12; ++i) {
    EXPECT_EQ(client.wait(ids[i]).text.at(0), direct(words(10 + 5 * static_cast<int>(i), i), 16))
        << i;
  }
  const wire::Stats stats = client.stats();
  EXPECT_EQ(stats.usage.generated_tokens, 12U * 16);
  EXPECT_LT(stats.steps, 12U * 16) << "they were computed together";
}

TEST(Serving, AStoredPrefixIsTakenAndTheTextStaysTheSame) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  const Stream first = client.run(Client::ask(words(100, 2), 12));
  const Stream second = client.run(Client::ask(words(100, 2), 12));
  EXPECT_EQ(first.finished->usage.cached_tokens, 0U);
  EXPECT_EQ(second.finished->usage.cached_tokens, second.prompt_tokens - 1);
  EXPECT_EQ(second.finished->usage.prompt_tokens, second.prompt_tokens);
  EXPECT_EQ(first.text.at(0), second.text.at(0));
}

TEST(Serving, TheFirstWaveComputesItsPrefixOnce) {
  const RunningEngine engine(small_engine(8));
  Client client(engine);
  std::vector<wire::StreamId> ids;
  for (unsigned i = 0; i < 8; ++i)
    ids.push_back(client.submit(Client::ask(words(120, 3) + words(10, 50 + i), 8)));
  std::uint32_t cached = 0;
  for (unsigned i = 0; i < 8; ++i) {
    const Stream& stream = client.wait(ids[i]);
    EXPECT_EQ(stream.text.at(0), direct(words(120, 3) + words(10, 50 + i), 8)) << i;
    cached += stream.finished->usage.cached_tokens;
  }
  EXPECT_GE(cached, 7U * 120);
}

TEST(Serving, APreemptedStreamResumesWhereItWas) {
  const RunningEngine engine(small_engine(1));
  Client client(engine);
  wire::Submit low = Client::ask(words(60, 4), 200);
  low.service_class = ServiceClass::batch;
  const auto slow = client.submit(low);
  client.until([&] { return client.streams[slow].generated_told > 3; });
  wire::Submit high = Client::ask(words(10, 5), 4);
  high.service_class = ServiceClass::interactive;
  const auto urgent = client.submit(high);
  client.wait(slow);
  EXPECT_LT(client.streams[urgent].ended_as, client.streams[slow].ended_as);
  const Stream& stream = client.streams[slow];
  EXPECT_EQ(stream.finished->timing.preemptions, 1U);
  EXPECT_EQ(stream.finished->usage.recomputed_tokens, 0U);
  EXPECT_EQ(stream.text.at(0), direct(words(60, 4), 200));
}

TEST(Serving, MemoryForAQuarterOfTheDemandFailsNobody) {
  ServerOptions options = small_engine(8);
  options.instance.batching.unified = true;
  options.instance.batching.cells = 1024;
  options.instance.batching.overcommit_permille = 3000;
  const RunningEngine engine(options);
  Client client(engine);
  std::vector<wire::StreamId> ids;
  for (unsigned i = 0; i < 8; ++i)
    ids.push_back(client.submit(Client::ask(words(100, 60 + i), 200)));
  for (const auto id : ids) {
    const Stream& stream = client.wait(id);
    ASSERT_TRUE(stream.finished.has_value()) << stream.failed->message;
    EXPECT_EQ(stream.finished->usage.generated_tokens, 200U);
  }
  EXPECT_GT(client.stats().preemptions, 0U) << "the pressure was real";
}

TEST(Serving, ACancelledStreamEndsAtOnceWithWhatItUsed) {
  const RunningEngine engine(small_engine(1));
  Client client(engine);
  const auto id = client.submit(Client::ask(words(20, 6), 400));
  client.until([&] { return client.streams[id].generated_told >= 5; });
  client.send(wire::Cancel{id});
  const Stream& stream = client.wait(id);
  EXPECT_EQ(stream.finished->reason, wire::FinishReason::cancelled);
  EXPECT_GE(stream.finished->usage.generated_tokens, stream.generated_told);
  EXPECT_LT(stream.finished->usage.generated_tokens, 400U);
  EXPECT_EQ(client.run(Client::ask(words(5, 7), 3)).finished->usage.generated_tokens, 3U);
}

TEST(Serving, WhoHangsUpIsMeteredInTheUsageFile) {
  ServerOptions options = small_engine(1);
  options.usage_path = model_folder() + "/usage.jsonl";
  std::filesystem::remove(options.usage_path);
  const RunningEngine engine(options);
  {
    Client leaver(engine);
    const auto id = leaver.submit(Client::ask(words(20, 6), 450));
    leaver.until([&] { return leaver.streams[id].generated_told >= 5; });
  }
  Client client(engine);
  client.run(Client::ask(words(5, 7), 3));
  std::ifstream file(options.usage_path);
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  const auto entry = boost::json::parse(line).as_object();
  EXPECT_EQ(entry.at("outcome").as_string(), "cancelled");
  EXPECT_GE(entry.at("generated_tokens").as_int64(), 5);
  EXPECT_LT(entry.at("generated_tokens").as_int64(), 450);
  EXPECT_EQ(entry.at("tenant").as_string(), "acme");
}

TEST(Serving, PrivatePrefixesAreNotSharedBetweenTenantsAndPublicOnesAre) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit mine = Client::ask(words(80, 8), 4);
  client.run(mine);
  wire::Submit theirs = mine;
  theirs.tenant = "beta";
  EXPECT_EQ(client.run(theirs).finished->usage.cached_tokens, 0U);
  const std::string open = words(80, 9);
  mine.prompt.text = theirs.prompt.text = open + " and more than this";
  mine.prompt.public_extent = theirs.prompt.public_extent = static_cast<std::uint32_t>(open.size());
  client.run(mine);
  const Stream shared = client.run(theirs);
  EXPECT_GE(shared.finished->usage.cached_tokens, 80U);
  EXPECT_LT(shared.finished->usage.cached_tokens, shared.prompt_tokens - 1)
      << "the private end is not";
}

TEST(Serving, ThePublicPartOfMessagesIsShared) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit ask = Client::ask("", 4);
  ask.prompt.kind = infer::Prompt::Kind::messages;
  ask.prompt.messages = {{"system", words(60, 10)}, {"user", words(20, 11)}};
  ask.prompt.public_extent = 1;
  client.run(ask);
  ask.tenant = "beta";
  ask.prompt.messages[1].content = words(20, 12);
  EXPECT_GE(client.run(ask).finished->usage.cached_tokens, 60U);
}

TEST(Serving, SeveralAnswersCountTheirPromptOnceAndASeedRepeatsThem) {
  const RunningEngine engine(small_engine(4));
  Client client(engine);
  wire::Submit ask = Client::ask(words(40, 13), 12);
  ask.choices = 3;
  ask.sampling.temperature = 1;
  ask.sampling.seed = 7;
  const Stream first = client.run(ask);
  const Stream again = client.run(ask);
  EXPECT_EQ(first.finished->usage.prompt_tokens, first.prompt_tokens);
  EXPECT_EQ(first.finished->usage.generated_tokens, 36U);
  EXPECT_EQ(first.text.size(), 3U);
  EXPECT_EQ(first.text, again.text);
  EXPECT_NE(first.text.at(0), first.text.at(1));
}

TEST(Serving, AStopStringEndsTheTextBeforeIt) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit ask = Client::ask(words(20, 14), 40);
  const Stream whole = client.run(ask);
  const std::string text = whole.text.at(0);
  ASSERT_GT(text.size(), 20U);
  std::size_t at = text.size() / 2;
  while ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) ++at;
  ask.sampling.stop = {text.substr(at, 6)};
  Stream stopped = client.run(ask);
  EXPECT_EQ(stopped.text[0], text.substr(0, text.find(ask.sampling.stop[0])));
  EXPECT_EQ(stopped.reason.at(0), wire::FinishReason::stop);
  EXPECT_LT(stopped.finished->usage.generated_tokens, 40U);
}

TEST(Serving, BiasPenaltiesAndLogprobsDoWhatTheySay) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit ask = Client::ask(words(10, 15), 8);
  ask.sampling.logit_bias = {{262, 100.0F}};
  ask.sampling.logprobs = true;
  ask.sampling.top_logprobs = 3;
  const Stream forced = client.run(ask);
  EXPECT_EQ(forced.text.at(0), " the the the the the the the the");
  ASSERT_EQ(forced.logprobs.size(), 8U);
  for (const wire::TokenLogprob& entry : forced.logprobs) {
    EXPECT_EQ(entry.chosen.token, 262);
    EXPECT_LT(entry.chosen.logprob, 0);
    ASSERT_EQ(entry.top.size(), 3U);
    EXPECT_GE(entry.top[0].logprob, entry.top[1].logprob);
  }
  ask.sampling.logit_bias = {{262, 3.0F}};
  ask.sampling.presence_penalty = 2.0F;
  ask.sampling.frequency_penalty = 2.0F;
  const std::string varied = client.run(ask).text.at(0);
  EXPECT_EQ(varied.find(" the the"), std::string::npos) << varied;
}

TEST(Serving, ASchemaIsKept) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit ask = Client::ask(words(10, 16), 300);
  ask.sampling.ignore_end = false;
  ask.sampling.temperature = 1;
  ask.sampling.seed = 3;
  ask.sampling.grammar = {infer::Grammar::Kind::json_schema,
                          R"({"type":"object","required":["kind","count","on"],"properties":{
      "kind":{"enum":["red","green"]},"count":{"type":"array","items":{"type":"integer"},"maxItems":2},
      "note":{"type":"string","maxLength":5},"on":{"type":"boolean"}}})"};
  const Stream stream = client.run(ask);
  ASSERT_TRUE(stream.finished.has_value()) << stream.failed->message;
  boost::system::error_code fault;
  const auto value = boost::json::parse(stream.text.at(0), fault);
  ASSERT_FALSE(fault) << stream.text.at(0);
  const auto& object = value.as_object();
  EXPECT_TRUE(object.at("kind") == "red" || object.at("kind") == "green");
  EXPECT_TRUE(object.at("count").is_array());
  EXPECT_TRUE(object.at("on").is_bool());
  EXPECT_EQ(stream.reason.at(0), wire::FinishReason::stop);
  EXPECT_EQ(stream.text.at(0).back(), '}') << "white space after it would be paid for";
  // What a grammar lets end, ends: nothing may follow, whatever is asked.
  ask.sampling.ignore_end = true;
  const Stream again = client.run(ask);
  ASSERT_TRUE(again.finished.has_value()) << again.failed->message;
  EXPECT_EQ(again.text.at(0), stream.text.at(0));
}

TEST(Serving, AnEmbeddingHasLengthOneAndIsTheSameEachTime) {
  const RunningEngine engine(small_engine());
  Client client(engine);
  wire::Submit ask = Client::ask(words(30, 17), 0);
  ask.work = wire::Submit::Work::embed;
  const Stream first = client.run(ask);
  ASSERT_EQ(first.embedding.size(), client.welcome().embedding_length);
  double square = 0;
  for (const float value : first.embedding)
    square += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(square, 1, 1e-4);
  EXPECT_EQ(first.finished->usage,
            (TokenUsage{first.prompt_tokens, 0, 0, 0, first.finished->usage.engine_time_us}));
  EXPECT_EQ(client.run(ask).embedding, first.embedding);
  ask.prompt.text = words(30, 18);
  EXPECT_NE(client.run(ask).embedding, first.embedding);
}

TEST(Serving, AFloodOfOneTenantLeavesANewcomerItsTurn) {
  const RunningEngine engine(small_engine(4));
  Client client(engine);
  for (unsigned i = 0; i < 24; ++i) client.submit(Client::ask(words(20, 100 + i), 60));
  client.until([&] { return client.streams[1].generated_told > 2; });
  wire::Submit ask = Client::ask(words(20, 200), 5);
  ask.tenant = "newcomer";
  const auto id = client.submit(ask);
  client.wait(id);
  std::size_t before = 0;
  for (const auto& [stream, state] : client.streams) before += state.over() ? 1 : 0;
  EXPECT_LE(before, 9U) << "at most the streams that ran went first, not the flood";
}

}  // namespace
}  // namespace loam::serve
