// What cannot be served is answered clearly and at once, and nobody else notices.
#include <ggml.h>
#include <gguf.h>
#include <sys/wait.h>

#include "fixture.hpp"

namespace loam::serve {
namespace {

// A stream that runs before, during and after; nothing may disturb it.
class Undisturbed : public testing::Test {
 protected:
  Undisturbed() : engine(small_engine(4)), bystander(engine), client(engine) {
    running = bystander.submit(Client::ask(words(10, 1), 120));
  }
  void TearDown() override {
    const Stream& stream = bystander.wait(running);
    ASSERT_TRUE(stream.finished.has_value());
    EXPECT_EQ(stream.finished->usage.generated_tokens, 120U);
  }
  void expect_refused(const wire::Submit& ask, ErrorKind kind, const std::string& word) {
    const Stream stream = client.run(ask);
    ASSERT_TRUE(stream.failed.has_value()) << word;
    EXPECT_EQ(stream.failed->kind, kind) << stream.failed->message;
    EXPECT_NE(stream.failed->message.find(word), std::string::npos) << stream.failed->message;
    EXPECT_FALSE(stream.failed->next_step.empty());
    EXPECT_EQ(stream.failed->usage, TokenUsage{});
  }
  RunningEngine engine;
  Client bystander;
  Client client;
  wire::StreamId running = 0;
};

TEST_F(Undisturbed, RequestsThatCannotBeServedAreRefusedByName) {
  expect_refused(Client::ask(words(600, 2), 5), ErrorKind::invalid_argument,
                 "do not fit a context of 512");
  expect_refused(Client::ask(words(10, 2), 5000), ErrorKind::invalid_argument, "5000");
  expect_refused(Client::ask("", 5), ErrorKind::invalid_argument, "empty");
  wire::Submit ask = Client::ask("x", 5);
  ask.prompt.kind = infer::Prompt::Kind::tokens;
  ask.prompt.tokens = {99'999'999};
  expect_refused(ask, ErrorKind::invalid_argument, "99999999");
  ask = Client::ask("x", 5);
  ask.sampling.temperature = std::numeric_limits<float>::quiet_NaN();
  expect_refused(ask, ErrorKind::invalid_argument, "temperature");
  ask = Client::ask("x", 5);
  ask.sampling.logit_bias = {{77'777'777, 1.0F}};
  expect_refused(ask, ErrorKind::invalid_argument, "77777777");
  ask = Client::ask("x", 5);
  ask.sampling.grammar = {infer::Grammar::Kind::gbnf, "root ::= ("};
  expect_refused(ask, ErrorKind::invalid_argument, "grammar");
  ask.sampling.grammar = {infer::Grammar::Kind::json_schema, R"({"type":"string","pattern":"a"})"};
  expect_refused(ask, ErrorKind::unsupported, "pattern");
  ask = Client::ask("x", 5);
  ask.adapters = {{"nobody", 1.0F}};
  expect_refused(ask, ErrorKind::not_found, "nobody");
  ask = Client::ask(words(600, 2), 0);
  ask.work = wire::Submit::Work::embed;
  expect_refused(ask, ErrorKind::invalid_argument, "600");
}

TEST_F(Undisturbed, BytesThatAreNoFramesEndTheirConnectionOnly) {
  auto rude = EngineClient::connect(engine.path, "rude");
  ASSERT_TRUE(rude.ok());
  ASSERT_TRUE(rude->send_bytes(std::string("\x02\0\0\0\xEE\xEE", 6)).ok());
  const auto answer = rude->receive(30'000);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_EQ(std::get<wire::Failed>(**answer).stream, 0U);
  EXPECT_FALSE(rude->receive(30'000).ok()) << "closed";
}

TEST_F(Undisturbed, WhoDoesNotGreetIsSentAway) {
  auto silent = EngineClient::connect_silently(engine.path);
  ASSERT_TRUE(silent->send(wire::AskStats{}).ok());
  const auto answer = silent->receive(30'000);
  ASSERT_TRUE(answer.ok() && answer->has_value());
  EXPECT_TRUE(std::holds_alternative<wire::Failed>(**answer));
  auto old = EngineClient::connect_silently(engine.path);
  ASSERT_TRUE(old->send(wire::Hello{99, "old"}).ok());
  const auto refused = old->receive(30'000);
  ASSERT_TRUE(refused.ok() && refused->has_value());
  EXPECT_NE(std::get<wire::Failed>(**refused).message.find("99"), std::string::npos);
}

TEST_F(Undisturbed, AStreamNumberInUseIsAConflictAndTheFirstGoesOn) {
  wire::Submit twice = Client::ask(words(10, 3), 60);
  twice.stream = 500;
  client.send(twice);
  client.send(twice);
  client.until([&] { return client.streams[500].failed.has_value(); });
  EXPECT_EQ(client.streams[500].failed->kind, ErrorKind::conflict);
  client.until([&] { return client.streams[500].finished.has_value(); });
  EXPECT_EQ(client.streams[500].finished->usage.generated_tokens, 60U);
  client.send(wire::Cancel{12345});  // nobody's stream: ignored
}

TEST(Engine, AFullQueueSaysWhenToComeAgain) {
  ServerOptions options = small_engine(1);
  options.waiting_max = 2;
  const RunningEngine engine(options);
  Client client(engine);
  client.submit(Client::ask(words(10, 1), 300));
  client.submit(Client::ask(words(10, 2), 3));
  const Stream refused = client.run(Client::ask(words(10, 3), 3));
  ASSERT_TRUE(refused.failed.has_value());
  EXPECT_EQ(refused.failed->kind, ErrorKind::exhausted);
  EXPECT_GT(refused.failed->retry_after_ms, 0U);
}

TEST(Engine, DrainingFinishesWhatRunsAndRefusesTheRest) {
  const RunningEngine engine(small_engine(1));
  Client client(engine);
  const auto id = client.submit(Client::ask(words(10, 1), 30));
  client.send(wire::Drain{});
  const Stream refused = client.run(Client::ask(words(10, 2), 3));
  EXPECT_EQ(refused.failed->kind, ErrorKind::unavailable);
  client.until([&] { return client.drained; });
  EXPECT_EQ(client.streams[id].finished->usage.generated_tokens, 30U);
}

TEST(Engine, ItSaysWhatItIs) {
  const RunningEngine engine(small_engine(3));
  Client client(engine);
  const wire::Welcome& welcome = client.welcome();
  EXPECT_EQ(welcome.model, "tiny");
  EXPECT_EQ(welcome.slots, 3U);
  EXPECT_EQ(welcome.context_tokens, 512U);
  EXPECT_EQ(welcome.vocabulary, 50257U);
  EXPECT_TRUE(welcome.chat_template);
  EXPECT_EQ(welcome.kv_token_bytes, 2U * 2 * 32 * 2) << "keys and values, layers, width, 16 bit";
  client.send(wire::Tokenize{9, {infer::Prompt::Kind::text, {}, "Hello world", {}, 0}});
  client.wait(9);
  EXPECT_EQ(client.tokens, (std::vector<infer::Token>{15496, 995}));
}

Result<std::unique_ptr<Model>> load(const std::string& path, std::uint64_t memory = 0) {
  Model::Options options;
  options.path = path;
  options.memory_bytes_max = memory;
  return Model::load(options);
}

TEST(Loading, FilesThatAreNoModelsAreErrorsThatNameThem) {
  std::ifstream whole(model_path(), std::ios::binary);
  std::stringstream content;
  content << whole.rdbuf();
  const std::string bytes = content.str();
  const std::string path = model_folder() + "/broken.gguf";
  const auto written = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    const auto model = load(path);
    EXPECT_FALSE(model.ok());
    return model.ok() ? Error{} : model.error();
  };
  EXPECT_EQ(written("").kind, ErrorKind::corrupt);
  EXPECT_EQ(written("not a model at all").kind, ErrorKind::corrupt);
  for (const std::size_t size : {10UL, 1'000UL, 1'000'000UL, bytes.size() - 1'000}) {
    const Error error = written(bytes.substr(0, size));
    EXPECT_EQ(error.kind, ErrorKind::corrupt) << size;
    EXPECT_NE(error.message.find(path), std::string::npos);
  }
  std::string other = bytes;
  other.replace(other.find("llama"), 5, "lamal");
  EXPECT_EQ(written(other).kind, ErrorKind::corrupt);
  EXPECT_EQ(load("/nonexistent.gguf").error().kind, ErrorKind::not_found);
  EXPECT_EQ(load(model_path(), 1'000'000).error().kind, ErrorKind::exhausted);
}

// An adapter that changes the first layer's queries a lot.
std::string adapter_file() {
  const std::string path = model_folder() + "/adapter.gguf";
  gguf_context* file = gguf_init_empty();
  gguf_set_val_str(file, "general.type", "adapter");
  gguf_set_val_str(file, "general.architecture", "llama");
  gguf_set_val_str(file, "adapter.type", "lora");
  gguf_set_val_f32(file, "adapter.lora.alpha", 4.0F);
  ggml_context* tensors = ggml_init({1U << 20U, nullptr, false});
  for (const char* part : {"blk.0.attn_v.weight.lora_a", "blk.0.attn_v.weight.lora_b"}) {
    const bool first = part[std::string(part).size() - 1] == 'a';
    ggml_tensor* tensor =
        ggml_new_tensor_2d(tensors, GGML_TYPE_F32, first ? 32 : 4, first ? 4 : 32);
    auto* values = static_cast<float*>(tensor->data);
    for (int i = 0; i < 128; ++i) values[i] = static_cast<float>((i * 37) % 11 - 5) * 0.3F;
    ggml_set_name(tensor, part);
    gguf_add_tensor(file, tensor);
  }
  EXPECT_TRUE(gguf_write_to_file(file, path.c_str(), false));
  gguf_free(file);
  ggml_free(tensors);
  return path;
}

TEST(Adapters, ARequestGetsItsAdapterAndTheOthersDoNot) {
  Model::Options options;
  options.path = model_path();
  options.adapters = {{"legal", adapter_file()}};
  auto model = Model::load(options);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const RunningEngine engine(small_engine(), **model);
  Client client(engine);
  wire::Submit ask = Client::ask(words(20, 1), 20);
  const std::string plain = client.run(ask).text.at(0);
  ask.adapters = {{"legal", 1.0F}};
  const Stream adapted = client.run(ask);
  EXPECT_NE(adapted.text.at(0), plain);
  EXPECT_EQ(adapted.finished->usage.cached_tokens, 0U) << "rows of another adapter are of no use";
  ask.adapters = {{"legal", 0.0F}};
  EXPECT_EQ(client.run(ask).text.at(0), plain);
  ask.adapters.clear();
  EXPECT_EQ(client.run(ask).text.at(0), plain);
}

int status_of(const std::string& command) {
  const int status = std::system((command + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Program, WrongArgumentsAndBrokenModelsHaveTheirExitStatus) {
  const std::string engine = LOAM_ENGINE;
  EXPECT_EQ(status_of(engine + " --help"), 0);
  EXPECT_EQ(status_of(engine), 2);
  EXPECT_EQ(status_of(engine + " --model x --socket y --slots 0"), 2);
  EXPECT_EQ(status_of(engine + " --model x --socket y --adapter z"), 2);
  // A model that cannot be served has a status of its own: whoever started it need not try again.
  EXPECT_EQ(status_of(engine + " --model /nonexistent --socket " + model_folder() + "/s"), 3);
  const std::string cut = model_folder() + "/cut.gguf";
  std::filesystem::copy_file(model_path(), cut);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  EXPECT_EQ(status_of(engine + " --model " + cut + " --socket " + model_folder() + "/s"), 3);
  EXPECT_EQ(status_of(engine + " --model " + model_path() + " --socket /no/such/folder/s"), 1);
  // A signal ends it in order.
  EXPECT_EQ(status_of("sh -c '" + engine + " --model " + model_path() + " --socket " +
                      model_folder() + "/p & p=$!; while ! [ -S " + model_folder() +
                      "/p ]; do sleep 0.1; done; kill -TERM $p; wait $p'"),
            0);
}

}  // namespace
}  // namespace loam::serve
