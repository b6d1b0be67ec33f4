// One client's connection, as the server's core sees it. Internal to this folder.
#pragma once

#include <memory>

#include "http/socket.hpp"

namespace loam::http {

struct ServerCore;

// Callable from any thread; the work happens on the connection's own strand.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void start() = 0;
  // No more requests: closes an idle connection, ends an event stream.
  virtual void begin_stop() = 0;
  virtual void close() = 0;
};

// Takes an accepted socket of address family `family`.
std::shared_ptr<Connection> make_connection(std::shared_ptr<ServerCore> core, int family,
                                            Descriptor socket);

}  // namespace loam::http
