#include "api/log_piece.hpp"

#include <sodium.h>

#include "http/target.hpp"

namespace loam::api {
namespace {

// How many bytes at the end begin a character that is not whole yet (RFC 3629).
std::size_t cut_bytes(std::string_view bytes) {
  for (std::size_t back = 1; back <= 3 && back <= bytes.size(); ++back) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // inside a character
    const std::size_t length = byte >= 0xF0 && byte <= 0xF4  ? 4
                               : byte >= 0xE0 && byte < 0xF0 ? 3
                               : byte >= 0xC2 && byte < 0xE0 ? 2
                                                             : 1;
    return length > back ? back : 0;
  }
  return 0;
}

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the NUL
  return text;
}

}  // namespace

std::string_view name_of(LogStream stream) {
  return stream == LogStream::out ? "stdout" : "stderr";
}

std::optional<LogStream> parse_log_stream(std::string_view text) {
  if (text == "stdout") return LogStream::out;
  if (text == "stderr") return LogStream::err;
  return std::nullopt;
}

LogView view_of(LogStream stream, std::int64_t asked, LogPiece piece, bool last) {
  LogView view;
  view.stream = std::string(name_of(stream));
  view.offset = piece.offset;
  view.truncated = piece.offset > asked;
  view.encoding = "utf8";
  std::string& bytes = piece.bytes;
  const std::size_t cut = cut_bytes(bytes);
  const bool whole = cut == 0 || (last && cut == bytes.size()) || (last && piece.ended);
  if (!whole) {
    const std::string_view rest = std::string_view(bytes).substr(0, bytes.size() - cut);
    if (http::is_utf8(rest)) bytes.resize(rest.size());
  }
  view.next_offset = piece.offset + static_cast<std::int64_t>(bytes.size());
  view.ended = piece.ended && view.next_offset == piece.next_offset;
  if (http::is_utf8(bytes)) {
    view.data = std::move(bytes);
  } else {
    view.encoding = "base64";
    view.data = base64(bytes);
  }
  return view;
}

Result<std::string> bytes_of(const LogView& view) {
  if (view.encoding == "utf8") return view.data;
  std::string bytes(view.data.size(), '\0');
  std::size_t length = 0;
  if (view.encoding != "base64" ||
      sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(),
                        view.data.data(), view.data.size(), nullptr, &length, nullptr,
                        sodium_base64_VARIANT_ORIGINAL) != 0) {
    return Error{ErrorKind::corrupt, "a piece of the log came in the encoding " + view.encoding,
                 "use a loam of the daemon's version"};
  }
  bytes.resize(length);
  return bytes;
}

}  // namespace loam::api
