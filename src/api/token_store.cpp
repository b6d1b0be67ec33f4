// The token file: JSON, mode 0600, replaced as a whole. A secret has 256 random bits, so that a
// plain BLAKE2b hash (RFC 7693, libsodium's generichash) cannot be searched back.
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/auth.hpp"
#include "domain/json_codec.hpp"
#include "domain/tenant.hpp"

namespace loam::api {
namespace {

constexpr std::string_view secret_prefix = "loam_";
constexpr std::size_t secret_bytes = 32;
constexpr std::size_t hash_bytes = 32;
constexpr std::int64_t file_version = 1;
constexpr std::size_t file_bytes_max = 64 * 1024 * 1024;

using Hash = std::array<unsigned char, hash_bytes>;

struct StoredToken {
  std::string name;
  std::string role;
  std::string tenant;
  std::int64_t created_ms = 0;
  std::optional<std::int64_t> revoked_ms;
  std::string hash;  // hexadecimal
};
BOOST_DESCRIBE_STRUCT(StoredToken, (), (name, role, tenant, created_ms, revoked_ms, hash))

struct StoredFile {
  std::int64_t version = file_version;
  std::vector<StoredToken> tokens;
};
BOOST_DESCRIBE_STRUCT(StoredFile, (), (version, tokens))

Error os_error(const std::string& doing, int number) {
  const ErrorKind kind =
      number == EACCES || number == EPERM ? ErrorKind::permission_denied : ErrorKind::unavailable;
  return {kind, doing + ": " + std::strerror(number),
          "check the folder's permissions and free space"};
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Hash hash_of(std::string_view secret) {
  Hash hash{};
  crypto_generichash(hash.data(), hash.size(),
                     reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), nullptr,
                     0);
  return hash;
}

std::string hex_of(const Hash& hash) {
  std::array<char, hash_bytes * 2 + 1> text{};
  sodium_bin2hex(text.data(), text.size(), hash.data(), hash.size());
  return text.data();
}

std::string fresh_secret() {
  std::array<unsigned char, secret_bytes> random{};
  randombytes_buf(random.data(), random.size());
  std::array<char, 64> text{};
  sodium_bin2base64(text.data(), text.size(), random.data(), random.size(),
                    sodium_base64_VARIANT_URLSAFE_NO_PADDING);
  sodium_memzero(random.data(), random.size());
  return std::string(secret_prefix) + text.data();
}

// Empty where there is no file.
Result<std::string> read_private_file(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    if (errno == ENOENT) return std::string();
    return os_error("cannot open the token file " + path, errno);
  }
  struct stat facts {};
  if (::fstat(file.get(), &facts) != 0) return os_error("cannot look at " + path, errno);
  if ((facts.st_mode & 077) != 0) {
    return Error{ErrorKind::permission_denied,
                 "the token file " + path + " may be read or written by others",
                 "run: chmod 600 " + path};
  }
  std::string text;
  std::array<char, 64 * 1024> piece{};
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("cannot read " + path, errno);
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > file_bytes_max)
      return Error{ErrorKind::corrupt, path + " is too large to be a token file", {}};
  }
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return os_error("cannot write " + path, errno);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

// The old content or the new one is there after a crash at any point.
Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());  // of a crash
  {
    const File file(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) return os_error("cannot make " + fresh, errno);
    LOAM_CHECK(write_all(file.get(), text, fresh));
    if (::fsync(file.get()) != 0) return os_error("cannot write " + fresh + " to the disk", errno);
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return os_error("cannot replace " + path, errno);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const File directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0)
    return os_error("cannot write the folder " + folder + " to the disk", errno);
  return {};
}

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorKind::corrupt, "the token file " + path + " is damaged: " + what,
          "restore it from a backup, or move it away and make new tokens"};
}

}  // namespace

struct TokenStore::Content {
  struct Token {
    TokenInfo info;
    Hash hash{};
  };
  std::vector<Token> tokens;  // by name
};

TokenStore::TokenStore(std::string path, std::unique_ptr<Content> content)
    : path_(std::move(path)), content_(std::move(content)) {}

TokenStore::~TokenStore() = default;

Result<std::unique_ptr<TokenStore>> TokenStore::open(std::string path) {
  if (sodium_init() < 0)
    return Error{ErrorKind::internal, "libsodium has no random source", "check /dev/urandom"};
  LOAM_TRY(text, read_private_file(path));
  auto content = std::make_unique<Content>();
  if (!text.empty()) {
    const auto file = json::from_document<StoredFile>(text, json::Missing::is_error);
    if (!file) return damaged(path, file.error().message);
    if (file->version != file_version) {
      return Error{ErrorKind::unsupported,
                   "the token file " + path + " has version " + std::to_string(file->version),
                   "run the loamd that wrote it"};
    }
    for (const StoredToken& stored : file->tokens) {
      Content::Token token;
      const auto role = parse_role(stored.role);
      std::size_t length = 0;
      if (!role ||
          sodium_hex2bin(token.hash.data(), token.hash.size(), stored.hash.data(),
                         stored.hash.size(), nullptr, &length, nullptr) != 0 ||
          length != hash_bytes) {
        return damaged(path, "the token '" + stored.name + "' has no such role or hash");
      }
      token.info = {stored.name, *role, stored.tenant, Instant{stored.created_ms}};
      if (stored.revoked_ms) token.info.revoked_at = Instant{*stored.revoked_ms};
      content->tokens.push_back(std::move(token));
    }
  }
  return std::unique_ptr<TokenStore>(new TokenStore(std::move(path), std::move(content)));
}

Result<void> TokenStore::save(const Content& content) {
  StoredFile file;
  for (const Content::Token& token : content.tokens) {
    StoredToken stored{token.info.name,   std::string(name_of(token.info.role)),
                       token.info.tenant, token.info.created_at.ms,
                       std::nullopt,      hex_of(token.hash)};
    if (token.info.revoked()) stored.revoked_ms = token.info.revoked_at.ms;
    file.tokens.push_back(std::move(stored));
  }
  return replace_file(path_, json::to_document(file));
}

Result<std::string> TokenStore::create(const std::string& name, Role role,
                                       const std::string& tenant, Instant now) {
  if (!is_name(name)) {
    return invalid("'" + name + "' is not a name for a token",
                   "use 1 to 63 of a-z, 0-9 and '-', starting with a letter");
  }
  if ((role == Role::member) != !tenant.empty()) {
    return invalid(role == Role::member ? "a member's token needs a tenant"
                                        : "only a member's token belongs to a tenant",
                   "give --role member --tenant NAME, or another role without a tenant");
  }
  const std::lock_guard lock(mutex_);
  Content next = *content_;
  const auto place = std::lower_bound(next.tokens.begin(), next.tokens.end(), name,
                                      [](const Content::Token& token, const std::string& wanted) {
                                        return token.info.name < wanted;
                                      });
  if (place != next.tokens.end() && place->info.name == name) {
    return Error{
        ErrorKind::conflict,
        "there is a token '" + name + "' already" + (place->info.revoked() ? ", revoked" : ""),
        "choose another name: the journal knows actors by it"};
  }
  std::string secret = fresh_secret();
  next.tokens.insert(place, {TokenInfo{name, role, tenant, now}, hash_of(secret)});
  LOAM_CHECK(save(next));
  *content_ = std::move(next);
  return secret;
}

Result<TokenInfo> TokenStore::revoke(const std::string& name, Instant now) {
  const std::lock_guard lock(mutex_);
  Content next = *content_;
  for (Content::Token& token : next.tokens) {
    if (token.info.name != name) continue;
    if (token.info.revoked()) return token.info;
    token.info.revoked_at = now;
    const TokenInfo info = token.info;
    LOAM_CHECK(save(next));
    *content_ = std::move(next);
    return info;
  }
  return Error{ErrorKind::not_found, "there is no token '" + name + "'",
               "see the tokens with: loam token list"};
}

std::vector<TokenInfo> TokenStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<TokenInfo> infos;
  for (const Content::Token& token : content_->tokens) infos.push_back(token.info);
  return infos;
}

Result<TokenInfo> TokenStore::check(std::string_view secret) const {
  const Hash hash = hash_of(secret);
  const std::lock_guard lock(mutex_);
  const Content::Token* found = nullptr;
  // All of them each time: how long it takes tells nothing.
  for (const Content::Token& token : content_->tokens) {
    if (sodium_memcmp(token.hash.data(), hash.data(), hash.size()) == 0) found = &token;
  }
  if (found == nullptr || found->info.revoked()) {
    return Error{ErrorKind::unauthenticated, "the token is not valid",
                 "check it, or ask an admin for a new one: loam token create"};
  }
  return found->info;
}

}  // namespace loam::api
