// `loam sim` in this process, in a folder of its own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/loam/program.hpp"

namespace loam::cli {

class SimFolder : public ::testing::Test {
 protected:
  SimFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-sim-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~SimFolder() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(const std::string& name) const { return folder + "/" + name; }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string written(const std::string& name) {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  int loam(std::vector<std::string> words) {
    std::ostringstream out, err;
    Console console{out, err};
    words.insert(words.begin(), "sim");
    const int status = run_program(words, console, [](const char*) { return std::string(); });
    said = out.str();
    complained = err.str();
    return status;
  }
  void expect_keys(const std::string& name, const std::vector<std::string>& keys) {
    const std::string text = written(name);
    for (const std::string& key : keys)
      EXPECT_NE(text.find("\"" + key + "\":"), std::string::npos) << key << " in " << text;
  }
  // The number behind a key of a JSON text; NaN where there is none.
  static double figure(const std::string& text, const std::string& key) {
    const std::size_t at = text.find("\"" + key + "\":");
    if (at == std::string::npos) return std::nan("");
    return std::strtod(text.c_str() + at + key.size() + 3, nullptr);
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& says,
                      const std::string& next) {
    EXPECT_NE(loam(words), 0) << says;
    EXPECT_NE(complained.find(says), std::string::npos) << complained;
    const std::size_t step = complained.find("next: ");
    ASSERT_NE(step, std::string::npos) << complained;
    EXPECT_NE(complained.find(next, step), std::string::npos) << complained;
  }

  std::string folder, said, complained;
};

}  // namespace loam::cli
