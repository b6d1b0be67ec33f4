// The connection to one instance of loam-engine: frames over a Unix socket that never blocks.
// Shell (sockets). Internal to this folder.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "infer/wire.hpp"

namespace loam::gateway {

class EngineLink {
 public:
  explicit EngineLink(std::string path) : path_(std::move(path)) {}
  EngineLink(const EngineLink&) = delete;
  EngineLink& operator=(const EngineLink&) = delete;
  ~EngineLink() { close(); }

  // unavailable where nobody listens at the path.
  Result<void> connect();
  void close();
  int fd() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }
  const std::string& path() const noexcept { return path_; }

  // Queues the frame and sends what the socket takes. An error means that the connection is of no
  // more use. Requires open() and that the frame fits.
  Result<void> send(const infer::wire::Frame& frame);
  Result<void> flush();
  bool wants_write() const noexcept { return offset_ < out_.size(); }

  // Reads once. What came is then had from next_frame(). An error: the end of the connection.
  Result<void> receive();
  Result<std::optional<infer::wire::Frame>> next_frame() { return reader_.next(); }

 private:
  const std::string path_;
  int fd_ = -1;
  std::string out_;
  std::size_t offset_ = 0;
  infer::wire::FrameReader reader_;
  std::string scratch_;
};

}  // namespace loam::gateway
