// Operations on shards, maps, shardlets and tables.
#include <charconv>
#include <set>

#include "admin/operation_handlers.h"
#include "admin/request_body.h"
#include "base/dsn_text.h"

namespace kintsugi::admin::handlers {
namespace {

using command::Show;
using shardmap::ShardMap;

constexpr std::size_t kPageDefault = 100, kPageMax = 1000;

// What a PATCH may name as it is, when the object comes back whole, and not change.
tl::unexpected<Error> not_so_changed() {
  return fail(
      sqlstate::kInvalidParameter, "a shardlet's map, keys and shard are not changed by PATCH",
      "POST /v1/jobs with {\"type\": \"move\", \"shardlet\": ..., \"to\": ...} moves it to another shard; "
      "\"split\" and \"merge\" change its keys.");
}

Show one(Show::What what, const std::string& name) {
  Show show;
  show.what = what;
  show.name = name;
  return show;
}

tl::unexpected<Error> no_such_state(const std::string& state, const char* known) {
  return fail(sqlstate::kInvalidParameter, "\"" + state.substr(0, 60) + "\" is no state of it", known);
}

// Runs the change, then shows what came of it.
Answer change_and_show(RestRequest& request, const Command& change, const Show& after, int status) {
  KG_TRY(const CommandResult done, request.layer.run(change, request.actor, request.run));
  KG_TRY(RestAnswer answer, run_one(request, after, status));
  answer.notices = done.notices;
  answer.epoch = std::max(answer.epoch, done.epoch);
  return answer;
}

// Asking again for what is there already, as it is, is no error; with anything different it is.
template <class Same>
Answer create(RestRequest& request, const Command& change, const Show& after, Same same) {
  Answer answer = change_and_show(request, change, after, 201);
  if (answer || answer.error().sqlstate != sqlstate::kDuplicateObject) return answer;
  if (!same(*request.surroundings.map())) return answer;
  return run_one(request, after, 200);
}

Answer run_drop(RestRequest& request, const Command& command) {
  KG_TRY(const CommandResult done, request.layer.run(command, request.actor, request.run));
  RestAnswer answer{.status = 204};
  answer.epoch = done.epoch;
  answer.notices = done.notices;
  return answer;
}

Result<std::optional<shardmap::ShardState>> shard_state(RequestBody& body) {
  const auto name = body.text_if("state");
  if (!name) return std::nullopt;
  const auto state = shardmap::shard_state_named(*name);
  if (!state || *state == shardmap::ShardState::kPreparing) {
    return fail(sqlstate::kInvalidParameter, "the state of a shard is online, draining or offline");
  }
  return state;
}

std::pair<std::string, std::string> table_name(const std::string& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string::npos) return {"public", text};
  return {text.substr(0, dot), text.substr(dot + 1)};
}

std::set<std::string> names_of_shards(const ShardMap& map, const shardmap::Mapping& mapping) {
  std::set<std::string> names;
  for (const auto& [id, entries] : mapping.shards()) names.insert(map.shard(id)->name);
  return names;
}

}  // namespace

Result<Show> show_page(const RestRequest& request, Show::What what) {
  Show show;
  show.what = what;
  show.limit = kPageDefault;
  show.after = request.in_query("after");
  const std::string limit = request.in_query("limit");
  if (limit.empty()) return show;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), show.limit);
  if (error != std::errc() || end != limit.data() + limit.size() || show.limit < 1 || show.limit > kPageMax) {
    return fail(sqlstate::kInvalidParameter, "limit is a number from 1 to " + std::to_string(kPageMax));
  }
  return show;
}

Answer run_list(RestRequest& request, const Command& command) {
  KG_TRY(CommandResult result, request.layer.run(command, request.actor, request.run));
  RestAnswer answer;
  answer.body = Json::object();
  answer.body["items"] = Json::array();
  for (Json& object : result.objects) answer.body["items"].push_back(std::move(object));
  answer.body["next"] = result.next.empty() ? Json() : Json(result.next);
  answer.epoch = result.epoch;
  answer.notices = std::move(result.notices);
  return answer;
}

Answer run_one(RestRequest& request, const Command& command, int status) {
  KG_TRY(CommandResult result, request.layer.run(command, request.actor, request.run));
  RestAnswer answer{.status = status};
  answer.body = result.objects.empty() ? Json::object() : std::move(result.objects[0]);
  answer.epoch = result.epoch;
  answer.notices = std::move(result.notices);
  return answer;
}

// ---- shards

Answer list_shards(RestRequest& request) {
  KG_TRY(Show show, show_page(request, Show::What::kShards));
  show.state = request.in_query("state");
  if (!show.state.empty() && !shardmap::shard_state_named(show.state))
    return no_such_state(show.state, "preparing, online, draining, offline");
  return run_list(request, show);
}

Answer create_shard(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const shardmap::NewShard shard{body.text("name"), body.text("dsn")};
  if (body.text_if("state").value_or("online") != "online") body.complain("a new shard is online");
  KG_CHECK(body.finish());
  return create(request, command::CreateShard{shard, false}, one(Show::What::kShards, shard.name),
                [&shard](const ShardMap& map) {
                  const shardmap::Shard* known = map.shard_named(shard.name);
                  return known != nullptr &&
                         (known->dsn == shard.dsn || without_password(known->dsn) == shard.dsn);
                });
}

Answer get_shard(RestRequest& request) {
  return run_one(request, one(Show::What::kShards, request.path["shard"]));
}

Answer change_shard(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  command::AlterShard change{.name = request.path["shard"]};
  change.new_name = body.text_if("name");
  change.dsn = body.text_if("dsn");
  KG_TRY(change.state, shard_state(body));
  KG_CHECK(body.finish());
  return change_and_show(request, change, one(Show::What::kShards, change.new_name.value_or(change.name)), 200);
}

Answer drop_shard(RestRequest& request) {
  return run_drop(request, command::DropShard{request.path["shard"], false});
}

// ---- maps

Answer list_maps(RestRequest& request) {
  KG_TRY(const Show show, show_page(request, Show::What::kMaps));
  return run_list(request, show);
}

Answer create_map(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  shardmap::NewMap map;
  map.name = body.text("name");
  const auto kind = shardmap::map_kind_named(body.text("kind"));
  if (!kind) body.complain("\"kind\" is range, list or hash");
  for (const std::string& type : body.texts("key")) {
    auto known = shardmap::key_type_named(type);
    if (!known) {
      body.complain(known.error().message, known.error().hint);
    } else {
      map.key_types.push_back(*known);
    }
  }
  map.shardlets = body.number_if("shardlets", 1, 65536).value_or(0);
  map.shards = body.texts_if("shards");
  KG_CHECK(body.finish());
  map.kind = *kind;
  return create(
      request, command::CreateMap{map, false}, one(Show::What::kMaps, map.name), [&map](const ShardMap& now) {
        const shardmap::Mapping* known = now.mapping(map.name);
        if (known == nullptr || known->kind() != map.kind || known->key_types() != map.key_types) return false;
        return (map.shardlets == 0 || known->shardlet_count() == static_cast<std::size_t>(map.shardlets)) &&
               (map.shards.empty() ||
                names_of_shards(now, *known) == std::set(map.shards.begin(), map.shards.end()));
      });
}

Answer get_map(RestRequest& request) {
  return run_one(request, one(Show::What::kMaps, request.path["map"]));
}

Answer drop_map(RestRequest& request) {
  return run_drop(request, command::DropMap{request.path["map"], false});
}

Answer lookup_key(RestRequest& request) {
  command::Lookup lookup{request.path["map"], {}};
  const auto [begin, end] = request.query.equal_range("key");
  for (auto at = begin; at != end; ++at) lookup.key.push_back(at->second);
  if (lookup.key.empty()) {
    return fail(sqlstate::kInvalidParameter, "no key was given",
                "?key=42, and once more for each further column.");
  }
  return run_one(request, lookup);
}

// ---- shardlets

Answer list_shardlets(RestRequest& request) {
  KG_TRY(Show show, show_page(request, Show::What::kShardlets));
  show.map = request.path["map"];
  show.shard = request.in_query("shard");
  show.state = request.in_query("state");
  if (!show.state.empty() && !shardmap::shardlet_state_named(show.state))
    return no_such_state(show.state, "online, read only, offline, held");
  return run_list(request, show);
}

Answer create_shardlet(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  shardmap::edit::CreateShardlet shardlet;
  shardlet.map = request.path["map"];
  shardlet.name = body.text("name");
  shardlet.shard = body.text("shard");
  if (body.has("values")) {
    shardlet.values = body.keys("values");
  } else {
    shardlet.low = body.bound("from");
    shardlet.high = body.bound("to");
  }
  if (const auto state = body.text_if("state")) {
    const auto known = shardmap::shardlet_state_named(*state);
    if (!known || *known == shardmap::ShardletState::kHeld)
      body.complain("\"state\" is online, read only or offline");
    shardlet.state = known.value_or(shardmap::ShardletState::kOnline);
  }
  KG_CHECK(body.finish());
  Show after = one(Show::What::kShardlets, shardlet.name);
  after.map = shardlet.map;
  return create(request, command::CreateShardlet{shardlet, false}, after, [&shardlet](const ShardMap& map) {
    const auto there = shardmap::creation_of(map, shardlet.name);
    if (!there || there->map != shardlet.map || there->shard != shardlet.shard) return false;
    // Two texts of one value are one value: what is encoded counts.
    const shardmap::Mapping& mapping = *map.mapping(shardlet.map);
    const auto now = map.shardlet(shardlet.name);
    if (mapping.kind() == shardmap::MapKind::kList) {
      std::vector<std::string> values;
      for (const auto& value : shardlet.values) {
        auto key = shardmap::encode_key(mapping.key_types(), value);
        if (!key) return false;
        values.push_back(*std::move(key));
      }
      std::sort(values.begin(), values.end());
      return values == now->values;
    }
    const auto low = shardmap::encode_bound(mapping.bound_types(), shardlet.low);
    const auto high = shardmap::encode_bound(mapping.bound_types(), shardlet.high);
    return low && high && *low == now->low && *high == now->high;
  });
}

Answer get_shardlet(RestRequest& request) {
  Show show = one(Show::What::kShardlets, request.path["shardlet"]);
  show.map = request.path["map"];
  return run_one(request, show);
}

Answer change_shardlet(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  command::AlterShardlet change{.name = request.path["shardlet"]};
  change.new_name = body.text_if("name");
  if (const auto state = body.text_if("state")) {
    change.state = shardmap::shardlet_state_named(*state);
    if (!change.state || *change.state == shardmap::ShardletState::kHeld)
      body.complain("\"state\" is online, read only or offline");
  }
  KG_TRY(const RestAnswer now, get_shardlet(request));  // of this map
  for (const char* member : {"map", "from", "to", "values", "shard"}) {
    if (body.says_otherwise(member, now.body)) return not_so_changed();
  }
  KG_CHECK(body.finish());
  Show after = one(Show::What::kShardlets, change.new_name.value_or(change.name));
  after.map = request.path["map"];
  return change_and_show(request, change, after, 200);
}

Answer drop_shardlet(RestRequest& request) {
  KG_CHECK(get_shardlet(request));
  return run_drop(request, command::DropShardlet{request.path["shardlet"], false});
}

// ---- tables

Answer list_tables(RestRequest& request) {
  KG_TRY(Show show, show_page(request, Show::What::kTables));
  show.map = request.in_query("map");
  return run_list(request, show);
}

Answer place_table(RestRequest& request) {
  KG_TRY(RequestBody body, RequestBody::read(request.body));
  const auto [schema, name] = table_name(body.text("name"));
  shardmap::Table table{.schema = schema, .name = name};
  if (body.truth_if("replicated").value_or(false)) {
    table.kind = shardmap::TableKind::kReplicated;
  } else {
    table.kind = shardmap::TableKind::kSharded;
    table.map = body.text("map");
    table.key = body.texts("key");
  }
  KG_CHECK(body.finish());
  const Show after = one(Show::What::kTables, table.display());
  const shardmap::MapPtr map = request.surroundings.map();
  const shardmap::Table* known = map->table(table.schema, table.name);
  const bool same = known != nullptr && *known == table;
  return same ? run_one(request, after) : change_and_show(request, command::PlaceTable{table}, after, 201);
}

Answer get_table(RestRequest& request) {
  const auto [schema, name] = table_name(request.path["table"]);
  return run_one(request, one(Show::What::kTables, schema + "." + name));
}

Answer unplace_table(RestRequest& request) {
  const auto [schema, name] = table_name(request.path["table"]);
  return run_drop(request, command::UnplaceTable{schema, name, false});
}

}  // namespace kintsugi::admin::handlers
