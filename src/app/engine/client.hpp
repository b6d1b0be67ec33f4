// The client's side of the engine's socket, blocking: for tests, measurements and the terminal.
// Shell; one thread.
#pragma once

#include <optional>
#include <string>

#include "infer/wire.hpp"

namespace loam::serve {

class EngineClient {
 public:
  // Greets; fails where nobody listens at `path` or the engine speaks another version.
  static Result<EngineClient> connect(const std::string& path, const std::string& name);
  // Without a greeting, for tests of what happens then.
  static Result<EngineClient> connect_silently(const std::string& path);
  EngineClient(EngineClient&& other) noexcept;
  EngineClient& operator=(EngineClient&& other) noexcept;
  ~EngineClient();

  const infer::wire::Welcome& welcome() const { return welcome_; }
  Result<void> send(const infer::wire::Frame& frame);
  Result<void> send_bytes(std::string_view bytes);
  // The next frame; nothing after `wait_ms` without one. An error once the connection is over.
  Result<std::optional<infer::wire::Frame>> receive(int wait_ms);

 private:
  explicit EngineClient(int socket) : socket_(socket) {}
  int socket_ = -1;
  infer::wire::Welcome welcome_;
  infer::wire::FrameReader reader_;
};

}  // namespace loam::serve
