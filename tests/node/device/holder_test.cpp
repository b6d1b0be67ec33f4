// Who sells a device of this machine, when several loamd run on it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/device/device_holder.hpp"

namespace loam::node {
namespace {

class Holder : public ::testing::Test {
 protected:
  Holder() {
    std::string pattern = std::filesystem::temp_directory_path() / "loam-holder.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Holder() override { std::filesystem::remove_all(folder_); }

  // In a process of its own, which lives until `stop` is written to or closed.
  pid_t hold_elsewhere(const std::string& uuid, const std::string& data, int ready, int stop) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const char answer = hold_device(folder_, uuid, data).ok() ? 'y' : 'n';
    char byte = 0;
    if (::write(ready, &answer, 1) == 1) (void)!::read(stop, &byte, 1);
    ::_exit(0);
  }

  std::string folder_;
};

TEST_F(Holder, a_device_is_held_until_its_loamd_is_gone) {
  int ready[2], stop[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(stop), 0);
  const pid_t other = hold_elsewhere("GPU-1", "/srv/a b", ready[1], stop[0]);
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto refused = hold_device(folder_, "GPU-1", "/srv/mine");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
  EXPECT_NE(refused.error().message.find("/srv/a b (process " + std::to_string(other) + ")"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(hold_device(folder_, "GPU-2", "/srv/mine").ok()) << "another device is free";
  EXPECT_TRUE(hold_device(folder_, "GPU-1", "/srv/a b").ok()) << "the same data, restarted";
  ASSERT_EQ(::write(stop[1], "x", 1), 1);
  ::waitpid(other, nullptr, 0);
  for (const int fd : {ready[0], ready[1], stop[0], stop[1]}) ::close(fd);
}

TEST_F(Holder, one_that_has_died_holds_nothing) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hold_device(folder_, "GPU-1", "/srv/dead").ok() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(hold_device(folder_, "GPU-1", "/srv/mine").ok());
}

TEST_F(Holder, what_is_no_such_file_names_nobody) {
  const std::string self = std::to_string(::getpid());
  for (const std::string& text : {std::string(), std::string("x"), std::string("-1 5 /d"), self,
                                  self + " 99999999999999999999 /d", self + " 1", self + " 1 \n/d",
                                  std::string(100'000, '7'), std::string("\0\0", 2)}) {
    std::ofstream(folder_ + "/loam-device-CL-1") << text;
    EXPECT_TRUE(hold_device(folder_, "CL-1", "/srv/mine").ok()) << text.substr(0, 40);
    std::ifstream file(folder_ + "/loam-device-CL-1");
    std::string now((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(now.find(" /srv/mine\n"), std::string::npos) << now.substr(0, 80);
    EXPECT_LT(now.size(), 200U);
  }
}

TEST_F(Holder, a_uuid_is_no_path) {
  EXPECT_TRUE(hold_device(folder_, "../../x/y", "/srv/mine").ok());
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/loam-device-.._.._x_y"));
}

TEST_F(Holder, a_folder_that_cannot_be_is_named) {
  std::ofstream(folder_ + "/file") << "";
  const auto refused = hold_device(folder_ + "/file/locks", "GPU-1", "/srv/mine");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().kind, ErrorKind::conflict);
  EXPECT_NE(refused.error().message.find("/file/locks"), std::string::npos);
}

}  // namespace
}  // namespace loam::node
