// The metadata address of one attempt: its stop notice over HTTP, in the shape that spot handlers
// already read from their cloud (EC2's instance metadata: spot/instance-action and
// spot/termination-time, with its session tokens; Compute Engine's instance/preempted). On the
// loopback, since the task shares the node's network; it tells nothing but that notice. Shell.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "node/launch/file.hpp"

struct pollfd;

namespace loam::node {

struct MetadataView {
  std::string attempt;
  std::string deadline;  // RFC 3339 of the kill; empty: no notice was given
};

// The whole answer, head and body, to a request's head. Anything that is not understood is
// answered too, by 400, 404 or 405. Pure.
std::string metadata_answer(std::string_view head, const MetadataView& view);

// To be driven by the caller's poll loop.
class MetadataServer {
 public:
  // On a free port of 127.0.0.1.
  static Result<MetadataServer> listen();
  // "http://127.0.0.1:41234"; empty where it does not listen.
  std::string address() const;

  void add_waits(std::vector<pollfd>& waits) const;
  void serve(const MetadataView& view);

 private:
  struct Client {
    Fd socket;
    std::string input;
  };
  Fd listener_;
  std::uint16_t port_ = 0;
  std::list<Client> clients_;  // oldest first
};

}  // namespace loam::node
