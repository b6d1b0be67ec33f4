// One client of loam-engine: frames in, frames out, without ever waiting. Shell.
#pragma once

#include <cstdint>
#include <string>

#include "infer/wire.hpp"

namespace loam::serve {

class Connection {
 public:
  Connection(std::uint64_t id, int socket) : id_(id), socket_(socket) {}
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;

  std::uint64_t id() const { return id_; }
  int socket() const { return socket_; }
  infer::wire::FrameReader& reader() { return reader_; }
  bool greeted = false;  // its Hello was read
  bool ended = false;    // gone, or no longer of use: dropped by the loop
  bool closing = false;  // ended as soon as everything is written

  // Reads what is there; ended where the peer is gone.
  void receive();
  // Queues the frame. A client that leaves more than 64 MiB unread is ended.
  void send(const infer::wire::Frame& frame);
  // Writes what the socket takes.
  void flush();
  bool wants_to_write() const { return written_ < outgoing_.size(); }

 private:
  std::uint64_t id_;
  int socket_;
  infer::wire::FrameReader reader_;
  std::string outgoing_;
  std::size_t written_ = 0;
};

}  // namespace loam::serve
