#include "shardmap/map_commands.h"

#include <algorithm>
#include <optional>

#include "base/sql_quote.h"
#include "shardmap/placing.h"
#include "shardmap/sequences.h"
#include "shardmap/table_check.h"

namespace kintsugi::shardmap {
namespace {

constexpr int kHashShardletsMax = 65536;
constexpr std::size_t kKeysNamed = 10;
constexpr std::chrono::milliseconds kConnectDeadline{5000};

// The hash where shardlet i of n begins.
std::string hash_bound(int i, int n) {
  const auto at = static_cast<std::uint64_t>(i);
  const auto count = static_cast<std::uint64_t>(n);
  const std::uint64_t step = ~std::uint64_t{0} / count * at + ~std::uint64_t{0} % count * at / count;
  return std::to_string(static_cast<std::int64_t>(step ^ (std::uint64_t{1} << 63)));
}

Result<MapEdit> create_map_edit(const ShardMap& map, const NewMap& request) {
  MapEdit edit{edit::CreateMap{request.name, request.kind, request.key_types}};
  if (request.shardlets == 0 && request.shards.empty()) return edit;
  if (request.kind != MapKind::kHash) {
    return fail(sqlstate::kInvalidParameter, "only a HASH map is made with its shardlets");
  }
  if (request.shardlets < 1 || request.shardlets > kHashShardletsMax) {
    return fail(sqlstate::kInvalidParameter,
                "a HASH map has 1 to " + std::to_string(kHashShardletsMax) + " shardlets");
  }
  std::vector<std::string> shards = request.shards;
  if (shards.empty()) {
    for (const Shard* shard : map.shards()) {
      if (shard->state == ShardState::kOnline) shards.push_back(shard->name);
    }
  }
  if (shards.empty()) return fail("55000", "there is no shard that could be given shardlets");
  for (int i = 0; i < request.shardlets; ++i) {
    edit::CreateShardlet op{request.name,
                            request.name + "_" + std::to_string(i + 1),
                            {},
                            {},
                            {},
                            shards[static_cast<std::size_t>(i) % shards.size()],
                            ShardletState::kOnline};
    op.low = {i == 0 ? BoundColumn::min() : BoundColumn::value(hash_bound(i, request.shardlets))};
    op.high = {i + 1 == request.shardlets ? BoundColumn::max()
                                          : BoundColumn::value(hash_bound(i + 1, request.shardlets))};
    edit.operations.emplace_back(std::move(op));
  }
  return edit;
}

std::string listed(const std::vector<MisplacedKey>& keys, const std::string& shard) {
  std::string text;
  for (const MisplacedKey& key : keys) {
    if (!text.empty()) text += "; ";
    text += "key " + key.key + " is on shard \"" + shard + "\"" +
            (key.key == "NULL"     ? ""
             : key.belongs.empty() ? " and no shardlet has it"
                                   : " and belongs on \"" + key.belongs + "\"");
  }
  return text;
}

// Every shard's rows of `table` are where `map` says.
Status check_placement(const ShardMap& map, const Table& table, Deadline deadline) {
  const Mapping& mapping = *map.mapping(table.map);
  std::optional<Error> nowhere;
  bool anywhere = false;
  for (const Shard* shard : map.shards()) {
    const bool owns = std::any_of(mapping.shards().begin(), mapping.shards().end(),
                                  [shard](const auto& counted) { return counted.first == shard->id; });
    auto local = LocalMap::connect(shard->dsn, deadline.sooner(Deadline::in(kConnectDeadline)));
    if (!local) {
      return fail(sqlstate::kShardUnreachable, "shard \"" + shard->name + "\" cannot be reached", "",
                  local.error().message);
    }
    if (Status fits = check_key_columns(*local, mapping, table, deadline); !fits) {
      if (fits.error().sqlstate == "42P01" && !owns) {
        if (!nowhere) nowhere = fits.error();
        continue;
      }
      Error error = fits.error();
      error.detail = "So it is on shard \"" + shard->name + "\".";
      return fail(std::move(error));
    }
    anywhere = true;
    KG_TRY(const auto keys, misplaced_keys(*local, map, *shard, table, kKeysNamed, deadline));
    if (keys.empty()) continue;
    return fail("55000",
                "table " + table.display() + " has rows that are not where map \"" + table.map + "\" says",
                "Move or delete these rows, or give the map a shardlet for them.", listed(keys, shard->name));
  }
  if (!anywhere && nowhere)
    return fail(*std::move(nowhere));  // a map without shardlets has no shard that must have it
  return {};
}

// With one shard there is nobody to count apart from: the job that makes a second one sees to it.
Status set_sequences_apart(const ShardMap& map, const Table& table, Deadline deadline) {
  if (map.shards().size() < 2) return {};
  const std::string name = quote_identifier(table.schema) + "." + quote_identifier(table.name);
  std::vector<std::pair<const Shard*, std::unique_ptr<PgSession>>> sessions;
  std::int64_t last = 0;
  for (const Shard* shard : map.shards()) {
    KG_TRY(auto session, PgSession::connect(shard->dsn, true, deadline.sooner(Deadline::in(kConnectDeadline))));
    const auto here = last_of_sequences(*session, name, deadline);
    if (!here && here.error().sqlstate == "42P01") continue;  // it owns none of the map
    if (!here) return fail(here.error());
    last = std::max(last, *here);
    sessions.emplace_back(shard, std::move(session));
  }
  for (auto& [shard, session] : sessions) KG_CHECK(count_apart(*session, shard->id, name, last, deadline));
  return {};
}

}  // namespace

Result<MapPtr> MapCommands::alter_shard(const edit::AlterShard& request, Deadline deadline) {
  if (request.dsn) {
    KG_TRY(const MapPtr attached, change_.reattach_shard(request.name, *request.dsn, deadline));
    if (!request.new_name && !request.state) return attached;
  }
  edit::AlterShard rest = request;
  rest.dsn.reset();
  rest.identity.reset();
  return change_.edit(
      [&rest](const ShardMap& map) -> Result<MapEdit> {
        const Shard* shard = map.shard_named(rest.name);
        if (rest.state && shard != nullptr && shard->state == ShardState::kPreparing) {
          return fail("55000", "shard \"" + rest.name + "\" has not got the tables of the others yet",
                      "SHOW JOBS has the job that gives them to it, and says why it does not go on; RESUME JOB "
                      "tries again.");
        }
        return MapEdit{rest};
      },
      deadline);
}

Result<MapPtr> MapCommands::create_map(const NewMap& request, Deadline deadline) {
  return change_.edit([&request](const ShardMap& map) { return create_map_edit(map, request); }, deadline);
}

Result<MapPtr> MapCommands::drop_map(const std::string& name, Deadline deadline) {
  return change_.edit({edit::DropMap{name}}, deadline);
}

Result<MapPtr> MapCommands::create_shardlet(const edit::CreateShardlet& request, Deadline deadline) {
  return change_.edit({request}, deadline);
}

Result<MapPtr> MapCommands::alter_shardlet(const edit::AlterShardlet& request, Deadline deadline) {
  if (request.shard) {
    return fail(sqlstate::kNotSupported, "a shardlet does not change its shard by ALTER SHARDLET",
                "MOVE SHARDLET moves its rows too.");
  }
  return change_.edit({request}, deadline);
}

Result<MapPtr> MapCommands::drop_shardlet(const std::string& name, Deadline deadline) {
  KG_TRY(const StoredMap stored, store_.load(deadline));
  const auto shardlet = stored.map->shardlet(name);
  if (!shardlet) return fail(sqlstate::kUndefinedObject, "shardlet \"" + name + "\" does not exist");
  // Without it, its rows would be where nobody looks for them: ask the map that would be.
  KG_TRY(const MapPtr without, apply(*stored.map, {edit::DropShardlet{name}}));
  const Shard& shard = *stored.map->shard(shardlet->shard);
  for (const Table* table : stored.map->tables_of(shardlet->map)) {
    auto local = LocalMap::connect(shard.dsn, deadline.sooner(Deadline::in(kConnectDeadline)));
    if (!local) {
      return fail(sqlstate::kShardUnreachable, "shard \"" + shard.name + "\" cannot be reached", "",
                  local.error().message);
    }
    KG_TRY(const auto keys, misplaced_keys(*local, *without, shard, *table, 1, deadline));
    if (keys.empty()) continue;
    return fail("55000", "shardlet \"" + name + "\" still has rows in table " + table->display(),
                "Delete them first.", listed(keys, shard.name));
  }
  return change_.edit({edit::DropShardlet{name}}, deadline);
}

Result<MapPtr> MapCommands::shard_table(const Table& table, Deadline deadline) {
  for (const char* system : {"kintsugi", "pg_catalog", "information_schema", "pg_toast"}) {
    if (table.schema == system)
      return fail("42501", "table " + table.display() + " is a table of the system, and is not placed",
                  "Shard or replicate tables of your own.");
  }
  const auto check = [&](const ShardMap& map) -> Status {
    if (table.kind == TableKind::kReplicated) return check_copies(map, table, deadline);
    if (table.kind != TableKind::kSharded) return {};
    KG_CHECK(check_placement(map, table, deadline));
    return set_sequences_apart(map, table, deadline);
  };
  return place_table(store_, change_, table, check, deadline);
}

Result<std::vector<std::string>> MapCommands::warnings_of(const ShardMap& map, const Table& table,
                                                          Deadline deadline) {
  std::vector<std::string> warnings;
  const Mapping* mapping = map.mapping(table.map);
  if (table.kind != TableKind::kSharded || mapping == nullptr || mapping->shards().empty()) return warnings;
  const Shard* shard = map.shard(mapping->shards().begin()->first);
  KG_TRY(LocalMap local, LocalMap::connect(shard->dsn, deadline.sooner(Deadline::in(kConnectDeadline))));
  KG_TRY(const auto indexes, unique_without_key(local, table, deadline));
  for (const std::string& index : indexes) {
    warnings.push_back("the unique index " + index + " of table " + table.display() +
                       " has not the sharding key in it: it holds on each shard alone");
  }
  return warnings;
}

Result<MapPtr> MapCommands::put_table(const Table& table, Deadline deadline) {
  return change_.edit({edit::PutTable{table}}, deadline);
}

Result<MapPtr> MapCommands::drop_table(const std::string& schema, const std::string& name, Deadline deadline) {
  return change_.edit({edit::DropTable{schema, name}}, deadline);
}

Result<std::string> MapCommands::export_all(Deadline deadline) {
  KG_TRY(const StoredMap stored, store_.load(deadline));
  return export_map(*stored.map);
}

Result<MapPtr> MapCommands::import_all(std::string_view text, Deadline deadline) {
  KG_TRY(const MapPtr file, import_map(text));
  KG_TRY(const MapEdit whole, edit_that_makes(*file));
  std::vector<NewShard> shards;
  for (const Shard* shard : file->shards()) shards.push_back({shard->name, shard->dsn, ShardState::kOnline});
  MapEdit rest;
  for (const edit::Operation& op : whole.operations) {
    if (!std::holds_alternative<edit::CreateShard>(op)) rest.operations.push_back(op);
  }
  return change_.create_shards(
      shards,
      [&rest](const ShardMap& map) -> Result<MapEdit> {
        if (map.shards().empty() && map.mappings().empty()) return rest;
        return fail("55000", "a map is imported into an empty store only, and this one has shards or maps");
      },
      deadline);
}

}  // namespace kintsugi::shardmap
