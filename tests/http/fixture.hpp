// A server on a socket in a folder of its own, and a client that speaks bytes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "http/client.hpp"
#include "http/server.hpp"
#include "http/socket.hpp"

namespace loam::http {

// Long enough for a busy machine under a sanitizer; no passing test waits it out.
inline constexpr int patience_ms = 30'000;

inline TimePoint in_patience() {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
}

// Waits until `condition` holds; false when patience ends.
inline bool eventually(const std::function<bool()>& condition) {
  const TimePoint end = in_patience();
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "loam-http-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class RawClient {
 public:
  explicit RawClient(const Address& address) {
    auto socket = connect_to(address, in_patience());
    EXPECT_TRUE(socket.ok()) << (socket.ok() ? "" : to_text(socket.error()));
    if (socket.ok()) socket_ = std::move(socket).value();
  }

  // False when the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN) {
        if (!ready(POLLOUT)) return false;
      } else {
        return false;
      }
    }
    return true;
  }

  // Reads until `text` has come, or the end; what was read is in received().
  bool read_until(std::string_view text) {
    while (received_.find(text) == std::string::npos) {
      if (!read_some()) return received_.find(text) != std::string::npos;
    }
    return true;
  }
  // Everything until the server closes.
  const std::string& read_all() {
    while (read_some()) {
    }
    return received_;
  }
  // Takes one whole response with a Content-Length off the front of what comes.
  std::string read_response() {
    if (!read_until("\r\n\r\n")) return received_;
    const std::size_t head_bytes = received_.find("\r\n\r\n") + 4;
    const std::string name = "Content-Length: ";
    const std::size_t at = received_.find(name);
    const std::size_t body_bytes =
        at < head_bytes ? std::stoul(received_.substr(at + name.size())) : 0;
    while (received_.size() < head_bytes + body_bytes && read_some()) {
    }
    std::string response = received_.substr(0, head_bytes + body_bytes);
    received_.erase(0, head_bytes + body_bytes);
    return response;
  }

  const std::string& received() const { return received_; }
  bool ended() const { return ended_; }
  void finish_writing() { ::shutdown(socket_.get(), SHUT_WR); }
  void close() { socket_.close(); }

 private:
  bool ready(short events) {
    pollfd wait{socket_.get(), events, 0};
    const bool in_time = ::poll(&wait, 1, patience_ms) == 1;
    EXPECT_TRUE(in_time) << "the server said nothing; received so far: " << received_;
    return in_time;
  }
  bool read_some() {
    if (!ready(POLLIN)) return false;
    char bytes[4096];
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) ended_ = true;
    if (got <= 0) return false;
    received_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  Descriptor socket_;
  std::string received_;
  bool ended_ = false;
};

// Tests set `options` and `handler`, then start().
struct ServerTest : testing::Test {
  ServerTest() { options.unix_address = UnixAddress{folder / "s"}; }

  void start() {
    auto started = Server::start(options, handler);
    ASSERT_TRUE(started.ok()) << to_text(started.error());
    server = std::make_unique<Server>(std::move(started).value());
  }
  Address address() const { return *options.unix_address; }
  RawClient raw() const { return RawClient(address()); }
  Client client() const { return Client(address()); }

  static Request get(std::string path) {
    Request request;
    request.path = std::move(path);
    return request;
  }

  Folder folder;
  ServerOptions options;
  Handler handler = [](Request request, Responder responder) {
    responder.respond(make_response(
        200, "text/plain",
        std::string(name_of(request.method)) + " " + request.path + " " + request.body));
  };
  std::unique_ptr<Server> server;
};

}  // namespace loam::http
