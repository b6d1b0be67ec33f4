// What a model file says of itself: whole files are read, every cut and lie is found, and what an
// instance takes follows from the header and the arguments.
#include "app/gateway/gguf_header.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/gateway/instance_host.hpp"
#include "gateway/small_gguf.hpp"

namespace loam::serving {
namespace {

struct GgufHeader : testing::Test {
  GgufHeader() {
    char name[] = "/tmp/gguf.XXXXXX";
    folder = ::mkdtemp(name);
    path = folder + "/model.gguf";
  }
  ~GgufHeader() override { std::filesystem::remove_all(folder); }
  Result<ModelFacts> read(const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    return read_model_facts(path);
  }
  std::string fault(const std::string& bytes) {
    const auto facts = read(bytes);
    if (facts.ok()) return "none";
    EXPECT_EQ(facts.error().kind, ErrorKind::invalid_argument);
    EXPECT_EQ(facts.error().message.find(folder), std::string::npos) << "no path in it";
    return facts.error().message;
  }
  std::string folder, path;
};

// Four layers of two key-value heads of 16: 4 * 2 * (16 + 16) * 2 bytes = 512 a token.
GgufWriter lama() {
  GgufWriter file;
  file.begin(1, 6)
      .value("general.architecture", "llama")
      .value("llama.block_count", 4)
      .value("llama.embedding_length", 64)
      .value("llama.attention.head_count", 4)
      .value("llama.attention.head_count_kv", 2)
      .value("llama.context_length", 4096)
      .tensor("w", 1000);
  return file;
}

TEST_F(GgufHeader, AWholeFileIsRead) {
  const auto facts = read(lama().whole(4000));
  ASSERT_TRUE(facts.ok()) << facts.error().message;
  EXPECT_EQ(facts->architecture, "llama");
  EXPECT_EQ(facts->tensors, 1U);
  EXPECT_EQ(facts->kv_token_bytes, 512U);
  EXPECT_EQ(facts->embedding, 64U);
  EXPECT_TRUE(read(small_gguf()).ok());
}

TEST_F(GgufHeader, EveryCutIsFound) {
  const std::string whole = lama().whole(4000);
  for (std::size_t size = 0; size < whole.size(); size += size < 400 ? 1 : 97) {
    EXPECT_NE(fault(whole.substr(0, size)), "none") << size;
  }
  EXPECT_NE(fault(whole.substr(0, whole.size() - 1)).find("its tensors end at byte"),
            std::string::npos);
}

TEST_F(GgufHeader, WhatItSaysWrongIsNamed) {
  EXPECT_NE(fault("weights").find("does not begin with 'GGUF'"), std::string::npos);
  std::string old = small_gguf();
  old[4] = 1;
  EXPECT_NE(fault(old).find("version 1"), std::string::npos);
  EXPECT_NE(fault(GgufWriter().begin(0, 0).whole(0)).find("no tensor"), std::string::npos);
  EXPECT_NE(fault(GgufWriter().begin(1ULL << 60U, 0).whole(0)).find("it says that it holds"),
            std::string::npos);
  EXPECT_NE(fault(GgufWriter().begin(1, 0).tensor("w", 1ULL << 62U).whole(0)).find("w"),
            std::string::npos);
  EXPECT_NE(
      fault(GgufWriter().begin(1, 1).text("k").number(std::uint32_t{99}).whole(64)).find("99"),
      std::string::npos);
  // A list that claims more than there is; a text too.
  EXPECT_NE(fault(GgufWriter()
                      .begin(1, 1)
                      .text("k")
                      .number(std::uint32_t{9})
                      .number(std::uint32_t{8})
                      .number(std::uint64_t{1} << 50U)
                      .whole(64)),
            "none");
  EXPECT_NE(fault(GgufWriter().begin(1, 1).number(std::uint64_t{1} << 40U).whole(64)), "none");
  EXPECT_EQ(read_model_facts(folder + "/nothing").error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_model_facts(folder).error().kind, ErrorKind::not_found);
}

TEST_F(GgufHeader, ChangedBytesNeverDoMoreThanFail) {
  const std::string whole = lama().whole(4000);
  for (std::size_t at = 0; at < 350; ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string changed = whole;
      changed[at] = value;
      static_cast<void>(read(changed).ok());
    }
  }
}

TEST_F(GgufHeader, AnInstanceTakesItsContextsBesideItsWeights) {
  ASSERT_TRUE(read(lama().whole(4000)).ok());
  EndpointConfig endpoint;
  endpoint.file = path;
  endpoint.slots = 16;
  const std::int64_t usual = instance_memory(endpoint).value;
  endpoint.arguments = {"--context", "65536"};
  const std::int64_t large = instance_memory(endpoint).value;
  // 16 * 65,536 tokens of 512 bytes are 512 MiB, and a mask of 512 rows is 128 MiB.
  EXPECT_GE(large, 512 + 128);
  EXPECT_LT(large, 512 + 128 + 20);
  EXPECT_LT(usual, 30);
  endpoint.arguments = {"--context", "65536", "--cells", "8192"};
  EXPECT_LT(instance_memory(endpoint).value, 60);
  endpoint.arguments = {"--context", "65536", "--adapter", "a=/a.gguf"};
  EXPECT_GE(instance_memory(endpoint).value, 4 * (large - 1) - 4);
  endpoint.arguments = {"--context", "65536"};
  endpoint.memory_mib = 500;
  const auto checked = check_model(endpoint);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().kind, ErrorKind::exhausted);
  EXPECT_NE(checked.error().message.find(std::to_string(large)), std::string::npos);
  endpoint.memory_mib = large;
  EXPECT_TRUE(check_model(endpoint).ok());
  EXPECT_EQ(host_memory_beside(endpoint).value, 1024);
  endpoint.arguments = {"--cache-mib", "4096"};
  EXPECT_EQ(host_memory_beside(endpoint).value, 768 + 4096);
}

}  // namespace
}  // namespace loam::serving
