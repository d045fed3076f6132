#include "shardmap/recovery.h"

#include <algorithm>
#include <map>

#include "shardmap/local_map.h"
#include "shardmap/map_change.h"
#include "shardmap/table_check.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::size_t kKeysATable = 20;
constexpr std::chrono::milliseconds kShardDeadline{5000};

Deadline shard_deadline(Deadline deadline) {
  return deadline.sooner(Deadline::in(kShardDeadline));
}

std::map<std::string, Shardlet> by_name(const LocalContents& contents) {
  std::map<std::string, Shardlet> all;
  for (const LocalMapping& mapping : contents.mappings) {
    for (const Shardlet& shardlet : mapping.owned) all.emplace(shardlet.name, shardlet);
  }
  return all;
}

void compare(const LocalContents& want, const LocalContents& have, const std::string& shard,
             std::vector<Difference>& out) {
  // Its state may be on its way for longer, and nobody but a rebuilt store asks for it.
  if (have.identity.home && have.identity.home != want.identity.home) {
    out.push_back({Difference::Kind::kIdentity, shard,
                   std::string("its local map says that it is ") + (*have.identity.home ? "" : "not ") +
                       "the home shard"});
  }
  const auto wanted = by_name(want);
  const auto there = by_name(have);
  for (const auto& [name, shardlet] : wanted) {
    const auto at = there.find(name);
    if (at == there.end()) {
      out.push_back({Difference::Kind::kShardlet, shard,
                     "the store gives it shardlet \"" + name + "\", its local map does not"});
    } else if (at->second != shardlet) {
      out.push_back({Difference::Kind::kShardlet, shard,
                     "shardlet \"" + name + "\" has another range or state in its local map"});
    }
  }
  for (const auto& [name, shardlet] : there) {
    if (!wanted.contains(name)) {
      out.push_back({Difference::Kind::kShardlet, shard,
                     "its local map owns shardlet \"" + name + "\", the store does not say so"});
    }
  }
  for (const Table& table : want.tables) {
    if (std::find(have.tables.begin(), have.tables.end(), table) == have.tables.end()) {
      out.push_back(
          {Difference::Kind::kTable, shard, "table " + table.display() + " is not so in its local map"});
    }
  }
  for (const Table& table : have.tables) {
    const bool known = std::any_of(want.tables.begin(), want.tables.end(), [&table](const Table& other) {
      return other.schema == table.schema && other.name == table.name;
    });
    if (!known)
      out.push_back({Difference::Kind::kTable, shard,
                     "its local map has table " + table.display() + ", the store has not"});
  }
}

void check_rows(LocalMap& local, const ShardMap& map, const Shard& shard, Deadline deadline,
                std::vector<Difference>& out) {
  for (const Table* table : map.tables()) {
    if (table->kind != TableKind::kSharded) continue;
    const auto keys = misplaced_keys(local, map, shard, *table, kKeysATable, deadline);
    if (!keys) {
      out.push_back({Difference::Kind::kTable, shard.name,
                     "table " + table->display() + " cannot be read: " + keys.error().message});
      continue;
    }
    for (const MisplacedKey& key : *keys) {
      out.push_back(
          {Difference::Kind::kRow, shard.name,
           "table " + table->display() + " has rows with key " + key.key + " here, which " +
               (key.belongs.empty() ? "no shardlet has" : "belongs on shard \"" + key.belongs + "\"")});
    }
  }
}

// One database's local map, and where it is.
struct Source {
  std::string dsn;
  LocalContents contents;
};

// The map that the local maps make together.
struct Assembly {
  MapPtr map;
  std::uint64_t newest = 0;       // the highest epoch that one of them has
  std::vector<std::string> told;  // what was passed over
};

Result<edit::CreateShardlet> creation(const LocalMapping& mapping, const Shardlet& shardlet,
                                      const std::string& shard) {
  edit::CreateShardlet op{mapping.name, shardlet.name, {}, {}, {}, shard, shardlet.state};
  static const KeyTypes kHash{KeyType::kBigint};
  if (mapping.kind == MapKind::kList) {
    for (const std::string& value : shardlet.values) {
      KG_TRY(const Bound bound, decode_bound(mapping.key_types, value));
      std::vector<std::string>& texts = op.values.emplace_back();
      for (const BoundColumn& column : bound) texts.push_back(column.text);
    }
    return op;
  }
  const KeyTypes& types = mapping.kind == MapKind::kHash ? kHash : mapping.key_types;
  KG_TRY(op.low, decode_bound(types, shardlet.low));
  KG_TRY(op.high, decode_bound(types, shardlet.high));
  return op;
}

Result<Assembly> assemble(const std::string& store_id, std::vector<Source> sources) {
  Assembly made{ShardMap::empty(store_id), 0, {}};
  for (const Source& source : sources) {
    const ShardIdentity& identity = source.contents.identity;
    KG_TRY(made.map, apply(*made.map, {edit::CreateShard{identity.shard_name, source.dsn, identity.shard_id,
                                                         ShardState::kOnline}}));
  }
  // The newest first: what it says stands.
  std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return a.contents.identity.epoch > b.contents.identity.epoch;
  });
  if (!sources.empty()) made.newest = sources.front().contents.identity.epoch;
  for (const Source& source : sources) {
    for (const LocalMapping& mapping : source.contents.mappings) {
      // A map that only an older local map has was dropped since.
      if (&source == &sources.front()) {
        KG_TRY(made.map, apply(*made.map, {edit::CreateMap{mapping.name, mapping.kind, mapping.key_types}}));
      }
      for (const Shardlet& shardlet : mapping.owned) {
        KG_TRY(const auto op, creation(mapping, shardlet, source.contents.identity.shard_name));
        auto next = apply(*made.map, {op});
        if (next) {
          made.map = *std::move(next);
        } else {
          made.told.push_back("passed over shardlet \"" + shardlet.name + "\" of shard \"" +
                              source.contents.identity.shard_name + "\": " + next.error().message);
        }
      }
    }
  }
  if (!sources.empty()) {
    for (const Table& table : sources.front().contents.tables) {
      KG_TRY(made.map, apply(*made.map, {edit::PutTable{table}}));
    }
  }
  return made;
}

// The edit that makes maps, shardlets and tables of `from` those of `to`; the shards are the same by name.
Result<MapEdit> edit_between(const ShardMap& from, const ShardMap& to, std::vector<std::string>& told) {
  MapEdit edit;
  for (const Table* table : from.tables()) {
    const Table* other = to.table(table->schema, table->name);
    if (other != nullptr && *other == *table) continue;
    edit.operations.emplace_back(edit::DropTable{table->schema, table->name});
    told.push_back("table " + table->display() + " goes from the store, or changes");
  }
  std::vector<edit::Operation> creations;
  for (const Mapping* mapping : from.mappings()) {
    for (const Shardlet& shardlet : from.shardlets_of(*mapping)) {
      KG_TRY(const auto mine, creation_of(from, shardlet.name));
      const auto theirs = creation_of(to, shardlet.name);
      if (theirs && *theirs == mine) continue;
      edit.operations.emplace_back(edit::DropShardlet{shardlet.name});
      told.push_back("shardlet \"" + shardlet.name + "\" goes from the store, or changes");
    }
    if (to.mapping(mapping->name()) == nullptr) edit.operations.emplace_back(edit::DropMap{mapping->name()});
  }
  for (const Mapping* mapping : to.mappings()) {
    if (from.mapping(mapping->name()) == nullptr) {
      edit.operations.emplace_back(edit::CreateMap{mapping->name(), mapping->kind(), mapping->key_types()});
      told.push_back("map \"" + mapping->name() + "\" comes into the store");
    }
    for (const Shardlet& shardlet : to.shardlets_of(*mapping)) {
      KG_TRY(const auto theirs, creation_of(to, shardlet.name));
      const auto mine = creation_of(from, shardlet.name);
      if (mine && *mine == theirs) continue;
      edit.operations.emplace_back(theirs);
      told.push_back("shardlet \"" + shardlet.name + "\" is on shard \"" + theirs.shard + "\" from now on");
    }
  }
  for (const Table* table : to.tables()) {
    const Table* other = from.table(table->schema, table->name);
    if (other == nullptr || *other != *table) edit.operations.emplace_back(edit::PutTable{*table});
  }
  return edit;
}

// The name of the home shard, as they say; empty: none of them says that it is.
std::string home_of(const std::vector<Source>& sources) {
  const Source* home = nullptr;
  for (const Source& source : sources) {
    const ShardIdentity& identity = source.contents.identity;
    if (identity.home.value_or(false) && (home == nullptr || identity.epoch > home->contents.identity.epoch))
      home = &source;
  }
  return home == nullptr ? "" : home->contents.identity.shard_name;
}

// Commits `edit` if the store's map still is the one that it was made for, above `newest`, and every local map
// follows, by this or by any router's recoverer.
Result<int> commit_for_all(MapStore& store, const ShardMap& base, MapEdit edit, std::uint64_t newest,
                           const std::vector<ShardIdentity>& others, Deadline deadline) {
  edit.operations.emplace_back(edit::RaiseEpoch{newest + 1});
  return MapChange(store).take_over(
      [&base, &edit](const ShardMap& map) -> Result<MapEdit> {
        if (map.epoch() == base.epoch()) return edit;
        return fail(sqlstate::kSerializationFailure, "the shard map was changed meanwhile", "Look again.");
      },
      others, deadline);
}

void tell_of(int later, std::vector<std::string>& told) {
  if (later > 0) told.push_back(std::to_string(later) + " shards do not answer and follow when they do");
}

// What is to be done so that the local maps say what the store says, and why.
struct FromStore {
  const ShardMap& map;
  Deadline deadline;
  std::vector<std::string> told;
  std::vector<ShardIdentity> others;  // shards that become this store's
  std::uint64_t newest = 0;           // the highest epoch that a local map has
  bool differ = false;

  void settle(const Shard& shard, const std::string& what) {
    told.push_back("shard \"" + shard.name + "\": " + what);
    differ = true;
  }
  Status look_at(const Shard& shard) {
    auto local = LocalMap::connect(shard.dsn, shard_deadline(deadline));
    if (!local) {
      told.push_back("shard \"" + shard.name + "\" cannot be reached and is not compared");
      return {};
    }
    const auto identity = local->identity(deadline);
    if (!identity) {
      told.push_back("shard \"" + shard.name + "\" stays as it is: " + identity.error().message);
    } else if (!*identity) {
      return claim_again(*local, shard);
    } else if ((*identity)->shard_id != shard.identity) {
      told.push_back(
          "the database of shard \"" + shard.name + "\" stays as it is: it says that it is shard \"" +
          (*identity)->shard_name + "\" with the identity " + (*identity)->shard_id + ", not " +
          shard.identity +
          ". Look whether the DSN is right; if it is, DROP SCHEMA kintsugi CASCADE there, then resolve again");
    } else {
      newest = std::max(newest, (*identity)->epoch);
      compare_with(*local, **identity, shard);
    }
    return {};
  }

 private:
  void compare_with(LocalMap& local, const ShardIdentity& identity, const Shard& shard) {
    if (identity.store_id != map.store_id()) {
      others.push_back(identity);
      settle(shard, "becomes this store's");
    }
    const auto have = local.read(deadline);
    if (!have && have.error().sqlstate == "XX001")
      return settle(shard, have.error().message + "; it is written anew");
    if (!have) {
      told.push_back(
          "shard \"" + shard.name + "\" stays as it is: " + have.error().message +
          ". While no job runs and it has no prepared transactions, DROP SCHEMA kintsugi CASCADE there, "
          "then resolve again");
      return;
    }
    std::vector<Difference> differences;
    compare(contents_of(map, shard), *have, shard.name, differences);
    for (const Difference& difference : differences) settle(shard, "settled that " + difference.what);
  }
  // Its schema `kintsugi` is lost. That the DSN leads to the right database is told by what is in it.
  Status claim_again(LocalMap& local, const Shard& shard) {
    KG_TRY(std::string wrong, table_missing(local, map, shard, deadline));
    if (!wrong.empty()) wrong = "it has no table " + wrong;
    if (wrong.empty()) {
      KG_TRY(wrong, row_of_others(local, map, shard, deadline));
    }
    if (!wrong.empty()) {
      told.push_back(
          "the database of shard \"" + shard.name +
          "\" has no schema kintsugi and stays as it is, because it is not what that shard was: " + wrong);
      return {};
    }
    others.push_back({map.store_id(), shard.identity, shard.name, 0, {}, {}});
    settle(shard, "its database, which has no schema kintsugi, becomes that shard again");
    return {};
  }
};

Result<std::vector<std::string>> resolve_from_store(MapStore& store, const ShardMap& map, bool dry_run,
                                                    Deadline deadline) {
  FromStore repair{map, deadline, {}, {}, 0, false};
  for (const Shard* shard : map.shards()) KG_CHECK(repair.look_at(*shard));
  std::vector<std::string>& told = repair.told;
  if (dry_run || !repair.differ) return told;
  // Above what any of them has seen: the local map of a shard goes forward only.
  KG_TRY(const int later, commit_for_all(store, map, {}, repair.newest, repair.others, deadline));
  tell_of(later, told);
  return told;
}

Result<std::vector<std::string>> resolve_from_shards(MapStore& store, const ShardMap& map, bool dry_run,
                                                     Deadline deadline) {
  std::vector<Source> sources;
  for (const Shard* shard : map.shards()) {
    auto local = LocalMap::connect(shard->dsn, shard_deadline(deadline));
    if (!local) {
      return fail(sqlstate::kShardUnreachable, "shard \"" + shard->name + "\" cannot be reached",
                  "What the shards say together needs all of them.", local.error().message);
    }
    auto read = local->read(deadline);
    if (!read) {
      return fail(
          read.error().sqlstate, "shard \"" + shard->name + "\": " + read.error().message,
          "What the shards say together needs all of them; kintsugi recover resolve --from store makes its "
          "local map anew.");
    }
    LocalContents contents = *std::move(read);
    if (contents.identity.shard_id != shard->identity) {
      return fail("55000", "the database of shard \"" + shard->name + "\" is another shard: \"" +
                               contents.identity.shard_name + "\"");
    }
    contents.identity.shard_name = shard->name;
    sources.push_back({shard->dsn, std::move(contents)});
  }
  const std::string home = home_of(sources);
  std::vector<ShardIdentity> others;
  for (const Source& source : sources) {
    if (source.contents.identity.store_id != map.store_id()) others.push_back(source.contents.identity);
  }
  KG_TRY(Assembly made, assemble(map.store_id(), std::move(sources)));
  std::vector<std::string> told = made.told;
  KG_TRY(MapEdit edit, edit_between(map, *made.map, told));
  if (!home.empty() && map.home_shard()->name != home) {
    edit.operations.emplace_back(edit::SetHome{home});
    told.push_back("shard \"" + home + "\" is the home shard from now on");
  }
  if (dry_run || (told.empty() && edit.operations.empty())) return told;
  // What was passed over goes from the local maps too.
  KG_TRY(const int later, commit_for_all(store, map, std::move(edit), made.newest, others, deadline));
  tell_of(later, told);
  return told;
}

}  // namespace

std::string_view name_of(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::kUnreachable: return "unreachable";
    case Difference::Kind::kIdentity: return "identity";
    case Difference::Kind::kShardlet: return "shardlet";
    case Difference::Kind::kTable: return "table";
    case Difference::Kind::kRow: return "row";
  }
  return "";
}

Result<std::vector<Difference>> check(MapStore& store, bool rows, Deadline deadline) {
  KG_TRY(const StoredMap stored, store.load(deadline));
  const ShardMap& map = *stored.map;
  std::vector<Difference> found;
  for (const Shard* shard : map.shards()) {
    auto local = LocalMap::connect(shard->dsn, shard_deadline(deadline));
    if (!local) {
      found.push_back(
          {Difference::Kind::kUnreachable, shard->name, "it cannot be reached: " + local.error().message});
      continue;
    }
    const auto have = local->read(deadline);
    if (!have) {
      found.push_back({Difference::Kind::kIdentity, shard->name,
                       have.error().message + "; recover resolve --from store says what can be done"});
      continue;
    }
    if (have->identity.shard_id != shard->identity || have->identity.store_id != map.store_id()) {
      found.push_back({Difference::Kind::kIdentity, shard->name,
                       "its database is shard \"" + have->identity.shard_name + "\" (identity " +
                           have->identity.shard_id + ") of map store " + have->identity.store_id});
      continue;
    }
    compare(contents_of(map, *shard), *have, shard->name, found);
    if (rows) check_rows(*local, map, *shard, deadline, found);
  }
  return found;
}

Result<std::vector<std::string>> resolve(MapStore& store, Side right, bool dry_run, Deadline deadline) {
  KG_TRY(const StoredMap stored, store.load(deadline));
  if (right == Side::kStore) return resolve_from_store(store, *stored.map, dry_run, deadline);
  return resolve_from_shards(store, *stored.map, dry_run, deadline);
}

Result<std::vector<std::string>> rebuild(MapStore& store, const std::vector<std::string>& dsns,
                                         Deadline deadline) {
  if (dsns.empty())
    return fail(sqlstate::kInvalidParameter, "a store is rebuilt from its shards: name each DSN");
  KG_TRY(const StoredMap stored, store.load(deadline));
  if (!stored.map->shards().empty() || !stored.map->mappings().empty())
    return fail("55000", "the map store is not empty: it has " + std::to_string(stored.map->shards().size()) +
                             " shards and " + std::to_string(stored.map->mappings().size()) + " maps");
  std::vector<Source> sources;
  for (const std::string& dsn : dsns) {
    const std::string which = "database " + std::to_string(sources.size() + 1) + " of those that were named";
    auto local = LocalMap::connect(dsn, shard_deadline(deadline));
    if (!local) {
      return fail(sqlstate::kShardUnreachable, which + " cannot be reached",
                  "A store is rebuilt from all of its shards.", local.error().message);
    }
    auto read = local->read(deadline);
    if (!read) return fail(read.error().sqlstate, which + ": " + read.error().message);
    LocalContents contents = *std::move(read);
    if (!sources.empty() && sources.front().contents.identity.store_id != contents.identity.store_id) {
      return fail("55000", "shard \"" + contents.identity.shard_name + "\" is of map store " +
                               contents.identity.store_id + ", shard \"" +
                               sources.front().contents.identity.shard_name + "\" of " +
                               sources.front().contents.identity.store_id);
    }
    sources.push_back({dsn, std::move(contents)});
  }
  std::vector<ShardIdentity> all;
  for (const Source& source : sources) all.push_back(source.contents.identity);
  std::string home = home_of(sources);
  KG_TRY(Assembly made, assemble(stored.map->store_id(), std::move(sources)));
  std::vector<std::string> told = made.told;
  if (home.empty() && !all.empty()) {
    home = all.front().shard_name;
    told.push_back("none of them says that it is the home shard: shard \"" + home +
                   "\", the first, is from now on");
  }
  MapEdit edit;
  for (const Shard* shard : made.map->shards()) {
    edit.operations.emplace_back(
        edit::CreateShard{shard->name, shard->dsn, shard->identity, ShardState::kOnline});
    told.push_back("shard \"" + shard->name + "\" comes into the store");
  }
  edit.operations.emplace_back(edit::SetHome{home});
  KG_TRY(const MapPtr with_shards, apply(*stored.map, edit));
  KG_TRY(const MapEdit rest, edit_between(*with_shards, *made.map, told));
  edit.operations.insert(edit.operations.end(), rest.operations.begin(), rest.operations.end());
  // Last, because a shard that may not be given shardlets has some all the same, perhaps.
  for (const ShardIdentity& shard : all) {
    if (shard.state.value_or(ShardState::kOnline) != ShardState::kOnline)
      edit.operations.emplace_back(edit::AlterShard{shard.shard_name, {}, {}, {}, shard.state});
  }
  const std::uint64_t newest = std::max(made.newest, stored.map->epoch());
  KG_TRY(const int later, commit_for_all(store, *stored.map, std::move(edit), newest, all, deadline));
  tell_of(later, told);
  return told;
}

}  // namespace kintsugi::shardmap
