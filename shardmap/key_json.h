// Bounds and types as JSON: a value is a string in PostgreSQL's text form, MINVALUE and MAXVALUE are {"bound":
// "..."}, so that no text can be taken for one of them. For shardmap/ and splitmerge/.
#pragma once

#include "shardmap/json.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::shardmap {

Json to_json(const Bound& bound);
Result<Bound> bound_from_json(const Json& json);
Json to_json(const std::vector<std::string>& texts);
Result<std::vector<std::string>> texts_from_json(const Json& json);
Json types_to_json(const KeyTypes& types);
Result<KeyTypes> types_from_json(const Json& json);

}  // namespace kintsugi::shardmap
