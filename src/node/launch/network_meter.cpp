#include "node/launch/network_meter.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace loam::node {
namespace {

constexpr std::uint32_t received = 0;  // keys of the map
constexpr std::uint32_t sent = 1;
constexpr std::int32_t loopback = 1;  // the interface index that it has in every network namespace

long bpf(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

template <class T>
std::uint64_t address_of(const T* what) {
  return reinterpret_cast<std::uint64_t>(what);
}

Error fault(const char* doing) {
  return Error{ErrorKind::unsupported,
               std::string("network use is not counted: ") + doing + ": " + std::strerror(errno),
               "run loamd as root, or with CAP_BPF and CAP_NET_ADMIN"};
}

bpf_insn instruction(int code, int to, int from, int offset, std::int32_t value) {
  bpf_insn made{};
  made.code = static_cast<std::uint8_t>(code);
  made.dst_reg = static_cast<std::uint8_t>(to & 0xf);
  made.src_reg = static_cast<std::uint8_t>(from & 0xf);
  made.off = static_cast<std::int16_t>(offset);
  made.imm = value;
  return made;
}

// if (packet.ifindex != loopback) map[key] += packet.len; return 1 (let it through).
Result<Fd> load(const Fd& map, std::uint32_t key, bpf_attach_type where) {
  constexpr int load_word = BPF_LDX | BPF_MEM | BPF_W;
  constexpr int move = BPF_ALU64 | BPF_MOV;
  const auto offset_of = [](std::size_t offset) { return static_cast<int>(offset); };
  const std::array<bpf_insn, 13> program{
      instruction(load_word, BPF_REG_6, BPF_REG_1, offset_of(offsetof(__sk_buff, len)), 0),
      instruction(load_word, BPF_REG_7, BPF_REG_1, offset_of(offsetof(__sk_buff, ifindex)), 0),
      instruction(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 8, loopback),
      instruction(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, static_cast<std::int32_t>(key)),
      instruction(move | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
      instruction(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
      instruction(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map.get()),
      instruction(0, 0, 0, 0, 0),  // the other half of the one before
      instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
      instruction(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 1, 0),
      instruction(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_6, 0, BPF_ADD),
      instruction(move | BPF_K, BPF_REG_0, 0, 0, 1),
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
  static const char license[] = "Apache-2.0";
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
  attributes.insns = address_of(program.data());
  attributes.insn_cnt = static_cast<std::uint32_t>(program.size());
  attributes.license = address_of(license);
  attributes.expected_attach_type = where;
  Fd loaded(static_cast<int>(bpf(BPF_PROG_LOAD, attributes)));
  if (!loaded.valid()) return fault("loading the counting program");
  return loaded;
}

Result<void> count_at(const Fd& group, const Fd& map, std::uint32_t key, bpf_attach_type where) {
  LOAM_TRY(program, load(map, key, where));
  bpf_attr attributes{};
  attributes.target_fd = static_cast<std::uint32_t>(group.get());
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(program.get());
  attributes.attach_type = where;
  attributes.attach_flags = BPF_F_ALLOW_MULTI;  // others' programs stay
  if (bpf(BPF_PROG_ATTACH, attributes) != 0) return fault("attaching the counting program");
  return {};
}

}  // namespace

Result<NetworkMeter> NetworkMeter::attach(const std::string& group) {
  const Fd directory(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return fault("opening the control group");
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(std::uint64_t);
  attributes.max_entries = 2;
  Fd map(static_cast<int>(bpf(BPF_MAP_CREATE, attributes)));
  if (!map.valid()) return fault("making a map");
  LOAM_CHECK(count_at(directory, map, received, BPF_CGROUP_INET_INGRESS));
  LOAM_CHECK(count_at(directory, map, sent, BPF_CGROUP_INET_EGRESS));
  return NetworkMeter(std::move(map));
}

std::optional<NetworkMoved> NetworkMeter::moved() const {
  const auto read = [&](std::uint32_t key) -> std::optional<std::int64_t> {
    std::uint64_t value = 0;
    bpf_attr attributes{};
    attributes.map_fd = static_cast<std::uint32_t>(map_.get());
    attributes.key = address_of(&key);
    attributes.value = address_of(&value);
    if (bpf(BPF_MAP_LOOKUP_ELEM, attributes) != 0) return std::nullopt;
    return static_cast<std::int64_t>(value);
  };
  const auto in = read(received);
  const auto out = read(sent);
  if (!in || !out) return std::nullopt;
  return NetworkMoved{*in, *out};
}

}  // namespace loam::node
