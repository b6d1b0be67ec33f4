// Making, training and importing models: the same seed gives the same bytes, a trained model knows
// its text better, and precision costs what is measured.
#include "app/engine/import_model.hpp"
#include "fixture.hpp"

namespace loam::serve {
namespace {

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// A small text with a pattern that can be learned, and its file.
std::string text_file() {
  const std::string path = model_folder() + "/text.txt";
  std::ofstream file(path);
  for (int i = 0; i < 400; ++i)
    file << "The river runs by the old stone bridge, and the river runs on.\n";
  return path;
}

ModelShape small_learner() {
  ModelShape shape = *shape_named("learner");
  shape.embedding = 32;
  shape.heads = shape.kv_heads = 2;
  shape.layers = 1;
  shape.feed_forward = 64;
  shape.vocabulary = 512;
  return shape;
}

TEST(MakeModel, TheSameSeedGivesTheSameBytes) {
  ModelShape shape = small_learner();
  shape.half = true;
  const std::string one = model_folder() + "/one.gguf";
  const std::string two = model_folder() + "/two.gguf";
  ASSERT_TRUE(generate_model(one, shape, 5).ok());
  ASSERT_TRUE(generate_model(two, shape, 5).ok());
  EXPECT_EQ(bytes_of(one), bytes_of(two));
  ASSERT_TRUE(generate_model(two, shape, 6).ok());
  EXPECT_NE(bytes_of(one), bytes_of(two));
}

TEST(MakeModel, WhatCannotBeMadeIsRefused) {
  EXPECT_FALSE(shape_named("huge").ok());
  ModelShape shape = small_learner();
  shape.vocabulary = 100;
  EXPECT_EQ(generate_model(model_folder() + "/x.gguf", shape, 1).error().kind,
            ErrorKind::invalid_argument);
  shape.vocabulary = 512;
  EXPECT_EQ(generate_model("/nonexistent/x.gguf", shape, 1).error().kind, ErrorKind::unavailable);
}

TEST(TrainModel, ATrainedModelKnowsItsTextBetterThanAnUntrainedOne) {
  TrainOptions options;
  options.from = model_folder() + "/fresh.gguf";
  options.to = model_folder() + "/trained.gguf";
  options.text = text_file();
  options.epochs = 2;
  options.rate = 5e-3F;
  ASSERT_TRUE(generate_model(options.from, small_learner(), 1).ok());
  const auto report = train_model(options);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->losses.size(), 2U);
  EXPECT_LT(report->losses[1], report->losses[0]);
  const auto loss = measure_loss(options.to, options.from, options.text, 2'000, 1);
  ASSERT_TRUE(loss.ok()) << loss.error().message;
  EXPECT_LT(loss->perplexity, loss->perplexity_reference / 2);
  EXPECT_GT(loss->divergence_nats, 0.01);
  options.text = "/nonexistent";
  EXPECT_EQ(train_model(options).error().kind, ErrorKind::not_found);
}

TEST(ImportModel, LowerPrecisionIsSmallerAndItsLossIsMeasured) {
  ImportOptions options;
  options.from = model_folder() + "/half.gguf";
  options.to = model_folder() + "/half.q8_0.gguf";
  ModelShape shape = small_learner();
  shape.half = true;
  ASSERT_TRUE(generate_model(options.from, shape, 1).ok());
  options.precision = "q8_0";
  const auto done = import_model(options);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_LT(std::filesystem::file_size(options.to), std::filesystem::file_size(options.from));
  const auto same = measure_loss(options.from, options.from, text_file(), 600, 1);
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_NEAR(same->divergence_nats, 0, 1e-9);
  EXPECT_EQ(same->same_choice, 1);
  EXPECT_EQ(same->tokens % 128, 0U);
  const auto loss = measure_loss(options.to, options.from, text_file(), 600, 1);
  EXPECT_GT(loss->divergence_nats, 0);
  EXPECT_LT(loss->divergence_nats, 0.1);
  const std::string record = record_json(options, 2, 1, {3, 4, 5}, *loss);
  EXPECT_NE(record.find("\"precision\":\"q8_0\""), std::string::npos);
  EXPECT_NE(record.find("\"divergence_nats\":"), std::string::npos);
}

TEST(ImportModel, WhatCannotBeImportedIsRefusedAndLeavesNothing) {
  ImportOptions options;
  options.from = model_path();
  options.to = model_folder() + "/never.gguf";
  options.precision = "q3";
  EXPECT_EQ(import_model(options).error().kind, ErrorKind::invalid_argument);
  options.precision = "q8_0";
  options.from = "/nonexistent.gguf";
  EXPECT_EQ(import_model(options).error().kind, ErrorKind::not_found);
  options.from = text_file();
  EXPECT_EQ(import_model(options).error().kind, ErrorKind::corrupt);
  EXPECT_FALSE(std::filesystem::exists(options.to));
  options.from = model_path();
  options.to = "/nonexistent/x.gguf";
  EXPECT_FALSE(import_model(options).ok());
}

TEST(MeasureLoss, ModelsOfDifferentVocabulariesAndShortTextsAreRefused) {
  const std::string other = model_folder() + "/other.gguf";
  ASSERT_TRUE(generate_model(other, small_learner(), 1).ok());
  EXPECT_EQ(measure_loss(other, model_path(), text_file(), 600, 1).error().kind,
            ErrorKind::invalid_argument);
  const std::string little = model_folder() + "/little.txt";
  std::ofstream(little) << "Too little.";
  EXPECT_EQ(measure_loss(other, other, little, 600, 1).error().kind, ErrorKind::invalid_argument);
  EXPECT_EQ(measure_loss(other, other, "/no/such/text", 600, 1).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace loam::serve
