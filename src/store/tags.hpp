// Tags as text of a column: a JSON object of texts. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loam::store {

using Tags = std::map<std::string, std::string>;

std::string tags_text(const Tags& tags);
// ErrorKind::corrupt for what is no object of texts.
Result<Tags> read_tags(std::string_view text);

}  // namespace loam::store
