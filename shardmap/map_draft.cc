#include "shardmap/map_draft.h"

#include <algorithm>
#include <set>

#include "shardmap/key_payload.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::size_t kNameBytesMax = 63;

std::string quoted(std::string_view name) {
  return "\"" + std::string(name) + "\"";
}

tl::unexpected<Error> taken(std::string_view what, std::string_view name) {
  return fail(sqlstate::kDuplicateObject, std::string(what) + " " + quoted(name) + " already exists");
}
tl::unexpected<Error> missing(std::string_view what, std::string_view name) {
  return fail(sqlstate::kUndefinedObject, std::string(what) + " " + quoted(name) + " does not exist");
}

}  // namespace

MapDraft::MapDraft(const ShardMap& base) : next_(new ShardMap(base)) {
  ++next_->epoch_;
}

ChunkRegister& MapDraft::chunks() {
  if (!chunks_) {
    chunks_ = std::make_shared<ChunkRegister>(*next_->chunks_);
    next_->chunks_ = chunks_;
  }
  return *chunks_;
}

MapPtr MapDraft::finish() {
  for (auto& [name, mapping] : open_) mapping->index_.finish();
  return next_;
}

Status MapDraft::check_name(std::string_view what, std::string_view name) const {
  if (name.empty()) return fail("42602", "a " + std::string(what) + " must have a name");
  if (name.size() > kNameBytesMax) {
    std::size_t shown = kNameBytesMax;
    while (shown > 0 && (static_cast<unsigned char>(name[shown]) & 0xc0) == 0x80) --shown;  // whole characters
    return fail("42622", "the name \"" + std::string(name.substr(0, shown)) + "...\" is longer than " +
                             std::to_string(kNameBytesMax) + " bytes");
  }
  if (name.find('\0') != std::string_view::npos) return fail("42602", "a name cannot hold a zero byte");
  if (!is_utf8(name)) return fail("42602", "the name of a " + std::string(what) + " is not valid UTF-8");
  return {};
}

Result<const Shard*> MapDraft::need_shard(std::string_view name) const {
  const Shard* shard = next_->shard_named(name);
  if (shard == nullptr) return missing("shard", name);
  return shard;
}

Result<const Shard*> MapDraft::need_receiving_shard(std::string_view name) const {
  KG_TRY(const Shard* shard, need_shard(name));
  if (shard->state != ShardState::kOnline) {
    return fail("55000", "shard " + quoted(name) + " is " + std::string(name_of(shard->state)) +
                             " and cannot be given shardlets");
  }
  return shard;
}

Result<Shardlet> MapDraft::need_shardlet(std::string_view name) const {
  auto shardlet = next_->shardlet(name);
  if (!shardlet) return missing("shardlet", name);
  return *std::move(shardlet);
}

Status MapDraft::check_free_shardlet_name(std::string_view name) const {
  KG_CHECK(check_name("shardlet", name));
  const auto other = next_->shardlet(name);
  if (!other) return {};
  return fail(sqlstate::kDuplicateObject,
              "shardlet " + quoted(name) + " already exists in map " + quoted(other->map));
}

Result<Mapping*> MapDraft::open_mapping(std::string_view name) {
  if (const auto at = open_.find(std::string(name)); at != open_.end()) return at->second.get();
  for (auto& mapping : next_->mappings_) {
    if (mapping->name() != name) continue;
    auto copy = std::make_shared<Mapping>(*mapping);
    mapping = copy;
    return open_.emplace(name, std::move(copy)).first->second.get();
  }
  return missing("shard map", name);
}

Status MapDraft::apply(const edit::CreateShard& op) {
  KG_CHECK(check_name("shard", op.name));
  if (op.dsn.empty()) return fail(sqlstate::kInvalidParameter, "shard " + quoted(op.name) + " has no DSN");
  if (next_->shard_named(op.name) != nullptr) return taken("shard", op.name);
  for (const auto& other : next_->shards_) {
    if (!op.identity.empty() && other->identity == op.identity) {
      return fail(sqlstate::kDuplicateObject,
                  "that database is already in the map as shard " + quoted(other->name));
    }
  }
  if (next_->next_shard_ > kShardIdMax)
    return fail(sqlstate::kProgramLimitExceeded, "too many shards were made");
  const Shard shard{next_->next_shard_++, op.name, op.dsn, op.identity, op.state};
  if (next_->home_ == 0) next_->home_ = shard.id;
  next_->shards_.push_back(std::make_shared<const Shard>(shard));
  return {};
}

Status MapDraft::apply(const edit::AlterShard& op) {
  KG_TRY(const Shard* old, need_shard(op.name));
  Shard shard = *old;
  if (op.new_name && *op.new_name != op.name) {
    KG_CHECK(check_name("shard", *op.new_name));
    if (next_->shard_named(*op.new_name) != nullptr) return taken("shard", *op.new_name);
    shard.name = *op.new_name;
  }
  if (op.dsn) {
    if (op.dsn->empty())
      return fail(sqlstate::kInvalidParameter, "shard " + quoted(op.name) + " must have a DSN");
    shard.dsn = *op.dsn;
  }
  if (op.identity) {
    for (const auto& other : next_->shards_) {
      if (!op.identity->empty() && other->identity == *op.identity && other->id != shard.id) {
        return fail(sqlstate::kDuplicateObject,
                    "that database is already in the map as shard " + quoted(other->name));
      }
    }
    shard.identity = *op.identity;
  }
  if (op.state) shard.state = *op.state;
  for (auto& place : next_->shards_) {
    if (place->id == shard.id) place = std::make_shared<const Shard>(shard);
  }
  return {};
}

Status MapDraft::apply(const edit::DropShard& op) {
  KG_TRY(const Shard* shard, need_shard(op.name));
  const ShardId id = shard->id;
  for (const auto& mapping : next_->mappings_) {
    for (const auto& [used, entries] : mapping->shards()) {
      if (used == id) {
        return fail("2BP01",
                    "shard " + quoted(op.name) + " still has shardlets of map " + quoted(mapping->name()),
                    "DRAIN SHARD moves them to the others.");
      }
    }
    for (const HiddenRange& hidden : mapping->hidden()) {
      if (hidden.shard == id) {
        return fail("2BP01", "job " + hidden.job + " still works on shard " + quoted(op.name));
      }
    }
  }
  if (next_->home_ == id) {
    const bool used = std::any_of(next_->tables_.begin(), next_->tables_.end(),
                                  [](const auto& table) { return table->kind == TableKind::kHome; });
    if (used) return fail("2BP01", "shard " + quoted(op.name) + " is the home of tables");
    if (next_->shards_.size() > 1) {
      return fail("2BP01", "shard " + quoted(op.name) + " is the home shard",
                  "It has the tables that are neither sharded nor replicated, and cannot be removed.");
    }
    next_->home_ = 0;
  }
  std::erase_if(next_->shards_, [id](const auto& other) { return other->id == id; });
  return {};
}

Status MapDraft::apply(const edit::SetHome& op) {
  KG_TRY(const Shard* shard, need_receiving_shard(op.shard));
  next_->home_ = shard->id;
  return {};
}

Status MapDraft::apply(const edit::CreateMap& op) {
  KG_CHECK(check_name("shard map", op.name));
  if (next_->mapping(op.name) != nullptr) return taken("shard map", op.name);
  if (op.key_types.empty())
    return fail(sqlstate::kInvalidParameter, "shard map " + quoted(op.name) + " has no key");
  if (op.key_types.size() > kKeyColumnsMax) {
    return fail(sqlstate::kProgramLimitExceeded,
                "a sharding key has at most " + std::to_string(kKeyColumnsMax) + " columns");
  }
  const bool boolean =
      std::find(op.key_types.begin(), op.key_types.end(), KeyType::kBoolean) != op.key_types.end();
  if (boolean && op.kind != MapKind::kList) {
    return fail(sqlstate::kNotSupported, "boolean can be in the key of a LIST map only");
  }
  auto mapping = std::make_shared<Mapping>();
  mapping->placed_ = next_->epoch_;
  mapping->name_ = op.name;
  mapping->kind_ = op.kind;
  mapping->key_types_ = op.key_types;
  const auto place =
      std::lower_bound(next_->mappings_.begin(), next_->mappings_.end(), op.name,
                       [](const auto& other, const std::string& name) { return other->name() < name; });
  next_->mappings_.insert(place, mapping);
  open_[op.name] = std::move(mapping);
  return {};
}

Status MapDraft::apply(const edit::DropMap& op) {
  const Mapping* mapping = next_->mapping(op.name);
  if (mapping == nullptr) return missing("shard map", op.name);
  for (const auto& table : next_->tables_) {
    if (table->kind == TableKind::kSharded && table->map == op.name) {
      return fail("2BP01", "table " + table->display() + " is sharded by map " + quoted(op.name));
    }
  }
  chunks().names.erase_chunks(
      [mapping](std::uint32_t chunk) { return mapping->index_.chunk_with_id(chunk) != nullptr; });
  open_.erase(op.name);
  std::erase_if(next_->mappings_, [&op](const auto& other) { return other->name() == op.name; });
  return {};
}

Status MapDraft::apply(const edit::CreateShardlet& op) {
  KG_CHECK(check_free_shardlet_name(op.name));
  KG_TRY(const Shard* shard, need_receiving_shard(op.shard));
  KG_TRY(Mapping * mapping, open_mapping(op.map));
  const bool list = mapping->kind() == MapKind::kList;
  if (list && (!op.low.empty() || !op.high.empty())) {
    return fail("42P17", "map " + quoted(op.map) + " is by LIST: a shardlet of it has values, not a range");
  }
  if (!list && !op.values.empty()) {
    return fail("42P17", "map " + quoted(op.map) + " is by " +
                             (mapping->kind() == MapKind::kHash ? "HASH" : "RANGE") +
                             ": a shardlet of it has a range, not values");
  }
  KG_CHECK(list ? create_list(op, *mapping, shard->id) : create_range(op, *mapping, shard->id));
  ++mapping->shardlets_;
  return {};
}

Status MapDraft::create_range(const edit::CreateShardlet& op, Mapping& mapping, ShardId shard) {
  const KeyTypes& types = mapping.bound_types();
  KG_TRY(const std::string low, encode_bound(types, op.low));
  KG_TRY(const std::string high, encode_bound(types, op.high));
  if (low >= high) {
    return fail("42P17", "shardlet " + quoted(op.name) + " would have no keys: its range goes from " +
                             describe_key(types, low) + " to " + describe_key(types, high));
  }
  const auto in_the_way = [&](const ShardletView& other) {
    return fail("42P17", "shardlet " + quoted(op.name) + " would overlap shardlet " + quoted(other.name()) +
                             ", from " + describe_key(types, other.low()) + " to " +
                             describe_key(types, other.high()));
  };
  if (const auto before = mapping.index_.slow_floor(low); before && before->high() > low)
    return in_the_way(*before);
  if (const auto after = mapping.index_.slow_after(low); after && after->low() < high)
    return in_the_way(*after);
  mapping.index_.insert({low, high, op.name, shard, op.state}, chunks());
  mapping.count_entries(shard, op.state, 1);
  return {};
}

Status MapDraft::create_list(const edit::CreateShardlet& op, Mapping& mapping, ShardId shard) {
  const KeyTypes& types = mapping.key_types();
  if (op.values.empty()) return fail("42P17", "shardlet " + quoted(op.name) + " has no values");
  std::set<std::string> values;
  for (const auto& texts : op.values) {
    KG_TRY(std::string value, encode_key(types, texts));
    if (const auto other = mapping.index_.slow_floor(value); other && other->low() == value) {
      return fail("42P17", "shardlet " + quoted(op.name) + " would overlap shardlet " + quoted(other->name()) +
                               " at " + describe_key(types, value));
    }
    if (!values.insert(value).second) {
      return fail("42P17", "shardlet " + quoted(op.name) + " names " + describe_key(types, value) + " twice");
    }
  }
  for (const std::string& value : values)
    mapping.index_.insert({value, {}, op.name, shard, op.state}, chunks());
  mapping.count_entries(shard, op.state, static_cast<std::ptrdiff_t>(values.size()));
  return {};
}

void MapDraft::erase_entries(const Shardlet& shardlet, Mapping& mapping) {
  if (mapping.kind() != MapKind::kList) {
    mapping.index_.erase(shardlet.low, chunks());
    mapping.count_entries(shardlet.shard, shardlet.state, -1);
    return;
  }
  for (const std::string& value : shardlet.values) mapping.index_.erase(value, chunks());
  mapping.count_entries(shardlet.shard, shardlet.state, -static_cast<std::ptrdiff_t>(shardlet.values.size()));
}

Status MapDraft::apply(const edit::DropShardlet& op) {
  KG_TRY(const Shardlet shardlet, need_shardlet(op.name));
  KG_TRY(Mapping * mapping, open_mapping(shardlet.map));
  erase_entries(shardlet, *mapping);
  --mapping->shardlets_;
  return {};
}

Status MapDraft::apply(const edit::AlterShardlet& op) {
  KG_TRY(const Shardlet shardlet, need_shardlet(op.name));
  const bool renamed = op.new_name && *op.new_name != op.name;
  if (renamed) KG_CHECK(check_free_shardlet_name(*op.new_name));
  if (renamed && shardlet.state == ShardletState::kHeld) {
    return fail(sqlstate::kObjectInUse,
                "shardlet " + quoted(op.name) + " is being handed over to another shard",
                "Try again in a moment.");
  }
  ShardId shard = shardlet.shard;
  if (op.shard) {
    const Shard* now = next_->shard(shard);
    if (now == nullptr || now->name != *op.shard) {
      KG_TRY(const Shard* target, need_receiving_shard(*op.shard));
      shard = target->id;
    }
  }
  KG_TRY(Mapping * mapping, open_mapping(shardlet.map));
  Entry entry{shardlet.low, shardlet.high, renamed ? *op.new_name : shardlet.name, shard,
              op.state.value_or(shardlet.state)};
  std::ptrdiff_t entries = 1;
  if (mapping->kind() != MapKind::kList) {
    mapping->index_.replace(entry, chunks());
  } else {
    entries = static_cast<std::ptrdiff_t>(shardlet.values.size());
    for (const std::string& value : shardlet.values) {
      entry.low = value;
      mapping->index_.replace(entry, chunks());
    }
  }
  mapping->count_entries(shardlet.shard, shardlet.state, -entries);
  mapping->count_entries(shard, entry.state, entries);
  if (shard != shardlet.shard) mapping->placed_ = next_->epoch_;
  return {};
}

Status MapDraft::apply(const edit::PutTable& op) {
  KG_CHECK(check_name("schema", op.table.schema));
  KG_CHECK(check_name("table", op.table.name));
  const std::string display = op.table.display();
  if (op.table.kind == TableKind::kSharded) {
    const Mapping* mapping = next_->mapping(op.table.map);
    if (mapping == nullptr) return missing("shard map", op.table.map);
    if (op.table.key.size() != mapping->key_types().size()) {
      return fail(sqlstate::kInvalidParameter,
                  "table " + display + " names " + std::to_string(op.table.key.size()) +
                      " key columns, but map " + quoted(op.table.map) + " has a key of " +
                      std::to_string(mapping->key_types().size()) + ": (" + list_of(mapping->key_types()) +
                      ")");
    }
    std::set<std::string_view> columns;
    for (const std::string& column : op.table.key) {
      KG_CHECK(check_name("key column", column));
      if (!columns.insert(column).second) {
        return fail("42701", "table " + display + " names key column " + quoted(column) + " twice");
      }
    }
  } else if (!op.table.map.empty() || !op.table.key.empty()) {
    return fail(sqlstate::kInvalidParameter, "table " + display + " is " + std::string(name_of(op.table.kind)) +
                                                 " and cannot have a map or key columns");
  } else if (op.table.kind == TableKind::kHome && next_->home_ == 0) {
    return fail("55000", "there is no shard yet that could be the home of table " + display);
  }
  auto& tables = next_->tables_;
  const auto at =
      std::lower_bound(tables.begin(), tables.end(), op.table, [](const auto& other, const Table& wanted) {
        return std::tie(other->schema, other->name) < std::tie(wanted.schema, wanted.name);
      });
  auto table = std::make_shared<const Table>(op.table);
  if (at != tables.end() && (*at)->schema == op.table.schema && (*at)->name == op.table.name) {
    *at = std::move(table);
  } else {
    tables.insert(at, std::move(table));
  }
  return {};
}

Status MapDraft::apply(const edit::DropTable& op) {
  if (next_->table(op.schema, op.name) == nullptr) return missing("table", op.schema + "." + op.name);
  std::erase_if(next_->tables_,
                [&op](const auto& table) { return table->schema == op.schema && table->name == op.name; });
  return {};
}

Status MapDraft::apply(const edit::HideRange& op) {
  KG_TRY(const Shardlet shardlet, need_shardlet(op.shardlet));
  KG_TRY(const Shard* shard, need_shard(op.shard));
  if (op.job.empty()) return fail(sqlstate::kInvalidParameter, "a hidden range belongs to a job");
  KG_TRY(Mapping * mapping, open_mapping(shardlet.map));
  std::vector<HiddenRange> ranges;
  if (mapping->kind() == MapKind::kList) {
    for (const std::string& value : shardlet.values) ranges.push_back({shard->id, value, {}, op.job});
  } else {
    ranges.push_back({shard->id, shardlet.low, shardlet.high, op.job});
  }
  for (HiddenRange& range : ranges) {
    if (std::find(mapping->hidden_.begin(), mapping->hidden_.end(), range) == mapping->hidden_.end()) {
      mapping->hidden_.push_back(std::move(range));
    }
  }
  return {};
}

Status MapDraft::apply(const edit::RevealRanges& op) {
  for (const Mapping* mapping : next_->mappings()) {
    const bool mine = std::any_of(mapping->hidden().begin(), mapping->hidden().end(),
                                  [&op](const HiddenRange& range) { return range.job == op.job; });
    if (!mine) continue;
    KG_TRY(Mapping * open, open_mapping(mapping->name()));
    std::erase_if(open->hidden_, [&op](const HiddenRange& range) { return range.job == op.job; });
    open->placed_ = next_->epoch_;
  }
  return {};
}

Status MapDraft::apply(const edit::RaiseEpoch& op) {
  if (op.at_least > static_cast<std::uint64_t>(INT64_MAX)) return fail("22003", "an epoch cannot be so high");
  next_->epoch_ = std::max(next_->epoch_, op.at_least);
  return {};
}

Result<MapPtr> apply(const ShardMap& map, const MapEdit& edit) {
  MapDraft draft(map);
  for (const edit::Operation& operation : edit.operations) {
    KG_CHECK(std::visit([&draft](const auto& op) { return draft.apply(op); }, operation));
  }
  return draft.finish();
}

Result<edit::CreateShardlet> creation_of(const ShardMap& map, std::string_view name) {
  const auto shardlet = map.shardlet(name);
  if (!shardlet) return missing("shardlet", name);
  const Mapping* mapping = map.mapping(shardlet->map);
  const Shard* shard = map.shard(shardlet->shard);
  edit::CreateShardlet op{shardlet->map, shardlet->name, {}, {}, {}, shard->name, shardlet->state};
  if (mapping->kind() == MapKind::kList) {
    for (const std::string& value : shardlet->values) {
      KG_TRY(const Bound columns, decode_bound(mapping->key_types(), value));
      std::vector<std::string>& texts = op.values.emplace_back();
      for (const BoundColumn& column : columns) texts.push_back(column.text);
    }
    return op;
  }
  KG_TRY(op.low, decode_bound(mapping->bound_types(), shardlet->low));
  KG_TRY(op.high, decode_bound(mapping->bound_types(), shardlet->high));
  return op;
}

}  // namespace kintsugi::shardmap
