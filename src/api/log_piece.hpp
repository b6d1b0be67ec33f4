// A piece of a log as the API shows it: text where it is UTF-8, else base64. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/backend.hpp"
#include "api/types.hpp"

namespace loam::api {

std::string_view name_of(LogStream stream);
std::optional<LogStream> parse_log_stream(std::string_view text);

// `asked` is the offset that was asked for. A character that the end of the piece cuts in two is
// left for the next one; unless `last`, one that is all there is yet gives nothing: an empty
// view with next_offset == offset.
LogView view_of(LogStream stream, std::int64_t asked, LogPiece piece, bool last);

// The client's side: the bytes of a view. Errors: an unknown encoding, bad base64.
Result<std::string> bytes_of(const LogView& view);

}  // namespace loam::api
