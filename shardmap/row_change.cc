#include "shardmap/row_change.h"

#include <set>

#include "shardmap/key_json.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::size_t kRowsAStatement = 200;

// The shardlets and maps that an edit names, before or after it.
struct Touched {
  std::set<std::string> shardlets;
  std::set<std::string> maps;

  void operator()(const edit::CreateShardlet& op) { shardlets.insert(op.name); }
  void operator()(const edit::DropShardlet& op) { shardlets.insert(op.name); }
  void operator()(const edit::AlterShardlet& op) {
    shardlets.insert(op.name);
    if (op.new_name) shardlets.insert(*op.new_name);
  }
  void operator()(const edit::CreateMap& op) { maps.insert(op.name); }
  void operator()(const edit::DropMap& op) { maps.insert(op.name); }
  template <class Other>
  void operator()(const Other&) {}
};

// INSERT with as many rows as fit in one statement.
class Inserts {
 public:
  Inserts(std::vector<RowChange>& out, std::string into, std::size_t columns)
      : out_(out), into_(std::move(into)), columns_(columns) {}
  ~Inserts() { flush(); }
  Inserts(const Inserts&) = delete;
  Inserts& operator=(const Inserts&) = delete;

  void row(std::vector<SqlValue> values) {
    change_.sql += change_.sql.empty() ? into_ + " VALUES (" : ", (";
    for (std::size_t i = 0; i < columns_; ++i) {
      change_.sql += (i > 0 ? ", $" : "$") + std::to_string(change_.values.size() + 1);
      change_.values.push_back(std::move(values[i]));
    }
    change_.sql += ")";
    if (change_.values.size() >= columns_ * kRowsAStatement) flush();
  }

 private:
  void flush() {
    if (!change_.sql.empty()) out_.push_back(std::exchange(change_, {}));
  }
  std::vector<RowChange>& out_;
  std::string into_;
  std::size_t columns_;
  RowChange change_;
};

void shard_rows(const ShardMap& before, const ShardMap& after, std::vector<RowChange>& out) {
  std::vector<const Shard*> fresh;
  for (const Shard* old : before.shards()) {
    const Shard* now = after.shard(old->id);
    if (now == nullptr || *now != *old) {
      out.push_back({"DELETE FROM shard WHERE id = $1", {SqlValue::integer(old->id)}});
    }
  }
  Inserts inserts(out, "INSERT INTO shard (id, name, dsn, identity, state)", 5);
  for (const Shard* now : after.shards()) {
    const Shard* old = before.shard(now->id);
    if (old != nullptr && *old == *now) continue;
    inserts.row({SqlValue::integer(now->id), SqlValue::text(now->name), SqlValue::text(now->dsn),
                 SqlValue::text(now->identity), SqlValue::text(std::string(name_of(now->state)))});
  }
}

void table_rows(const ShardMap& before, const ShardMap& after, std::vector<RowChange>& out) {
  for (const Table* old : before.tables()) {
    const Table* now = after.table(old->schema, old->name);
    if (now == nullptr || *now != *old) {
      out.push_back({"DELETE FROM placed_table WHERE schema_name = $1 AND name = $2",
                     {SqlValue::text(old->schema), SqlValue::text(old->name)}});
    }
  }
  Inserts inserts(out, "INSERT INTO placed_table (schema_name, name, kind, map, key_columns)", 5);
  for (const Table* now : after.tables()) {
    const Table* old = before.table(now->schema, now->name);
    if (old != nullptr && *old == *now) continue;
    inserts.row({SqlValue::text(now->schema), SqlValue::text(now->name),
                 SqlValue::text(std::string(name_of(now->kind))), SqlValue::text(now->map),
                 SqlValue::text(columns_json(now->key))});
  }
}

void hidden_rows(const ShardMap& before, const ShardMap& after, std::vector<RowChange>& out) {
  for (const Mapping* old : before.mappings()) {
    const Mapping* now = after.mapping(old->name());
    if (!old->hidden().empty() && (now == nullptr || now->hidden() != old->hidden())) {
      out.push_back({"DELETE FROM hidden WHERE map = $1", {SqlValue::text(old->name())}});
    }
  }
  Inserts inserts(out, "INSERT INTO hidden (map, shard, low, high, job)", 5);
  for (const Mapping* now : after.mappings()) {
    const Mapping* old = before.mapping(now->name());
    if (old != nullptr && old->hidden() == now->hidden()) continue;
    for (const HiddenRange& range : now->hidden()) {
      inserts.row({SqlValue::text(now->name()), SqlValue::integer(range.shard), SqlValue::bytes(range.low),
                   SqlValue::bytes(range.high), SqlValue::text(range.job)});
    }
  }
}

void entry_rows(const ShardMap& before, const ShardMap& after, const MapEdit& edit,
                std::vector<RowChange>& out) {
  Touched touched;
  for (const edit::Operation& op : edit.operations) std::visit(touched, op);
  for (const std::string& map : touched.maps) {
    if (before.mapping(map) == nullptr) continue;
    out.push_back({"DELETE FROM entry WHERE map = $1", {SqlValue::text(map)}});
    out.push_back({"DELETE FROM map WHERE name = $1", {SqlValue::text(map)}});
  }
  for (const std::string& name : touched.shardlets) {
    const auto old = before.shardlet(name);
    if (!old || old == after.shardlet(name)) continue;
    out.push_back({"DELETE FROM entry WHERE name = $1", {SqlValue::text(name)}});
  }
  for (const std::string& name : touched.maps) {
    const Mapping* map = after.mapping(name);
    if (map == nullptr) continue;
    out.push_back({"INSERT INTO map (name, kind, key_types) VALUES ($1, $2, $3)",
                   {SqlValue::text(name), SqlValue::text(std::string(name_of(map->kind()))),
                    SqlValue::text(key_types_json(map->key_types()))}});
  }
  Inserts inserts(out, "INSERT INTO entry (map, low, high, name, shard, state)", 6);
  for (const std::string& name : touched.shardlets) {
    const auto now = after.shardlet(name);
    if (!now) continue;
    if (!touched.maps.contains(now->map) && now == before.shardlet(name)) continue;
    const auto row = [&](std::string_view low, std::string_view high) {
      inserts.row({SqlValue::text(now->map), SqlValue::bytes(low), SqlValue::bytes(high), SqlValue::text(name),
                   SqlValue::integer(now->shard), SqlValue::integer(static_cast<std::uint64_t>(now->state))});
    };
    if (now->values.empty()) row(now->low, now->high);
    for (const std::string& value : now->values) row(value, {});
  }
}

tl::unexpected<Error> damaged(const std::string& what) {
  return fail("XX001", "the stored map is damaged: " + what);
}

}  // namespace

std::vector<RowChange> row_changes(const ShardMap& before, const ShardMap& after, const MapEdit& edit) {
  std::vector<RowChange> out;
  shard_rows(before, after, out);
  entry_rows(before, after, edit, out);
  table_rows(before, after, out);
  hidden_rows(before, after, out);
  const Shard* home = after.home_shard();
  out.push_back({"UPDATE head SET epoch = $1, home = $2, next_shard = $3",
                 {SqlValue::integer(after.epoch()), SqlValue::integer(home == nullptr ? 0 : home->id),
                  SqlValue::integer(after.next_shard())}});
  return out;
}

Status load_shard_row(ShardMapLoader& loader, ShardId id, std::string name, std::string dsn,
                      std::string identity, const std::string& state) {
  const auto known = shard_state_named(state);
  if (!known) return damaged("shard " + name + " has the unknown state " + state);
  return loader.add_shard({id, std::move(name), std::move(dsn), std::move(identity), *known});
}

Status load_map_row(ShardMapLoader& loader, std::string name, const std::string& kind,
                    const std::string& key_types) {
  const auto known = map_kind_named(kind);
  if (!known) return damaged("map " + name + " has the unknown kind " + kind);
  KG_TRY(const Json json, parse_json(key_types));
  KG_TRY(KeyTypes types, types_from_json(json));
  return loader.add_mapping(std::move(name), *known, std::move(types));
}

Status load_entry_row(ShardMapLoader& loader, std::string_view low, std::string_view high,
                      std::string_view name, ShardId shard, std::int64_t state) {
  if (state < 0 || state > static_cast<std::int64_t>(ShardletState::kHeld)) {
    return damaged("shardlet " + std::string(name) + " has an unknown state");
  }
  return loader.add_entry({low, high, name, shard, static_cast<ShardletState>(state)});
}

Status load_table_row(ShardMapLoader& loader, std::string schema, std::string name, const std::string& kind,
                      std::string map, const std::string& key_columns) {
  const auto known = table_kind_named(kind);
  if (!known) return damaged("table " + name + " has the unknown kind " + kind);
  KG_TRY(const Json json, parse_json(key_columns));
  KG_TRY(std::vector<std::string> columns, texts_from_json(json));
  return loader.add_table({std::move(schema), std::move(name), *known, std::move(map), std::move(columns)});
}

std::string key_types_json(const KeyTypes& types) {
  return types_to_json(types).dump();
}

std::string columns_json(const std::vector<std::string>& columns) {
  return to_json(columns).dump();
}

}  // namespace kintsugi::shardmap
