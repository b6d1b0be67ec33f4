// From a JSON schema to a grammar in GBNF (the notation of llama.cpp's grammars), so that what is
// generated under it conforms to the schema. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loam::infer {

// Understood: type, properties, required, items, minItems, maxItems, minLength, maxLength, enum,
// const, anyOf, oneOf, $ref inside the document, $defs, definitions. Objects hold the properties
// listed, in their order, and no others. A keyword that would restrict further and is not
// understood (pattern, minimum, ...) is refused by name: a promise that cannot be kept is not made.
Result<std::string> grammar_of_schema(std::string_view schema);

// Any JSON object.
std::string grammar_of_any_object();

}  // namespace loam::infer
