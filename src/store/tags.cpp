#include "store/tags.hpp"

#include "domain/json_codec.hpp"

namespace loam::store {

std::string tags_text(const Tags& tags) {
  return json::to_document(tags);
}

Result<Tags> read_tags(std::string_view text) {
  return json::from_document<Tags>(text, json::Missing::is_error, ErrorKind::corrupt);
}

}  // namespace loam::store
