#include "store/chain.hpp"

#include <sodium.h>

#include "base/assert.hpp"

namespace loam::store {

namespace {

class Hasher {
 public:
  Hasher() { LOAM_ASSERT(crypto_generichash_init(&state_, nullptr, 0, sizeof(ChainHash)) == 0); }

  void add(const void* data, std::size_t size) {
    crypto_generichash_update(&state_, static_cast<const unsigned char*>(data), size);
  }
  void add(std::int64_t value) {
    std::array<std::uint8_t, 8> bytes{};
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(bits >> (8 * i));
    add(bytes.data(), bytes.size());
  }
  void add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    add(text.data(), text.size());
  }
  ChainHash finish() {
    ChainHash hash;
    crypto_generichash_final(&state_, hash.data(), hash.size());
    return hash;
  }

 private:
  crypto_generichash_state state_;
};

}  // namespace

ChainHash chain_hash(const ChainHash& previous, const ChainRow& row) {
  Hasher hasher;
  hasher.add(previous.data(), previous.size());
  hasher.add(row.sequence);
  hasher.add(row.at_ms);
  hasher.add(row.issuer);
  hasher.add(row.subject);
  hasher.add(row.type);
  hasher.add(row.version);
  hasher.add(row.payload);
  return hasher.finish();
}

ChainHash text_hash(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return hasher.finish();
}

std::string to_text(const ChainHash& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : hash) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace loam::store
