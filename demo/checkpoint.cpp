#include "checkpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace demo {
namespace {

constexpr std::string_view magic = "LOAMTRN1";
constexpr std::size_t header_bytes = 32;
constexpr std::uint64_t size_max = 8192;  // two matrices of 256 MiB: no demo needs more

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

void put(std::string& out, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xFF));
  }
}

std::uint64_t get(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

std::string previous_path(const std::string& folder) {
  return checkpoint_path(folder) + ".previous";
}

std::string system_text(const std::string& action, const std::string& path) {
  return action + " " + path + ": " + std::strerror(errno);
}

// Closes its descriptor on every way out.
struct Descriptor {
  explicit Descriptor(int number_) : number(number_) {}
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The whole file, or nothing with errno set.
std::optional<std::string> read_all(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number < 0) return std::nullopt;
  std::string bytes;
  char block[65536];
  while (true) {
    const ssize_t got = ::read(file.number, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return bytes;
    bytes.append(block, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string checkpoint_path(const std::string& folder) {
  return folder + "/train.ckpt";
}

std::string encode(const Checkpoint& checkpoint) {
  std::string bytes(magic);
  put(bytes, checkpoint.size);
  put(bytes, checkpoint.step);
  put(bytes, checkpoint.run_ms);
  for (const auto* weights : {&checkpoint.weights_in, &checkpoint.weights_out}) {
    bytes.append(reinterpret_cast<const char*>(weights->data()), weights->size() * sizeof(float));
  }
  put(bytes, fnv1a(bytes));
  return bytes;
}

std::optional<Checkpoint> decode(const std::string& bytes, std::string& why) {
  if (bytes.size() < header_bytes + 8 || std::string_view(bytes).substr(0, 8) != magic) {
    why = "it is not a checkpoint of this program";
    return std::nullopt;
  }
  Checkpoint checkpoint;
  checkpoint.size = get(bytes, 8);
  checkpoint.step = get(bytes, 16);
  checkpoint.run_ms = get(bytes, 24);
  if (checkpoint.size == 0 || checkpoint.size > size_max) {
    why = "its matrix size " + std::to_string(checkpoint.size) + " is out of range";
    return std::nullopt;
  }
  const std::size_t floats = checkpoint.size * checkpoint.size;
  const std::size_t expected = header_bytes + 2 * floats * sizeof(float) + 8;
  if (bytes.size() != expected) {
    why =
        "it has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(expected);
    return std::nullopt;
  }
  if (get(bytes, expected - 8) != fnv1a(std::string_view(bytes).substr(0, expected - 8))) {
    why = "its checksum does not match";
    return std::nullopt;
  }
  checkpoint.weights_in.resize(floats);
  checkpoint.weights_out.resize(floats);
  std::memcpy(checkpoint.weights_in.data(), bytes.data() + header_bytes, floats * sizeof(float));
  std::memcpy(checkpoint.weights_out.data(), bytes.data() + header_bytes + floats * sizeof(float),
              floats * sizeof(float));
  return checkpoint;
}

std::optional<std::string> save_checkpoint(const std::string& folder,
                                           const Checkpoint& checkpoint) {
  const std::string path = checkpoint_path(folder);
  const std::string beside = path + ".new";
  {
    const Descriptor file(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (file.number < 0) return system_text("cannot create", beside);
    if (!write_all(file.number, encode(checkpoint))) return system_text("cannot write", beside);
    if (::fsync(file.number) != 0) return system_text("cannot sync", beside);
  }
  // A hard link keeps the old name whole until the rename: at no instant is there no checkpoint.
  const std::string previous = previous_path(folder);
  ::unlink(previous.c_str());
  if (::link(path.c_str(), previous.c_str()) != 0 && errno != ENOENT) {
    return system_text("cannot keep the previous checkpoint as", previous);
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) return system_text("cannot replace", path);
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.number < 0 || ::fsync(directory.number) != 0) {
    return system_text("cannot sync", folder);
  }
  return std::nullopt;
}

CheckpointRead load_checkpoint(const std::string& folder) {
  CheckpointRead read;
  for (const std::string& path : {checkpoint_path(folder), previous_path(folder)}) {
    const auto bytes = read_all(path);
    if (!bytes && errno == ENOENT) continue;
    read.found_any = true;
    std::string why;
    if (!bytes) {
      why = std::strerror(errno);
    } else {
      read.checkpoint = decode(*bytes, why);
    }
    if (read.checkpoint) {
      if (!read.message.empty()) read.message += "; using " + path + " instead";
      return read;
    }
    if (!read.message.empty()) read.message += "; ";
    read.message += "checkpoint " + path + " cannot be used: " + why;
  }
  return read;
}

}  // namespace demo
