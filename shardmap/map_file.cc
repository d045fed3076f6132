#include "shardmap/map_file.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "shardmap/key_json.h"

namespace kintsugi::shardmap {
namespace {

constexpr int kFormat = 1;

Json line_of(const Shard& shard) {
  Json json = Json::object();
  json["shard"] = shard.name;
  json["id"] = shard.id;
  json["dsn"] = shard.dsn;
  json["identity"] = shard.identity;
  json["state"] = std::string(name_of(shard.state));
  return json;
}

Json line_of(const Table& table) {
  Json json = Json::object();
  json["table"] = table.name;
  json["schema"] = table.schema;
  json["kind"] = std::string(name_of(table.kind));
  if (table.kind == TableKind::kSharded) {
    json["map"] = table.map;
    json["key"] = to_json(table.key);
  }
  return json;
}

// A stored key is good: it was encoded by us.
Json bound_json(const KeyTypes& types, std::string_view key) {
  const auto bound = decode_bound(types, key);
  return bound ? to_json(*bound) : Json();
}

Json values_json(const KeyTypes& types, const std::vector<std::string>& values) {
  Json json = Json::array();
  for (const std::string& value : values) json.push_back(bound_json(types, value));
  return json;
}

Json line_of(const ShardMap& map, const Mapping& mapping, const Shardlet& shardlet) {
  Json json = Json::object();
  json["shardlet"] = shardlet.name;
  if (mapping.kind() == MapKind::kList) {
    json["values"] = values_json(mapping.key_types(), shardlet.values);
  } else {
    json["from"] = bound_json(mapping.bound_types(), shardlet.low);
    json["to"] = bound_json(mapping.bound_types(), shardlet.high);
  }
  json["shard"] = map.shard(shardlet.shard)->name;
  json["state"] = std::string(name_of(shardlet.state));
  return json;
}

Json line_of(const ShardMap& map, const Mapping& mapping, const HiddenRange& hidden) {
  Json json = Json::object();
  json["hidden"] = hidden.job;
  json["shard"] = map.shard(hidden.shard)->name;
  if (mapping.kind() == MapKind::kList) {
    json["value"] = bound_json(mapping.key_types(), hidden.low);
  } else {
    json["from"] = bound_json(mapping.bound_types(), hidden.low);
    json["to"] = bound_json(mapping.bound_types(), hidden.high);
  }
  return json;
}

// Reads line by line into a loader. Lines of one map follow its "map" line.
class Importer {
 public:
  Status line(std::string_view text) {
    KG_TRY(const Json json, parse_json(text));
    JsonObject object(json, "the line");
    if (!loader_) return head(object);
    if (object.has("shard") && object.has("id")) return shard(object);
    if (object.has("shardlet")) return shardlet(object);
    if (object.has("hidden")) return hidden(object);
    if (object.has("map") && object.has("kind") && !object.has("table")) return map(object);
    if (object.has("table")) return table(object);
    return bad_json("the line is neither a shard, a map, a shardlet nor a table");
  }

  Result<MapPtr> finish() {
    if (!loader_) return bad_json("the file is empty");
    KG_CHECK(close_map());
    return loader_->finish();
  }

 private:
  std::uint64_t number(JsonObject& object, const char* member) {
    const Json* json = object.need(member);
    if (json == nullptr) return 0;
    if (!json->is_number_unsigned()) {
      object.complain(std::string("has a \"") + member + "\" that is not a number");
      return 0;
    }
    return json->get<std::uint64_t>();
  }
  template <class Read>
  auto value(JsonObject& object, const char* member, Read read) -> decltype(read(Json{})) {
    const Json* json = object.need(member);
    if (json == nullptr) return bad_json("");
    return read(*json);
  }
  Result<ShardId> shard_id(const std::string& name) const {
    const auto at = shards_.find(name);
    if (at == shards_.end())
      return fail(sqlstate::kUndefinedObject, "shard \"" + name + "\" is not in the file");
    return at->second;
  }
  static std::string texts(const Bound& bound, std::vector<std::string>& out) {
    for (const BoundColumn& column : bound) {
      if (column.kind != BoundColumn::Kind::kValue) return "a value cannot be MINVALUE or MAXVALUE";
      out.push_back(column.text);
    }
    return {};
  }

  Status head(JsonObject& object) {
    const std::uint64_t format = number(object, "kintsugi_map");
    std::string store = object.text("store");
    const std::uint64_t epoch = number(object, "epoch");
    home_ = object.text("home");
    next_shard_ = static_cast<ShardId>(number(object, "next_shard"));
    KG_CHECK(object.finish());
    if (format != kFormat)
      return bad_json("the file has format " + std::to_string(format) + ", which is not known");
    loader_ = std::make_unique<ShardMapLoader>(std::move(store), epoch);
    return {};
  }

  Status shard(JsonObject& object) {
    Shard shard{static_cast<ShardId>(number(object, "id")), object.text("shard"), object.text("dsn"),
                object.text("identity"), object.word("state", shard_state_named)};
    KG_CHECK(object.finish());
    if (shard.id >= next_shard_) return bad_json("the shard's id is not below next_shard");
    for (const auto& [name, id] : shards_) {
      if (id == shard.id || name == shard.name) return bad_json("the shard is in the file twice");
    }
    shards_.emplace(shard.name, shard.id);
    if (shard.name == home_) loader_->set_home(shard.id, next_shard_);
    return loader_->add_shard(std::move(shard));
  }

  Status map(JsonObject& object) {
    KG_CHECK(close_map());
    const std::string name = object.text("map");
    const MapKind kind = object.word("kind", map_kind_named);
    auto types = value(object, "key", types_from_json);
    KG_CHECK(object.finish());
    if (!types) return fail(types.error());
    // The same checks as for an edit.
    KG_CHECK(apply(*ShardMap::empty(""), {edit::CreateMap{name, kind, *types}}));
    if (!maps_.insert(name).second) return bad_json("the map is in the file twice");
    kind_ = kind;
    types_ = *types;
    in_map_ = true;
    return loader_->add_mapping(name, kind, *std::move(types));
  }

  Status shardlet(JsonObject& object) {
    if (!in_map_) return bad_json("the shardlet stands before any map");
    const std::string name = object.text("shardlet");
    const std::string shard = object.text("shard");
    const ShardletState state = object.word("state", shardlet_state_named);
    std::vector<std::pair<std::string, std::string>> ranges;
    if (kind_ == MapKind::kList) {
      const Json* values = object.need("values");
      KG_CHECK(object.finish());
      if (!values->is_array() || values->empty()) return bad_json("the shardlet has no values");
      for (const Json& json : *values) {
        KG_TRY(const std::vector<std::string> value, texts_from_json(json));
        KG_TRY(std::string key, encode_key(types_, value));
        ranges.emplace_back(std::move(key), "");
      }
    } else {
      auto low = value(object, "from", bound_from_json);
      auto high = value(object, "to", bound_from_json);
      KG_CHECK(object.finish());
      if (!low || !high) return fail(low ? high.error() : low.error());
      KG_TRY(std::string low_key, encode_bound(bound_types(), *low));
      KG_TRY(std::string high_key, encode_bound(bound_types(), *high));
      if (low_key >= high_key) return fail("42P17", "shardlet \"" + name + "\" would have no keys");
      ranges.emplace_back(std::move(low_key), std::move(high_key));
    }
    KG_TRY(const ShardId id, shard_id(shard));
    if (name.empty() || !names_.insert(name).second)
      return bad_json("shardlet \"" + name + "\" is in the file twice");
    for (auto& [low, high] : ranges) entries_.push_back({std::move(low), std::move(high), name, id, state});
    return {};
  }

  Status hidden(JsonObject& object) {
    if (!in_map_) return bad_json("the hidden range stands before any map");
    HiddenRange range;
    range.job = object.text("hidden");
    const std::string shard = object.text("shard");
    if (kind_ == MapKind::kList) {
      auto texts = value(object, "value", texts_from_json);
      KG_CHECK(object.finish());
      if (!texts) return fail(texts.error());
      KG_TRY(range.low, encode_key(types_, *texts));
    } else {
      auto low = value(object, "from", bound_from_json);
      auto high = value(object, "to", bound_from_json);
      KG_CHECK(object.finish());
      if (!low || !high) return fail(low ? high.error() : low.error());
      KG_TRY(range.low, encode_bound(bound_types(), *low));
      KG_TRY(range.high, encode_bound(bound_types(), *high));
    }
    KG_TRY(range.shard, shard_id(shard));
    return loader_->add_hidden(std::move(range));
  }

  Status table(JsonObject& object) {
    KG_CHECK(close_map());
    Table table{object.text("schema"), object.text("table"), object.word("kind", table_kind_named), {}, {}};
    if (table.kind == TableKind::kSharded) {
      table.map = object.text("map");
      auto key = value(object, "key", texts_from_json);
      if (key) table.key = *std::move(key);
    }
    KG_CHECK(object.finish());
    return loader_->add_table(std::move(table));
  }

  Status close_map() {
    if (!in_map_) return {};
    in_map_ = false;
    std::sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.low < b.low; });
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Stored& entry = entries_[i];
      if (i > 0 && (entries_[i - 1].high.empty() ? entries_[i - 1].low == entry.low
                                                 : entries_[i - 1].high > entry.low)) {
        return fail("42P17",
                    "shardlet \"" + entry.name + "\" would overlap shardlet \"" + entries_[i - 1].name + "\"");
      }
      KG_CHECK(loader_->add_entry({entry.low, entry.high, entry.name, entry.shard, entry.state}));
    }
    entries_.clear();
    return {};
  }

  [[nodiscard]] const KeyTypes& bound_types() const {
    static const KeyTypes kHash{KeyType::kBigint};
    return kind_ == MapKind::kHash ? kHash : types_;
  }

  struct Stored {
    std::string low, high, name;
    ShardId shard;
    ShardletState state;
  };
  std::unique_ptr<ShardMapLoader> loader_;
  std::string home_;
  ShardId next_shard_ = 0;
  std::unordered_map<std::string, ShardId> shards_;
  std::set<std::string> maps_;
  std::unordered_set<std::string> names_;
  bool in_map_ = false;
  MapKind kind_ = MapKind::kRange;
  KeyTypes types_;
  std::vector<Stored> entries_;  // of the map being read
};

}  // namespace

void export_map(const ShardMap& map, const std::function<void(std::string_view line)>& sink) {
  const auto write = [&sink](const Json& json) {
    sink(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  };
  Json head = Json::object();
  head["kintsugi_map"] = kFormat;
  head["store"] = map.store_id();
  head["epoch"] = map.epoch();
  head["home"] = map.home_shard() == nullptr ? "" : map.home_shard()->name;
  head["next_shard"] = map.next_shard();
  write(head);
  for (const Shard* shard : map.shards()) write(line_of(*shard));
  for (const Mapping* mapping : map.mappings()) {
    Json json = Json::object();
    json["map"] = mapping->name();
    json["kind"] = std::string(name_of(mapping->kind()));
    json["key"] = types_to_json(mapping->key_types());
    write(json);
    for (const Shardlet& shardlet : map.shardlets_of(*mapping)) write(line_of(map, *mapping, shardlet));
    for (const HiddenRange& hidden : mapping->hidden()) write(line_of(map, *mapping, hidden));
  }
  for (const Table* table : map.tables()) write(line_of(*table));
}

std::string export_map(const ShardMap& map) {
  std::string text;
  export_map(map, [&text](std::string_view line) { text += line; });
  return text;
}

Result<MapPtr> import_map(std::string_view text) {
  Importer importer;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (Status read = importer.line(line); !read) {
      Error error = read.error();
      error.message = "line " + std::to_string(number) + ": " + error.message;
      return fail(std::move(error));
    }
  }
  return importer.finish();
}

Result<MapEdit> edit_that_makes(const ShardMap& map) {
  MapEdit edit;
  auto& operations = edit.operations;
  // A shard that may not be given shardlets has some all the same, perhaps: states come last.
  for (const Shard* shard : map.shards()) {
    operations.emplace_back(edit::CreateShard{shard->name, shard->dsn, shard->identity, ShardState::kOnline});
  }
  if (map.home_shard() != nullptr) operations.emplace_back(edit::SetHome{map.home_shard()->name});
  for (const Mapping* mapping : map.mappings()) {
    operations.emplace_back(edit::CreateMap{mapping->name(), mapping->kind(), mapping->key_types()});
    for (const Shardlet& shardlet : map.shardlets_of(*mapping)) {
      KG_TRY(operations.emplace_back(), creation_of(map, shardlet.name));
    }
  }
  for (const Table* table : map.tables()) operations.emplace_back(edit::PutTable{*table});
  for (const Shard* shard : map.shards()) {
    if (shard->state != ShardState::kOnline) {
      operations.emplace_back(edit::AlterShard{shard->name, {}, {}, {}, shard->state});
    }
  }
  return edit;
}

}  // namespace kintsugi::shardmap
