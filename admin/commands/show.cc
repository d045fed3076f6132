#include "admin/commands/show.h"

#include <algorithm>

#include "admin/commands/job_commands.h"
#include "admin/commands/show_page.h"
#include "base/dsn_text.h"

namespace kintsugi::admin {
namespace {

using command::Show;
using shardmap::Bound;
using shardmap::KeyType;
using shardmap::KeyTypes;
using shardmap::MapKind;
using shardmap::Mapping;
using shardmap::Shardlet;
using shardmap::ShardMap;

constexpr std::uint32_t kBigint = 20, kBool = 16;

// ---- keys

Json value_json(KeyType type, const std::string& text) {
  switch (type) {
    case KeyType::kSmallint:
    case KeyType::kInt:
    case KeyType::kBigint: return Json(std::stoll(text));
    case KeyType::kBoolean: return Json(text == "t" || text == "true");
    default: break;
  }
  // As bare words these two are bounds.
  if (text == "MINVALUE" || text == "MAXVALUE") return Json{{"value", text}};
  return Json(text);
}

}  // namespace

Json bound_json(const shardmap::KeyTypes& types, const shardmap::Bound& bound) {
  Json json = Json::array();
  for (std::size_t i = 0; i < bound.size() && i < types.size(); ++i) {
    const shardmap::BoundColumn& column = bound[i];
    if (column.kind == shardmap::BoundColumn::Kind::kMin) {
      json.emplace_back("MINVALUE");
    } else if (column.kind == shardmap::BoundColumn::Kind::kMax) {
      json.emplace_back("MAXVALUE");
    } else {
      json.push_back(value_json(types[i], column.text));
    }
  }
  return json;
}

namespace {

Json key_json(const KeyTypes& types, std::string_view key) {
  const auto bound = shardmap::decode_bound(types, key);
  return bound ? bound_json(types, *bound) : Json::array();
}

// "1000"; a tuple in parentheses.
std::string shown(const KeyTypes& types, std::string_view key) {
  std::string text = shardmap::describe_key(types, key);
  return types.size() == 1 && text.size() > 2 ? text.substr(1, text.size() - 2) : text;
}

// ---- one object a thing

Json shard_object(const ShardMap& map, const shardmap::Shard& shard) {
  std::size_t shardlets = 0;
  for (const Mapping* mapping : map.mappings()) {
    for (const auto& [id, entries] : mapping->shards()) {
      if (id == shard.id) shardlets += entries;
    }
  }
  Json json = Json::object();
  json["name"] = shard.name;
  json["dsn"] = without_password(shard.dsn);
  json["state"] = std::string(shardmap::name_of(shard.state));
  json["home"] = map.home_shard() == &shard;
  json["entries"] = shardlets;
  return json;
}

Json map_json(const ShardMap& map, const Mapping& mapping, Face face) {
  Json json = Json::object();
  json["name"] = mapping.name();
  json["kind"] = std::string(shardmap::name_of(mapping.kind()));
  if (face == Face::kSql) {
    json["key"] = shardmap::list_of(mapping.key_types());
  } else {
    json["key"] = Json::array();
    for (const KeyType type : mapping.key_types()) json["key"].push_back(std::string(shardmap::name_of(type)));
  }
  json["shardlets"] = mapping.shardlet_count();
  json["shards"] = Json::array();
  for (const auto& [id, entries] : mapping.shards()) json["shards"].push_back(map.shard(id)->name);
  json["tables"] = map.tables_of(mapping.name()).size();
  return json;
}

Json shardlet_json(const ShardMap& map, const Mapping& mapping, const Shardlet& shardlet, Face face) {
  Json json = Json::object();
  json["name"] = shardlet.name;
  json["map"] = mapping.name();
  const KeyTypes& types = mapping.bound_types();
  const bool list = mapping.kind() == MapKind::kList;
  if (face == Face::kSql) {
    if (list) {
      std::string values;
      for (const std::string& value : shardlet.values)
        values += (values.empty() ? "" : ", ") + shown(types, value);
      json["values"] = values;
    } else {
      json["low"] = shown(types, shardlet.low);
      json["high"] = shown(types, shardlet.high);
    }
  } else if (list) {
    json["values"] = Json::array();
    for (const std::string& value : shardlet.values) {
      Json key = key_json(types, value);
      json["values"].push_back(key.size() == 1 ? key[0] : key);
    }
  } else {
    json["from"] = key_json(types, shardlet.low);
    json["to"] = key_json(types, shardlet.high);
  }
  json["shard"] = map.shard(shardlet.shard)->name;
  json["state"] = std::string(shardmap::name_of(shardlet.state));
  return json;
}

Json table_json(const shardmap::Table& table, Face face) {
  Json json = Json::object();
  json["name"] = table.display();
  if (face == Face::kSql) json["kind"] = std::string(shardmap::name_of(table.kind));
  if (table.kind == shardmap::TableKind::kSharded) {
    json["map"] = table.map;
    json["key"] = table.key;
  } else if (face != Face::kSql) {
    json[std::string(shardmap::name_of(table.kind))] = true;
  }
  return json;
}

// ---- lists

tl::unexpected<Error> no_such(const char* what, const std::string& name) {
  return fail(sqlstate::kUndefinedObject, std::string(what) + " \"" + name + "\" does not exist");
}

Status show_shards(const Show& request, const ShardMap& map, const Surroundings& surroundings,
                   CommandResult& result) {
  const auto sizes =
      surroundings.shard_bytes ? surroundings.shard_bytes() : std::map<std::string, std::int64_t>();
  std::map<shardmap::ShardId, std::uint64_t> load;
  if (const auto known = surroundings.load ? surroundings.load() : std::nullopt) {
    for (const auto& [name, count] : known->shardlets) {
      if (const auto shardlet = map.shardlet(name)) load[shardlet->shard] += count;
    }
  }
  const auto shard_json = [&](const ShardMap& of, const shardmap::Shard& shard) {
    Json json = shard_object(of, shard);
    json["load"] = load[shard.id];
    const auto size = sizes.find(shard.name);
    json["bytes"] = size == sizes.end() ? Json(nullptr) : Json(size->second);
    return json;
  };
  if (request.name) {
    const shardmap::Shard* shard = map.shard_named(*request.name);
    if (shard == nullptr) return no_such("shard", *request.name);
    result.objects.push_back(shard_json(map, *shard));
    return {};
  }
  auto shards = map.shards();
  std::sort(shards.begin(), shards.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  Page page(request, result);
  for (const shardmap::Shard* shard : shards) {
    if (shard->name <= request.after && !request.after.empty()) continue;
    if (!request.state.empty() && shardmap::name_of(shard->state) != request.state) continue;
    if (!page.add(shard_json(map, *shard), shard->name)) break;
  }
  return {};
}

Status show_maps(const Show& request, Face face, const ShardMap& map, CommandResult& result) {
  if (request.name) {
    const Mapping* mapping = map.mapping(*request.name);
    if (mapping == nullptr) return no_such("shard map", *request.name);
    result.objects.push_back(map_json(map, *mapping, face));
    return {};
  }
  Page page(request, result);
  for (const Mapping* mapping : map.mappings()) {
    if (mapping->name() <= request.after && !request.after.empty()) continue;
    if (!page.add(map_json(map, *mapping, face), mapping->name())) break;
  }
  return {};
}

// The place of a shardlet in a list: its map and its first key, in letters.
std::string place_of(const Mapping& mapping, const Shardlet& shardlet) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char c :
       mapping.name() + '\0' + (shardlet.values.empty() ? shardlet.low : shardlet.values[0])) {
    text += kHex[c >> 4];
    text += kHex[c & 15];
  }
  return text;
}

Result<std::pair<std::string, std::string>> read_place(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto digit = [](char c) {
      return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    };
    if (digit(text[i]) < 0 || digit(text[i + 1]) < 0) break;
    bytes += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  }
  const std::size_t zero = bytes.find('\0');
  if (bytes.size() * 2 != text.size() || zero == std::string::npos) {
    return fail(sqlstate::kInvalidParameter, "this is not where a list of shardlets goes on",
                "Use the \"next\" of the page before.");
  }
  return std::pair(bytes.substr(0, zero), bytes.substr(zero + 1));
}

// False: the page is full.
bool show_shardlets_of(const Show& request, Face face, const ShardMap& map, const Mapping& mapping,
                       const std::string& after, Page& page) {
  const auto add = [&](const Shardlet& shardlet) {
    if (!request.shard.empty() && map.shard(shardlet.shard)->name != request.shard) return true;
    if (!request.state.empty() && shardmap::name_of(shardlet.state) != request.state) return true;
    return page.add(shardlet_json(map, mapping, shardlet, face), place_of(mapping, shardlet));
  };
  if (mapping.kind() == MapKind::kList) {
    for (const Shardlet& shardlet : map.shardlets_of(mapping)) {
      if (!after.empty() && shardlet.values[0] <= after) continue;
      if (!add(shardlet)) return false;
    }
    return true;
  }
  for (const shardmap::ShardletView entry : mapping.overlapping(after, "")) {
    if (!after.empty() && entry.low() <= after) continue;
    const Shardlet shardlet{std::string(entry.name()),
                            mapping.name(),
                            std::string(entry.low()),
                            std::string(entry.high()),
                            {},
                            entry.shard(),
                            entry.state()};
    if (!add(shardlet)) return false;
  }
  return true;
}

Status show_shardlets(const Show& request, Face face, const ShardMap& map, CommandResult& result) {
  if (!request.map.empty() && map.mapping(request.map) == nullptr) return no_such("shard map", request.map);
  if (!request.shard.empty() && map.shard_named(request.shard) == nullptr)
    return no_such("shard", request.shard);
  if (request.name) {
    const auto shardlet = map.shardlet(*request.name);
    if (!shardlet || (!request.map.empty() && shardlet->map != request.map))
      return no_such("shardlet", *request.name);
    result.objects.push_back(shardlet_json(map, *map.mapping(shardlet->map), *shardlet, face));
    return {};
  }
  std::pair<std::string, std::string> place;
  if (!request.after.empty()) {
    KG_TRY(place, read_place(request.after));
  }
  Page page(request, result);
  for (const Mapping* mapping : map.mappings()) {
    if (!request.map.empty() && mapping->name() != request.map) continue;
    if (mapping->name() < place.first) continue;
    const std::string after = mapping->name() == place.first ? place.second : "";
    if (!show_shardlets_of(request, face, map, *mapping, after, page)) break;
  }
  return {};
}

Status show_tables(const Show& request, Face face, const ShardMap& map, CommandResult& result) {
  if (!request.map.empty() && map.mapping(request.map) == nullptr) return no_such("shard map", request.map);
  Page page(request, result);
  for (const shardmap::Table* table : map.tables()) {
    if (!request.map.empty() && table->map != request.map) continue;
    const std::string name = table->display();
    if (request.name && name != *request.name) continue;
    if (!request.after.empty() && name <= request.after) continue;
    if (!page.add(table_json(*table, face), name)) break;
  }
  if (request.name && result.objects.empty()) return no_such("table", *request.name);
  return {};
}

}  // namespace

std::vector<ResultColumn> columns_of(const Show& request) {
  switch (request.what) {
    case Show::What::kShards:
      return {{"name"}, {"dsn"}, {"state"}, {"home", "", kBool}, {"entries", "", kBigint}};
    case Show::What::kMaps:
      return {{"name"}, {"kind"}, {"key"}, {"shardlets", "", kBigint}, {"shards"}, {"tables", "", kBigint}};
    case Show::What::kShardlets:
      return {{"name"}, {"map"}, {"low"}, {"high"}, {"values"}, {"shard"}, {"state"}};
    case Show::What::kTables: return {{"name"}, {"kind"}, {"map"}, {"key"}};
    case Show::What::kRouters:
      return {{"name"},
              {"epoch", "", kBigint},
              {"age_ms", "", kBigint},
              {"lease_ms", "", kBigint},
              {"alive", "", kBool},
              {"this", "", kBool}};
    case Show::What::kPools:
      return {{"shard"}, {"role"}, {"open", "", kBigint}, {"limit", "", kBigint}, {"waiting", "", kBigint}};
    case Show::What::kStats: return {{"name"}, {"value", "", kBigint}};
    case Show::What::kSlow:
      return {{"at"},
              {"user"},
              {"tier"},
              {"shards"},
              {"ms", "", kBigint},
              {"waited_ms", "", kBigint},
              {"held_ms", "", kBigint},
              {"failed", "", kBool},
              {"statement"}};
    case Show::What::kAudit:
      return {{"at"}, {"who"}, {"role"}, {"face"}, {"router"}, {"what"}, {"result"}, {"epoch", "", kBigint}};
    case Show::What::kJobs: break;
  }
  return job_columns();
}

Result<CommandResult> show(const Show& request, Face face, const Surroundings& surroundings,
                           const OpenStore& store, Deadline deadline) {
  const shardmap::MapPtr map = surroundings.map();
  CommandResult result;
  result.tag = "SHOW";
  result.columns = columns_of(request);
  result.epoch = map->epoch();
  Status done;
  switch (request.what) {
    case Show::What::kShards: done = show_shards(request, *map, surroundings, result); break;
    case Show::What::kMaps: done = show_maps(request, face, *map, result); break;
    case Show::What::kShardlets: done = show_shardlets(request, face, *map, result); break;
    case Show::What::kTables: done = show_tables(request, face, *map, result); break;
    case Show::What::kRouters: done = show_routers(request, surroundings, store, deadline, result); break;
    case Show::What::kPools: done = show_pools(request, surroundings, result); break;
    case Show::What::kStats: done = show_stats(request, surroundings, result); break;
    case Show::What::kSlow: done = show_slow(request, surroundings, result); break;
    case Show::What::kAudit: done = show_audit(request, surroundings, store, deadline, result); break;
    case Show::What::kJobs:
      if (surroundings.store.empty()) {
        if (request.name) done = no_such("job", *request.name);
        break;
      }
      if (auto opened = store(); !opened) {
        done = fail(opened.error());
      } else {
        done = show_jobs(**opened, request, face, surroundings, deadline, result);
      }
      break;
  }
  if (!done) return fail(done.error());
  return result;
}

std::vector<ResultColumn> lookup_columns() {
  return {{"map"}, {"key"}, {"shardlet"}, {"shard"}, {"state"}};
}

// "de,42": a key of several columns in one text, as kintsugi.tenant takes it.
static std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    parts.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  parts.emplace_back(text);
  return parts;
}

Result<CommandResult> lookup(const command::Lookup& request, Face face, const ShardMap& map) {
  const Mapping* mapping = map.mapping(request.map);
  if (mapping == nullptr) return no_such("shard map", request.map);
  std::vector<std::string> columns = request.key;
  if (columns.size() == 1 && mapping->key_types().size() > 1) columns = split_at_commas(columns[0]);
  KG_TRY(const std::string key, shardmap::encode_key(mapping->key_types(), columns));
  const auto found = mapping->find(key);
  const std::string key_text = shown(mapping->key_types(), key);
  if (!found) {
    return fail(sqlstate::kNoShardlet,
                "shard map \"" + request.map + "\" has no shardlet for the key " + key_text,
                "CREATE SHARDLET makes one.");
  }
  CommandResult result;
  result.tag = "LOOKUP";
  result.epoch = map.epoch();
  result.columns = lookup_columns();
  Json json = Json::object();
  json["map"] = request.map;
  json["key"] = face == Face::kSql ? Json(key_text) : key_json(mapping->key_types(), key);
  json["shardlet"] = std::string(found->name());
  json["shard"] = map.shard(found->shard())->name;
  json["state"] = std::string(shardmap::name_of(found->state()));
  result.objects.push_back(std::move(json));
  return result;
}

}  // namespace kintsugi::admin
