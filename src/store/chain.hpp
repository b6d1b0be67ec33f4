// The hash chain of the journal: each row's hash covers the row before it and every field, so that
// a row changed, removed or inserted behind loam's back is found. BLAKE2b-256 (RFC 7693) by
// libsodium. It is a checksum against damage and tampering with single rows; whoever can rewrite
// the whole file can rewrite the chain. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace loam::store {

using ChainHash = std::array<std::uint8_t, 32>;

// What the first row continues.
inline constexpr ChainHash chain_start{};

struct ChainRow {
  std::int64_t sequence = 0;
  std::int64_t at_ms = 0;
  std::string_view issuer;
  std::string_view subject;
  std::string_view type;
  std::int64_t version = 0;
  std::string_view payload;
};

// BLAKE2b-256 over: the previous hash; sequence, at_ms and version as 8 bytes little endian;
// and each text preceded by its length as 8 bytes little endian; in the order of the members.
ChainHash chain_hash(const ChainHash& previous, const ChainRow& row);

// The same function over one text, for snapshots.
ChainHash text_hash(std::string_view text);

// Lower-case hexadecimal.
std::string to_text(const ChainHash& hash);

}  // namespace loam::store
