// loam-model: makes, imports and measures models. Exit status: 0 done, 1 failed, 2 wrong arguments.
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/engine/import_model.hpp"
#include "app/engine/make_model.hpp"

namespace {

using namespace loam::serve;  // NOLINT: a program of one file

constexpr const char* usage =
    "usage: loam-model generate SIZE FILE [--seed N]     SIZE: tiny, 20m, 124m or learner\n"
    "       loam-model train FROM TO --text FILE [--epochs N]\n"
    "       loam-model import FROM TO [--precision P] [--keep REGEX]... [--text FILE]\n"
    "                  P: f16, q8_0, q4_K_M or mixed (default); --keep: tensors kept at 8 bits\n"
    "                  with mixed; --text: measures the loss against FROM on it\n"
    "       loam-model compare MODEL REFERENCE --text FILE\n"
    "import prints size, speed and loss as JSON and keeps them in TO.json. --threads N (default "
    "1).\n";

struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::vector<std::string>> options;

  std::string one(const std::string& name, const std::string& otherwise) const {
    const auto found = options.find(name);
    return found == options.end() ? otherwise : found->second.back();
  }
};

int fail(const loam::Error& error) {
  std::fprintf(stderr, "loam-model: %s\n", loam::to_text(error).c_str());
  return error.kind == loam::ErrorKind::invalid_argument ? 2 : 1;
}

loam::Result<std::uint64_t> number(const Words& words, const std::string& name,
                                   const char* otherwise, std::uint64_t least, std::uint64_t most) {
  const std::string text = words.one(name, otherwise);
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || text[0] < '0' || text[0] > '9' || *end != '\0' || value < least ||
      value > most) {
    return loam::invalid(
        name + " is '" + text + "'",
        "give a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

constexpr std::uint64_t judged_tokens_max = 16'384;

loam::Result<void> run_import(const Words& words, int threads) {
  ImportOptions options;
  options.from = words.plain[1];
  options.to = words.plain[2];
  options.precision = words.one("--precision", "mixed");
  options.threads = threads;
  if (const auto keep = words.options.find("--keep"); keep != words.options.end())
    options.keep = keep->second;
  LOAM_CHECK(import_model(options));
  LOAM_TRY(speed, measure_speed(options.to, threads));
  std::optional<Loss> loss;
  if (const std::string text = words.one("--text", ""); !text.empty()) {
    LOAM_TRY(measured, measure_loss(options.to, options.from, text, judged_tokens_max, threads));
    loss = measured;
  }
  const std::string record =
      record_json(options, size_of(options.from), size_of(options.to), speed, loss);
  std::ofstream(options.to + ".json") << record;
  std::fputs(record.c_str(), stdout);
  return {};
}

loam::Result<void> run(const Words& words) {
  LOAM_TRY(threads, number(words, "--threads", "1", 1, 256));
  const std::string& what = words.plain[0];
  if (what == "generate") {
    LOAM_TRY(shape, shape_named(words.plain[1]));
    LOAM_TRY(seed, number(words, "--seed", "1", 0, UINT64_MAX));
    return generate_model(words.plain[2], shape, seed);
  }
  if (what == "train") {
    TrainOptions options;
    LOAM_TRY(epochs, number(words, "--epochs", "2", 1, 1000));
    options.from = words.plain[1];
    options.to = words.plain[2];
    options.text = words.one("--text", "");
    options.epochs = static_cast<std::uint32_t>(epochs);
    options.threads = static_cast<int>(threads);
    LOAM_TRY(report, train_model(options));
    std::printf("{\"tokens_per_epoch\":%llu,\"losses\":[",
                static_cast<unsigned long long>(report.tokens));
    for (std::size_t i = 0; i < report.losses.size(); ++i)
      std::printf("%s%.4f", i == 0 ? "" : ",", report.losses[i]);
    std::printf("]}\n");
    return {};
  }
  if (what == "compare") {
    LOAM_TRY(loss, measure_loss(words.plain[1], words.plain[2], words.one("--text", ""),
                                judged_tokens_max, static_cast<int>(threads)));
    std::printf(
        "{\"perplexity\":%.6g,\"perplexity_reference\":%.6g,\"divergence_nats\":%.6g,\"same_"
        "choice\":%.6g}\n",
        loss.perplexity, loss.perplexity_reference, loss.divergence_nats, loss.same_choice);
    return {};
  }
  return run_import(words, static_cast<int>(threads));
}

}  // namespace

int main(int count, char** given) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = given[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    const bool option = word == "--seed" || word == "--text" || word == "--epochs" ||
                        word == "--precision" || word == "--keep" || word == "--threads";
    if (option && i + 1 < count) {
      words.options[word].push_back(given[++i]);
    } else if (word.starts_with("--")) {
      std::fprintf(stderr, "loam-model: unexpected option '%s'\n%s", given[i], usage);
      return 2;
    } else {
      words.plain.push_back(word);
    }
  }
  const bool known =
      words.plain.size() == 3 && (words.plain[0] == "generate" || words.plain[0] == "train" ||
                                  words.plain[0] == "import" || words.plain[0] == "compare");
  if (!known) {
    std::fputs(usage, stderr);
    return 2;
  }
  const auto done = run(words);
  return done.ok() ? 0 : fail(done.error());
}
