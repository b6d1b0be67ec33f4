// Sockets as plain file descriptors: listening safely and connecting with a time limit. POSIX
// and Linux; every descriptor is close-on-exec, so that no task inherits a client. Internal to this
// folder.
#pragma once

#include <sys/types.h>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "http/address.hpp"
#include "http/message.hpp"

namespace loam::http {

// Owns one descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { close(); }

  int get() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }
  int release() noexcept;
  void close() noexcept;

 private:
  int fd_ = -1;
};

// "what: No such file or directory (errno 2)", with a kind that fits the errno.
Error system_error(std::string what, int number);

// A listening socket that is not blocking. For a Unix socket it also holds the lock that keeps
// a second server away, and removes the socket file at the end if it is still its own.
class Listener {
 public:
  // `mode` is the socket file's; whoever may write to it may connect. A socket file that nobody
  // answers on is replaced; conflict where another server lives on it, or where something
  // else than a socket is in the way. Leaves PATH.lock behind: removing it would be a race.
  static Result<Listener> on_unix(const UnixAddress& address, mode_t mode);
  // The host must be a literal address or "localhost". permission_denied for an address that is not
  // a loopback one, unless `allow_remote`.
  static Result<Listener> on_tcp(const TcpAddress& address, bool allow_remote);

  Listener() = default;
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener() { close(); }

  int fd() const noexcept { return socket_.get(); }
  bool open() const noexcept { return socket_.open(); }
  int family() const noexcept { return family_; }
  std::uint16_t port() const noexcept { return port_; }  // the kernel's choice where 0 was asked
  // Hands the descriptor to the caller; the lock and the file stay here.
  int release_fd() noexcept { return socket_.release(); }
  void close() noexcept;

 private:
  Descriptor socket_;
  Descriptor lock_;
  int family_ = 0;
  std::uint16_t port_ = 0;
  std::string path_;  // of the socket file, while it is to be removed
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Who is at the other end of an accepted or connected socket.
Peer peer_of(int fd, int family);

using TimePoint = std::chrono::steady_clock::time_point;

// A connected socket, not blocking. Host names are looked up (which blocks as long as the
// resolver likes). unavailable when nobody listens there or `deadline` passes.
Result<Descriptor> connect_to(const Address& address, TimePoint deadline);

}  // namespace loam::http
