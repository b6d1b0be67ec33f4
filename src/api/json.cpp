#include "api/json.hpp"

#include "domain/json_codec.hpp"

namespace loam::api {

#define LOAM_API_REQUEST(Type)                                           \
  std::string to_json(const Type& value) {                               \
    return json::to_document(value);                                     \
  }                                                                      \
  template <>                                                            \
  Result<Type> from_json<Type>(std::string_view text) {                  \
    return json::from_document<Type>(text, json::Missing::uses_default); \
  }
LOAM_API_REQUESTS(LOAM_API_REQUEST)
#undef LOAM_API_REQUEST

#define LOAM_API_VIEW(Type)                                          \
  std::string to_json(const Type& value) {                           \
    return json::to_document(value);                                 \
  }                                                                  \
  template <>                                                        \
  Result<Type> from_json<Type>(std::string_view text) {              \
    return json::from_document<Type>(text, json::Missing::is_error); \
  }
LOAM_API_VIEWS(LOAM_API_VIEW)
#undef LOAM_API_VIEW

}  // namespace loam::api
