#include <fcntl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "http/fixture.hpp"

namespace loam::http {
namespace {

using ListenTest = ServerTest;

ErrorKind start_error(const ServerOptions& options, const Handler& handler) {
  const auto server = Server::start(options, handler);
  EXPECT_FALSE(server.ok());
  return server.ok() ? ErrorKind::internal : server.error().kind;
}

// A bound socket without the lock that our server keeps.
Descriptor foreign_socket(const std::string& path, bool listening) {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (listening) {
    EXPECT_EQ(::listen(socket.get(), 1), 0);
  }
  return socket;
}

TEST_F(ListenTest, ASecondServerOnTheSameSocketIsRefused) {
  start();
  EXPECT_EQ(start_error(options, handler), ErrorKind::conflict);
  EXPECT_TRUE(client().send(get("/")).ok());  // the first one is unharmed
  server.reset();
  start();
  EXPECT_TRUE(client().send(get("/")).ok());
}

TEST_F(ListenTest, AForeignLivingSocketIsRefused) {
  const Descriptor foreign = foreign_socket(options.unix_address->path, true);
  EXPECT_EQ(start_error(options, handler), ErrorKind::conflict);
  EXPECT_TRUE(std::filesystem::exists(options.unix_address->path));
}

TEST_F(ListenTest, AStaleSocketIsReplaced) {
  foreign_socket(options.unix_address->path, true).close();
  EXPECT_TRUE(std::filesystem::exists(options.unix_address->path));
  start();
  EXPECT_TRUE(client().send(get("/")).ok());
}

TEST_F(ListenTest, AKilledServersSocketIsReplaced) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto server = Server::start(options, handler);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(std::filesystem::exists(options.unix_address->path));
  start();
  EXPECT_TRUE(client().send(get("/")).ok());
}

TEST_F(ListenTest, AnythingElseInTheWayIsLeftAlone) {
  const std::string& path = options.unix_address->path;
  std::ofstream(path) << "precious";
  EXPECT_EQ(start_error(options, handler), ErrorKind::conflict);
  EXPECT_EQ(std::filesystem::file_size(path), 8u);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(folder / "elsewhere", path);
  EXPECT_EQ(start_error(options, handler), ErrorKind::conflict);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
}

TEST_F(ListenTest, StoppingLeavesAnothersFileAlone) {
  start();
  std::filesystem::remove(options.unix_address->path);
  std::ofstream(options.unix_address->path) << "another's";
  server.reset();
  EXPECT_TRUE(std::filesystem::exists(options.unix_address->path));
}

TEST_F(ListenTest, TheSocketFileHasItsMode) {
  const mode_t before = ::umask(0077);
  options.unix_mode = 0660;
  start();
  ::umask(before);
  struct stat found {};
  ASSERT_EQ(::stat(options.unix_address->path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0660u);
}

TEST_F(ListenTest, BadPlacesAreErrors) {
  options.unix_address = UnixAddress{"/nonexistent-folder/s"};
  EXPECT_EQ(start_error(options, handler), ErrorKind::unavailable);
  options.unix_address = UnixAddress{"/tmp/" + std::string(200, 'x')};
  EXPECT_EQ(start_error(options, handler), ErrorKind::invalid_argument);
}

TEST_F(ListenTest, TcpBeyondLoopbackMustBeAllowed) {
  options.unix_address.reset();
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "::ffff:127.0.0.1"}) {
    options.tcp_address = TcpAddress{host, 0};
    EXPECT_EQ(start_error(options, handler), ErrorKind::permission_denied) << host;
  }
  options.tcp_address = TcpAddress{"example.com", 0};
  EXPECT_EQ(start_error(options, handler), ErrorKind::invalid_argument);
  options.tcp_address = TcpAddress{"0.0.0.0", 0};
  options.allow_remote = true;
  start();
  EXPECT_EQ(start_error(
                [&] {
                  ServerOptions same = options;
                  same.tcp_address->port = server->tcp_port();
                  return same;
                }(),
                handler),
            ErrorKind::conflict);
}

TEST_F(ListenTest, NoDescriptorOfTheServerIsInherited) {
  options.tcp_address = TcpAddress{"127.0.0.1", 0};
  start();
  RawClient local = raw();
  RawClient remote(TcpAddress{"127.0.0.1", server->tcp_port()});
  ASSERT_TRUE(eventually([&] { return server->connections() == 2; }));
  int checked = 0;
  for (int fd = 3; fd < 256; ++fd) {
    const int flags = ::fcntl(fd, F_GETFD);
    // By its name in /proc: who asks by fstat(2) is taken to use what the server closes.
    char name[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    const bool there = ::readlink(link.c_str(), name, sizeof name - 1) > 0;
    if (flags < 0 || !there || !std::string_view(name).starts_with("socket:")) continue;
    EXPECT_TRUE(flags & FD_CLOEXEC) << fd;
    ++checked;
  }
  EXPECT_GE(checked, 6);  // two listeners, and two connections with two ends each
}

}  // namespace
}  // namespace loam::http
