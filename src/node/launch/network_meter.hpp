// Counts what the processes of a control group send and receive: two small programs that the kernel
// runs for each packet of the group add its length to a map. The loopback interface is left out:
// what stays on the node is no network use.
// Source: Linux bpf(2); include/uapi/linux/bpf.h (BPF_PROG_TYPE_CGROUP_SKB). Shell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/launch/file.hpp"

namespace loam::node {

struct NetworkMoved {
  std::int64_t received_bytes = 0;  // IP packets, headers included
  std::int64_t sent_bytes = 0;
};

class NetworkMeter {
 public:
  // `group`: the directory of a v2 control group. From then on it counts, until the group is
  // removed; who reads it must keep the meter. ErrorKind::unsupported where the kernel lets this
  // process attach nothing (it takes CAP_BPF and CAP_NET_ADMIN, or root). Cost: about a
  // millisecond.
  static Result<NetworkMeter> attach(const std::string& group);

  // Nothing where the kernel does not answer.
  std::optional<NetworkMoved> moved() const;

 private:
  explicit NetworkMeter(Fd map) : map_(std::move(map)) {}

  Fd map_;  // received and sent, in bytes
};

}  // namespace loam::node
