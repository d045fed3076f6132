#include "shardmap/key_json.h"

namespace kintsugi::shardmap {

Json to_json(const Bound& bound) {
  Json json = Json::array();
  for (const BoundColumn& column : bound) {
    switch (column.kind) {
      case BoundColumn::Kind::kMin: json.push_back({{"bound", "MINVALUE"}}); break;
      case BoundColumn::Kind::kMax: json.push_back({{"bound", "MAXVALUE"}}); break;
      case BoundColumn::Kind::kValue: json.push_back(column.text); break;
    }
  }
  return json;
}

Result<Bound> bound_from_json(const Json& json) {
  if (!json.is_array()) return bad_json("a bound is not an array");
  Bound bound;
  for (const Json& column : json) {
    if (column.is_string()) {
      bound.push_back(BoundColumn::value(column.get<std::string>()));
    } else if (column == Json{{"bound", "MINVALUE"}}) {
      bound.push_back(BoundColumn::min());
    } else if (column == Json{{"bound", "MAXVALUE"}}) {
      bound.push_back(BoundColumn::max());
    } else {
      return bad_json("a bound has a column that is neither a string nor MINVALUE or MAXVALUE");
    }
  }
  return bound;
}

Json to_json(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) json.push_back(text);
  return json;
}

Result<std::vector<std::string>> texts_from_json(const Json& json) {
  if (!json.is_array()) return bad_json("a list of strings is not an array");
  std::vector<std::string> texts;
  for (const Json& text : json) {
    if (!text.is_string()) return bad_json("a list of strings holds something else");
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

Json types_to_json(const KeyTypes& types) {
  Json json = Json::array();
  for (KeyType type : types) json.push_back(std::string(name_of(type)));
  return json;
}

Result<KeyTypes> types_from_json(const Json& json) {
  KG_TRY(const std::vector<std::string> names, texts_from_json(json));
  KeyTypes types;
  for (const std::string& name : names) {
    KG_TRY(const KeyType type, key_type_named(name));
    types.push_back(type);
  }
  return types;
}

}  // namespace kintsugi::shardmap
