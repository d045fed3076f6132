#include <charconv>

#include "shardmap/json.h"
#include "shardmap/key_json.h"
#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {
namespace {

Json operation(const char* name) {
  Json json = Json::object();
  json["do"] = name;
  return json;
}

template <class Value>
void put_if(Json& json, const char* member, const std::optional<Value>& value) {
  if (!value) return;
  if constexpr (std::is_same_v<Value, std::string>) {
    json[member] = *value;
  } else {
    json[member] = std::string(name_of(*value));
  }
}

Json write(const edit::CreateShard& op) {
  Json json = operation("create shard");
  json["name"] = op.name;
  json["dsn"] = op.dsn;
  json["identity"] = op.identity;
  json["state"] = std::string(name_of(op.state));
  return json;
}
Json write(const edit::AlterShard& op) {
  Json json = operation("alter shard");
  json["name"] = op.name;
  put_if(json, "new_name", op.new_name);
  put_if(json, "dsn", op.dsn);
  put_if(json, "identity", op.identity);
  put_if(json, "state", op.state);
  return json;
}
Json write(const edit::DropShard& op) {
  Json json = operation("drop shard");
  json["name"] = op.name;
  return json;
}
Json write(const edit::SetHome& op) {
  Json json = operation("set home");
  json["shard"] = op.shard;
  return json;
}
Json write(const edit::CreateMap& op) {
  Json json = operation("create map");
  json["name"] = op.name;
  json["kind"] = std::string(name_of(op.kind));
  json["key"] = types_to_json(op.key_types);
  return json;
}
Json write(const edit::DropMap& op) {
  Json json = operation("drop map");
  json["name"] = op.name;
  return json;
}
Json write(const edit::CreateShardlet& op) {
  Json json = operation("create shardlet");
  json["map"] = op.map;
  json["name"] = op.name;
  if (!op.low.empty()) json["from"] = to_json(op.low);
  if (!op.high.empty()) json["to"] = to_json(op.high);
  if (!op.values.empty()) {
    json["values"] = Json::array();
    for (const auto& value : op.values) json["values"].push_back(to_json(value));
  }
  json["shard"] = op.shard;
  json["state"] = std::string(name_of(op.state));
  return json;
}
Json write(const edit::AlterShardlet& op) {
  Json json = operation("alter shardlet");
  json["name"] = op.name;
  put_if(json, "new_name", op.new_name);
  put_if(json, "shard", op.shard);
  put_if(json, "state", op.state);
  return json;
}
Json write(const edit::DropShardlet& op) {
  Json json = operation("drop shardlet");
  json["name"] = op.name;
  return json;
}
Json write(const edit::PutTable& op) {
  Json json = operation("put table");
  json["schema"] = op.table.schema;
  json["name"] = op.table.name;
  json["kind"] = std::string(name_of(op.table.kind));
  if (!op.table.map.empty()) json["map"] = op.table.map;
  if (!op.table.key.empty()) json["key"] = to_json(op.table.key);
  return json;
}
Json write(const edit::DropTable& op) {
  Json json = operation("drop table");
  json["schema"] = op.schema;
  json["name"] = op.name;
  return json;
}
Json write(const edit::HideRange& op) {
  Json json = operation("hide");
  json["shardlet"] = op.shardlet;
  json["shard"] = op.shard;
  json["job"] = op.job;
  return json;
}
Json write(const edit::RevealRanges& op) {
  Json json = operation("reveal");
  json["job"] = op.job;
  return json;
}

Json write(const edit::RaiseEpoch& op) {
  Json json = operation("raise epoch");
  json["at_least"] = std::to_string(op.at_least);
  return json;
}

// Keeps the object's problem apart from one inside a member.
template <class Read>
auto member(JsonObject& object, const char* name, Read read) -> typename decltype(read(Json{}))::value_type {
  using Value = typename decltype(read(Json{}))::value_type;
  const Json* found = object.get(name);
  if (found == nullptr) return Value{};
  auto value = read(*found);
  if (!value) {
    object.complain("has a bad \"" + std::string(name) + "\": " + value.error().message);
    return Value{};
  }
  return *std::move(value);
}

edit::Operation read_create_shardlet(JsonObject& object) {
  edit::CreateShardlet op;
  op.map = object.text("map");
  op.name = object.text("name");
  op.low = member(object, "from", bound_from_json);
  op.high = member(object, "to", bound_from_json);
  op.values = member(object, "values", [](const Json& json) -> Result<std::vector<std::vector<std::string>>> {
    if (!json.is_array()) return bad_json("not an array");
    std::vector<std::vector<std::string>> values;
    for (const Json& value : json) {
      KG_TRY(values.emplace_back(), texts_from_json(value));
    }
    return values;
  });
  op.shard = object.text("shard");
  op.state = object.word("state", shardlet_state_named);
  return op;
}

Result<edit::Operation> read_operation(const Json& json) {
  JsonObject object(json, "an operation");
  const std::string name = object.text("do");
  edit::Operation op;
  if (name == "create shard") {
    op = edit::CreateShard{object.text("name"), object.text("dsn"), object.text("identity"),
                           object.word("state", shard_state_named)};
  } else if (name == "alter shard") {
    op = edit::AlterShard{object.text("name"), object.text_if("new_name"), object.text_if("dsn"),
                          object.text_if("identity"), object.word_if("state", shard_state_named)};
  } else if (name == "drop shard") {
    op = edit::DropShard{object.text("name")};
  } else if (name == "set home") {
    op = edit::SetHome{object.text("shard")};
  } else if (name == "create map") {
    op = edit::CreateMap{object.text("name"), object.word("kind", map_kind_named),
                         member(object, "key", types_from_json)};
  } else if (name == "drop map") {
    op = edit::DropMap{object.text("name")};
  } else if (name == "create shardlet") {
    op = read_create_shardlet(object);
  } else if (name == "alter shardlet") {
    op = edit::AlterShardlet{object.text("name"), object.text_if("new_name"), object.text_if("shard"),
                             object.word_if("state", shardlet_state_named)};
  } else if (name == "drop shardlet") {
    op = edit::DropShardlet{object.text("name")};
  } else if (name == "put table") {
    op = edit::PutTable{Table{object.text("schema"), object.text("name"), object.word("kind", table_kind_named),
                              object.text_if("map").value_or(""), member(object, "key", texts_from_json)}};
  } else if (name == "drop table") {
    op = edit::DropTable{object.text("schema"), object.text("name")};
  } else if (name == "hide") {
    op = edit::HideRange{object.text("shardlet"), object.text("shard"), object.text("job")};
  } else if (name == "reveal") {
    op = edit::RevealRanges{object.text("job")};
  } else if (name == "raise epoch") {
    const std::string text = object.text("at_least");
    edit::RaiseEpoch raise;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), raise.at_least);
    if (problem != std::errc{} || end != text.data() + text.size())
      object.complain("has an \"at_least\" that is no number");
    op = raise;
  } else {
    object.complain("does the unknown \"" + name + "\"");
  }
  KG_CHECK(object.finish());
  return op;
}

}  // namespace

std::string to_json(const MapEdit& edit) {
  Json json = Json::array();
  for (const edit::Operation& op : edit.operations) {
    json.push_back(std::visit([](const auto& each) { return write(each); }, op));
  }
  // Bytes that are no UTF-8 (names from a client) must not throw here: they come back as U+FFFD.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<MapEdit> map_edit_from_json(std::string_view text) {
  KG_TRY(const Json json, parse_json(text));
  if (!json.is_array()) return bad_json("an edit is not an array of operations");
  MapEdit edit;
  for (const Json& each : json) {
    KG_TRY(edit.operations.emplace_back(), read_operation(each));
  }
  return edit;
}

}  // namespace kintsugi::shardmap
