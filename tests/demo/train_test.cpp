// The training program as a tenant runs it: by its command line, its exit status and its files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "demo/checkpoint.hpp"

namespace {

using testing::HasSubstr;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Train : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/loam_train_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(checkpoints());
    static const bool has_driver = run({"--size", "16", "--steps", "1"}) != 3;
    if (!has_driver) GTEST_SKIP() << "no OpenCL driver on this machine";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string checkpoints() const { return folder_ + "/checkpoints"; }
  std::string report_path() const { return folder_ + "/report.json"; }
  std::string output() const { return content_of(folder_ + "/out"); }
  std::string errors() const { return content_of(folder_ + "/err"); }
  boost::json::object report() const {
    return boost::json::parse(content_of(report_path())).as_object();
  }

  using Environment = std::map<std::string, std::string>;
  Environment saving(int restart = 0) const {
    return {{"LOAM_CHECKPOINT_DIR", checkpoints()}, {"LOAM_RESTART", std::to_string(restart)}};
  }

  pid_t start(std::vector<std::string> arguments, const Environment& environment = {}) {
    arguments.insert(arguments.begin(), LOAM_DEMO_TRAIN);
    arguments.insert(arguments.end(), {"--report", report_path()});
    // What an earlier run of the test left behind must not be taken for this one's.
    for (const char* name : {"/report.json", "/out", "/err"}) {
      std::filesystem::remove(folder_ + name);
    }
    const pid_t child = ::fork();
    if (child != 0) return child;
    const int out = ::open((folder_ + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = ::open((folder_ + "/err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(err, STDERR_FILENO);
    for (const char* name : {"LOAM_CHECKPOINT_DIR", "LOAM_RESTART", "LOAM_NOTICE"}) {
      ::unsetenv(name);
    }
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }

  // A run that never ends is killed and fails its test, not the whole suite.
  static int wait(pid_t child) {
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 24000 && ended == 0; ++i) {  // two minutes: a busy machine is slow
      ended = ::waitpid(child, &status, WNOHANG);
      if (ended == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (ended == 0) {
      ADD_FAILURE() << "the program did not end";
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  int run(std::vector<std::string> arguments, const Environment& environment = {}) {
    return wait(start(std::move(arguments), environment));
  }

  // Waits until the program has trained some steps; it prints a line for each first one.
  void wait_for_training(pid_t child) {
    for (int i = 0; i < 6000 && output().find("steps/s") == std::string::npos; ++i) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "ended early: " << errors();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  std::string folder_;
};

TEST_F(Train, TheLossFalls) {
  ASSERT_EQ(run({"--size", "64", "--steps", "200"}), 0) << errors();
  const auto report = this->report();
  EXPECT_LT(report.at("loss").to_number<double>(),
            0.1 * report.at("first_loss").to_number<double>());
  EXPECT_EQ(report.at("steps").as_int64(), 200);
  EXPECT_EQ(report.at("kernels").as_int64(), 200 * 7);
  EXPECT_TRUE(report.at("stopped_by").is_null());
  EXPECT_THAT(output(), HasSubstr("step 200  loss "));
}

TEST_F(Train, AResumedRunEndsWhereAnUninterruptedOneDoes) {
  ASSERT_EQ(run({"--size", "64", "--steps", "60", "--quiet"}), 0) << errors();
  const auto whole = report();
  ASSERT_EQ(run({"--size", "64", "--steps", "23", "--quiet"}, saving()), 0) << errors();
  ASSERT_EQ(run({"--size", "64", "--steps", "60"}, saving(1)), 0) << errors();
  const auto resumed = report();
  EXPECT_EQ(resumed.at("resumed_from").as_int64(), 23);
  EXPECT_EQ(resumed.at("attempt_steps").as_int64(), 37);
  EXPECT_EQ(resumed.at("loss"), whole.at("loss"));
  EXPECT_THAT(output(), HasSubstr("resumed at step 23"));
}

TEST_F(Train, ACheckpointIsOnlyTakenUpWhenRestarted) {
  ASSERT_EQ(run({"--size", "64", "--steps", "5"}, saving()), 0) << errors();
  ASSERT_EQ(run({"--size", "64", "--steps", "5"}, saving(0)), 0) << errors();
  EXPECT_EQ(report().at("resumed_from").as_int64(), 0);
  EXPECT_EQ(report().at("attempt_steps").as_int64(), 5);
}

TEST_F(Train, SigtermSavesAndExitsWithZero) {
  const pid_t child = start({"--size", "64"}, saving());
  wait_for_training(child);
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  EXPECT_EQ(wait(child), 0) << errors();
  const auto read = demo::load_checkpoint(checkpoints());
  ASSERT_TRUE(read.checkpoint) << read.message;
  EXPECT_EQ(static_cast<std::int64_t>(read.checkpoint->step), report().at("steps").as_int64());
  EXPECT_EQ(report().at("stopped_by").as_string(), "signal");
}

TEST_F(Train, TheNoticeFileSavesAndExitsWithZero) {
  Environment environment = saving();
  environment["LOAM_NOTICE"] = folder_ + "/notice";
  const pid_t child = start({"--size", "64"}, environment);
  wait_for_training(child);
  std::ofstream(folder_ + "/notice") << "{}";
  EXPECT_EQ(wait(child), 0) << errors();
  EXPECT_EQ(report().at("stopped_by").as_string(), "notice");
  EXPECT_TRUE(demo::load_checkpoint(checkpoints()).checkpoint);
}

TEST_F(Train, StoppedWithNowhereToSaveIsNotSuccess) {
  const pid_t child = start({"--size", "64"});
  wait_for_training(child);
  ASSERT_EQ(::kill(child, SIGTERM), 0);
  EXPECT_EQ(wait(child), 128 + SIGTERM);
  EXPECT_THAT(errors(), HasSubstr("LOAM_CHECKPOINT_DIR is not set"));
}

TEST_F(Train, AKilledRunGoesOnFromItsLastPeriodicSave) {
  const pid_t child = start({"--size", "64", "--checkpoint-every", "10"}, saving());
  for (int i = 0; i < 6000 && !demo::load_checkpoint(checkpoints()).checkpoint; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  EXPECT_EQ(wait(child), 128 + SIGKILL);
  const auto read = demo::load_checkpoint(checkpoints());
  ASSERT_TRUE(read.checkpoint) << read.message;
  EXPECT_EQ(read.checkpoint->step % 10, 0U);
  const std::string end = std::to_string(read.checkpoint->step + 5);
  ASSERT_EQ(run({"--size", "64", "--steps", end}, saving(1)), 0) << errors();
  EXPECT_EQ(report().at("attempt_steps").as_int64(), 5);
}

TEST_F(Train, TheTimeOfEarlierAttemptsCounts) {
  ASSERT_EQ(run({"--size", "64", "--seconds", "0.3"}, saving()), 0) << errors();
  ASSERT_EQ(run({"--size", "64", "--seconds", "0.3"}, saving(1)), 0) << errors();
  EXPECT_EQ(report().at("attempt_steps").as_int64(), 0);
  EXPECT_GE(report().at("total_seconds").to_number<double>(), 0.3);
}

TEST_F(Train, ADamagedCheckpointIsAClearErrorOrFallsBack) {
  ASSERT_EQ(run({"--size", "64", "--steps", "20", "--checkpoint-every", "8"}, saving()), 0);
  std::ofstream(checkpoints() + "/train.ckpt", std::ios::trunc) << "damaged";
  ASSERT_EQ(run({"--size", "64", "--steps", "20"}, saving(1)), 0) << errors();
  EXPECT_EQ(report().at("resumed_from").as_int64(), 16);
  EXPECT_THAT(errors(), HasSubstr("train.ckpt cannot be used"));
  for (const char* name : {"/train.ckpt", "/train.ckpt.previous"}) {
    std::ofstream(checkpoints() + name, std::ios::trunc) << "damaged";
  }
  EXPECT_EQ(run({"--size", "64", "--steps", "20"}, saving(1)), 4);
  EXPECT_THAT(errors(), HasSubstr("to start over"));
}

TEST_F(Train, ACheckpointOfAnotherSizeIsRefused) {
  ASSERT_EQ(run({"--size", "64", "--steps", "2"}, saving()), 0);
  EXPECT_EQ(run({"--size", "32", "--steps", "3"}, saving(1)), 4);
  EXPECT_THAT(errors(), HasSubstr("--size 64, not 32"));
}

TEST_F(Train, RestartedWithoutACheckpointItSaysThatItBeginsAgain) {
  EXPECT_EQ(run({"--size", "64", "--steps", "2"}, saving(1)), 0);
  EXPECT_THAT(errors(), HasSubstr("starting from the beginning"));
}

TEST_F(Train, ACheckpointFolderThatIsNotThereFails) {
  EXPECT_EQ(run({"--size", "64", "--steps", "2"}, {{"LOAM_CHECKPOINT_DIR", folder_ + "/none"}}), 4);
  EXPECT_THAT(errors(), HasSubstr(folder_ + "/none"));
}

TEST_F(Train, HoldsExtraMemory) {
  EXPECT_EQ(run({"--size", "64", "--steps", "2", "--memory", "70"}), 0) << errors();
}

TEST_F(Train, ADriversRefusalIsNamedWithItsCode) {
  EXPECT_EQ(run({"--size", "64", "--steps", "2", "--device", "77"}), 3);
  EXPECT_THAT(errors(), HasSubstr("CL_INVALID_DEVICE (-33)"));
  EXPECT_EQ(run({"--size", "64", "--steps", "2", "--platform", "77"}), 3);
  EXPECT_THAT(errors(), HasSubstr("CL_INVALID_PLATFORM (-32)"));
}

TEST_F(Train, BadOptionsAreRefusedWithTwo) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--size", "0"},
                                             {"--size", "17"},
                                             {"--size", "1e9"},
                                             {"--size", "99999999999999999999"},
                                             {"--steps", "0"},
                                             {"--steps", "-1"},
                                             {"--seconds", "nan"},
                                             {"--seconds", "0"},
                                             {"--seconds", "inf"},
                                             {"--progress-every", "nan"},
                                             {"--memory", "-5"},
                                             {"--memory", "9999999999"},
                                             {"--checkpoint-every", "0"},
                                             {"--unknown"},
                                             {"stray"}}) {
    EXPECT_EQ(run(bad), 2) << bad.front();
  }
}

}  // namespace
