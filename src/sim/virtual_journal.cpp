#include "sim/virtual_journal.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "domain/event_codec.hpp"

namespace loam::sim {
namespace {

constexpr std::size_t frame_head_bytes = 16;  // length and checksum, 8 bytes each

void put_number(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

std::uint64_t checksum(std::string_view bytes) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// Takes fields off the front of a frame whose checksum was right.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  std::uint64_t number() {
    LOAM_ASSERT(rest_.size() >= 8);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    }
    rest_.remove_prefix(8);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    LOAM_ASSERT(size <= rest_.size());
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view rest_;
};

std::string frame_of(std::span<const Record> records) {
  std::string body;
  for (const Record& record : records) {
    const EncodedEvent event = encode(record.event);
    put_number(body, record.sequence);
    put_number(body, static_cast<std::uint64_t>(record.at.ms));
    put_text(body, record.actor.issuer);
    put_text(body, record.actor.subject);
    put_text(body, event.type);
    put_number(body, static_cast<std::uint64_t>(event.version));
    put_text(body, event.payload);
  }
  std::string frame;
  put_number(frame, body.size());
  put_number(frame, checksum(body));
  return frame + body;
}

// The body of the whole frame at the front of `bytes`; nothing where it is torn.
std::optional<std::string_view> whole_frame(std::string_view bytes) {
  if (bytes.size() < frame_head_bytes) return std::nullopt;
  Reader head(bytes.substr(0, frame_head_bytes));
  const std::uint64_t size = head.number();
  const std::uint64_t sum = head.number();
  if (size > bytes.size() - frame_head_bytes) return std::nullopt;
  const std::string_view body = bytes.substr(frame_head_bytes, size);
  if (checksum(body) != sum) return std::nullopt;
  return body;
}

}  // namespace

Result<void> VirtualJournal::append(std::span<const Record> records) {
  if (full_) {
    return Error{ErrorKind::unavailable, "the journal is full: no space left",
                 "make room; loam goes on by itself"};
  }
  repair();
  const std::string frame = frame_of(records);
  if (tear_at_) {
    const std::size_t kept = *std::exchange(tear_at_, std::nullopt);
    bytes_ += frame.substr(0, kept);
    torn_ = true;
    return Error{ErrorKind::unavailable, "the machine stopped while it wrote", "start it again"};
  }
  bytes_ += frame;
  whole_bytes_ = bytes_.size();
  return {};
}

Result<void> VirtualJournal::read_on() {
  while (const auto body = whole_frame(std::string_view(bytes_).substr(read_bytes_))) {
    Reader reader(*body);
    while (!reader.empty()) {
      Record record;
      record.sequence = reader.number();
      record.at = Instant{static_cast<std::int64_t>(reader.number())};
      record.actor.issuer = reader.text();
      record.actor.subject = reader.text();
      EncodedEvent encoded;
      encoded.type = reader.text();
      encoded.version = static_cast<int>(reader.number());
      encoded.payload = reader.text();
      LOAM_TRY(event, decode(encoded));
      record.event = std::move(event);
      read_.push_back(std::move(record));
    }
    read_bytes_ += frame_head_bytes + body->size();
  }
  return {};
}

Result<void> VirtualJournal::replay(std::uint64_t after,
                                    const std::function<Result<void>(const Record&)>& each) {
  LOAM_CHECK(read_on());
  for (std::size_t i = after; i < read_.size(); ++i) {
    LOAM_ASSERT(read_[i].sequence == i + 1);
    LOAM_CHECK(each(read_[i]));
  }
  return {};
}

Result<engine::StateImage> VirtualJournal::load_snapshot() {
  if (snapshot_.empty()) return engine::StateImage{};
  return engine::decode_image(snapshot_, engine::snapshot_version);
}

void VirtualJournal::keep_snapshot(const engine::State& state) {
  snapshot_ = engine::encode(engine::image_of(state));
}

std::size_t VirtualJournal::repair() {
  std::string_view rest = std::string_view(bytes_).substr(whole_bytes_);
  while (const auto body = whole_frame(rest)) rest.remove_prefix(frame_head_bytes + body->size());
  const std::size_t dropped = rest.size();
  bytes_.resize(bytes_.size() - dropped);
  whole_bytes_ = bytes_.size();
  return dropped;
}

}  // namespace loam::sim
