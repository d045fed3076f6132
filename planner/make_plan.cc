#include <algorithm>

#include "planner/analysis_parts.h"
#include "planner/make_insert.h"
#include "planner/work_out.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::planner {
namespace {

using shardmap::Mapping;
using shardmap::ShardId;
using shardmap::ShardletState;
using shardmap::ShardletView;
using shardmap::ShardMap;

// What stands in the way of a statement at this shardlet; none: nothing. Reads go on while it is handed over.
std::optional<Result<Plan>> obstacle(ShardletState state, std::string_view shardlet, bool writes,
                                     bool past_holds) {
  switch (state) {
    case ShardletState::kOnline: return std::nullopt;
    case ShardletState::kReadOnly:
      if (!writes) return std::nullopt;
      return fail(sqlstate::kShardletClosed, "shardlet " + std::string(shardlet) + " is read only",
                  "ALTER SHARDLET " + std::string(shardlet) + " SET ONLINE lets statements write to it again.");
    case ShardletState::kOffline:
      return fail(sqlstate::kShardletClosed, "shardlet " + std::string(shardlet) + " is offline",
                  "ALTER SHARDLET " + std::string(shardlet) + " SET ONLINE opens it again.");
    case ShardletState::kHeld:
      if (!writes || past_holds) return std::nullopt;
      return Plan(Hold{std::string(shardlet)});
  }
  return std::nullopt;
}

Error no_shardlet(const Mapping& mapping, std::string_view key) {
  return {.sqlstate = std::string(sqlstate::kNoShardlet),
          .message = "no shardlet of map " + mapping.name() + " has the key " +
                     shardmap::describe_key(mapping.key_types(), key),
          .hint = "CREATE SHARDLET makes one for it; SHOW SHARDLETS OF " + mapping.name() +
                  " lists those that are there."};
}

constexpr std::string_view kNoValue = "22P02";  // as InsertRows::key_of says it

Error no_shards() {
  return {.sqlstate = std::string(sqlstate::kCannotConnectNow),
          .message = "there is no shard",
          .hint = "CREATE SHARD name DSN '...' makes the first."};
}

class Planner {
 public:
  Planner(const Analysis& analysis, const Values& values, const ShardMap& map)
      : analysis_(analysis), values_(values), map_(map) {}

  Result<Plan> plan() {
    if (analysis_.fixed) return analysis_.fixed->plan;
    if (analysis_.work_out)
      return work_out_write(*analysis_.work_out, {analysis_.units, values_, map_, home_or_any(), 0});
    if (analysis_.pour) return worked_out_first() ? times() : poured(*analysis_.pour);
    if (analysis_.insert) return insert();
    if (analysis_.tables.empty()) return without_keys();
    if (analysis_.point && !analysis_.home && analysis_.key_updates.empty()) {
      if (auto done = point()) return std::move(*done);
    }
    return by_keys();
  }

 private:
  Result<Plan> without_keys() {
    if (const auto* refused = std::get_if<Error>(&analysis_.several); refused != nullptr) return fail(*refused);
    if (const auto* parts = std::get_if<ReadFirstTemplate>(&analysis_.several))
      return worked_out_first() ? times() : read_first(*parts);
    if (analysis_.anywhere) return Plan(Route{0, {}, analysis_.writes, {}});
    const shardmap::Shard* home = map_.home_shard();
    if (home == nullptr) return Plan(Route{0, {}, analysis_.writes, {}});
    return Plan(Route{home->id, {}, analysis_.writes, {}});
  }

  // One key for all tables. Allocates nothing; none when it is not so simple after all.
  std::optional<Result<Plan>> point() {
    const Mapping* mapping = map_.mapping(analysis_.point->map);
    if (mapping == nullptr) return std::nullopt;
    thread_local std::string key;
    key.clear();
    const auto& types = mapping->key_types();
    for (std::size_t i = 0; i < types.size(); ++i)
      if (append_source(analysis_.point->sources[i], types[i], KeyUse::kCompare, values_, analysis_.constants,
                        key) != KeyOutcome::kValue)
        return std::nullopt;
    const auto entry = mapping->find(key);
    if (!entry) return fail(no_shardlet(*mapping, key));
    if (entry->state() != ShardletState::kOnline)
      if (auto stop =
              obstacle(entry->state(), entry->name(), analysis_.read_write_shardlets, values_.past_holds))
        return stop;
    return Plan(Route{entry->shard(), {}, analysis_.writes, entry->name()});
  }

  Result<Plan> by_keys() {
    bool only_points = true;
    auto stop = touch_tables(only_points);
    // What stands in the way may be where the statement has nothing to do.
    if (all_.shards.size() > 1 && analysis_.folds && !values_.explains)
      return work_out_write(*analysis_.folds, {analysis_.units, values_, map_, 0, 0});
    if (stop) return std::move(*stop);
    if (map_.home_shard() == nullptr) return fail(no_shards());
    const ShardId home = map_.home_shard()->id;
    // No row is needed: any shard answers, and the home shard has all tables.
    if (all_.shards.empty()) return Plan(Route{home, {}, analysis_.writes, {}});
    const bool one = all_.shards.size() == 1 && (!analysis_.home || all_.shards.front() == home);
    if (one) return route(all_.shards.front(), only_points);
    if (const auto* refused = std::get_if<Error>(&analysis_.several)) return fail(*refused);
    if (worked_out_first()) return times();
    if (const auto* fan_out = std::get_if<FanOutTemplate>(&analysis_.several)) return several(*fan_out);
    if (const auto* pour = std::get_if<PourTemplate>(&analysis_.several)) return poured(*pour);
    if (const auto* gather = std::get_if<GatherTemplate>(&analysis_.several)) return gathered(*gather);
    if (const auto* parts = std::get_if<ReadFirstTemplate>(&analysis_.several)) return read_first(*parts);
    return fail(sqlstate::kNotSupported, "this statement over several shards is not supported",
                "Say with = which sharding key it is for.");
  }

  // Several shards would each have a now() of their own.
  [[nodiscard]] bool worked_out_first() const { return analysis_.times && !values_.explains; }
  Result<Plan> times() { return work_out_write(*analysis_.times, {analysis_.units, values_, map_, 0, 0}); }

  Result<Plan> poured(const PourTemplate& pour) {
    const RenderContext context{analysis_.units, values_, map_, 0, 0};
    Pour made;
    KG_TRY(made.source, render(pour.source, context));
    KG_TRY(made.head, render(pour.head, context));
    KG_TRY(made.tail, render(pour.tail, context));
    made.untyped = pour.untyped;
    made.at_once = pour.at_once;
    // Tables of the home shard are unknown on the others.
    if (analysis_.home && map_.home_shard() != nullptr) made.where = map_.home_shard()->id;
    return Plan(std::move(made));
  }

  Result<Plan> read_first(const ReadFirstTemplate& parts) {
    const RenderContext context{analysis_.units, values_, map_, 0, 0};
    ReadFirst made;
    for (const ReadFirstTemplate::Read& read : parts.reads) {
      KG_TRY(std::string query, render(read.query, context));
      made.reads.push_back({std::move(query), read.form, read.before, read.after, read.writes});
    }
    for (const TextTemplate& part : parts.parts) {
      KG_TRY(std::string text, render(part, context));
      made.parts.push_back(std::move(text));
    }
    if (analysis_.home && map_.home_shard() != nullptr) made.where = map_.home_shard()->id;
    made.alone = parts.alone;
    return Plan(std::move(made));
  }

  // What the tables' keys touch; a plan or error that ends it all.
  std::optional<Result<Plan>> touch_tables(bool& only_points) {
    for (std::size_t i = 0; i < analysis_.tables.size(); ++i) {
      const TouchedTable& table = analysis_.tables[i];
      const Mapping* mapping = map_.mapping(table.map);
      if (mapping == nullptr)
        return Result<Plan>(fail(sqlstate::kUndefinedObject,
                                 "the map " + table.map + " of table " + table.display + " is gone"));
      const KeySet keys = evaluate(table.condition, {mapping->key_types(), values_, analysis_.constants});
      if (Status fine = check_key_updates(i, *mapping, keys); !fine) return Result<Plan>(fail(fine.error()));
      if (table.stored)
        if (Status fine = check_stored(table, *mapping); !fine) return Result<Plan>(fail(fine.error()));
      only_points &= !keys.all && std::all_of(keys.ranges.begin(), keys.ranges.end(),
                                              [](const KeyRange& range) { return range.point; });
      Touched& touched = touched_.emplace_back();
      touch(keys, *mapping, touched);
      if (touched.entries == 0 && !keys.all && keys.ranges.size() == 1 && keys.ranges[0].point)
        return Result<Plan>(fail(no_shardlet(*mapping, keys.ranges[0].low)));
      for (const ShardId shard : touched.shards) all_.add(shard);
      if (touched.entries > 0) {
        if (all_.entries == 0)
          all_.shardlet = touched.shardlet;
        else if (all_.shardlet != touched.shardlet)
          all_.shardlet = {};
        all_.entries += touched.entries;
      }
      if (!touched.offline.empty()) all_.offline = touched.offline;
      if (!touched.read_only.empty()) all_.read_only = touched.read_only;
      if (!touched.held.empty()) all_.held = touched.held;
    }
    for (const auto& [state, name] :
         {std::pair(ShardletState::kOffline, all_.offline), std::pair(ShardletState::kHeld, all_.held),
          std::pair(ShardletState::kReadOnly, all_.read_only)})
      if (!name.empty())
        if (auto stop = obstacle(state, name, analysis_.read_write_shardlets, values_.past_holds)) return stop;
    return std::nullopt;
  }

  // INSERT ... SELECT with one key for all its rows.
  Status check_stored(const TouchedTable& table, const Mapping& mapping) const {
    std::vector<const KeyCondition*> leaves;
    if (table.condition.op == KeyCondition::Op::kAnd)
      for (const KeyCondition& child : table.condition.children) leaves.push_back(&child);
    else
      leaves.push_back(&table.condition);
    for (const KeyCondition* leaf : leaves) {
      std::string key;
      const KeyOutcome outcome = append_source(leaf->source, mapping.key_types()[leaf->column], KeyUse::kStore,
                                               values_, analysis_.constants, key);
      if (outcome == KeyOutcome::kValue) continue;
      if (outcome == KeyOutcome::kNull)
        return fail(sqlstate::kKeyMissing, "the sharding key is NULL in this INSERT into " + table.display,
                    "Every row of a sharded table needs its key.");
      return fail(sqlstate::kNotSupported,
                  "the sharding key of table " + table.display + " is worked out in this INSERT",
                  "Give it as a literal or a parameter of the key's type.");
    }
    return {};
  }

  // A key may be set to what it is already: then its row stays where it is.
  Status check_key_updates(std::size_t table, const Mapping& mapping, const KeySet& keys) const {
    std::optional<std::string> changed;
    std::string key;
    bool inserted = false;
    for (const Analysis::KeyUpdate& update : analysis_.key_updates) {
      if (update.table != table) continue;
      if (!keys.all && keys.ranges.empty()) continue;
      if (!update.value || mapping.key_types().size() != 1) {
        changed = update.name;
        inserted |= update.inserted;
        continue;
      }
      key.clear();
      const KeyOutcome outcome = append_source(*update.value, mapping.key_types()[update.column],
                                               KeyUse::kStore, values_, analysis_.constants, key);
      if (outcome == KeyOutcome::kNull)
        return fail(sqlstate::kKeyMissing, "the sharding key " + update.name + " cannot be NULL",
                    "Every row of a sharded table needs its key.");
      if (outcome != KeyOutcome::kValue || keys.all || keys.ranges.size() != 1 || !keys.ranges[0].point ||
          keys.ranges[0].low != key) {
        changed = update.name;
        inserted |= update.inserted;
      }
    }
    if (!changed) return {};
    if (inserted)
      return fail(
          sqlstate::kNotSupported, "MERGE that inserts another sharding key than ON names with =",
          "Give the key as the same literal or parameter in ON and in VALUES, or use INSERT ... ON CONFLICT.");
    return fail(sqlstate::kNotSupported, "UPDATE of the sharding key " + *changed,
                "DELETE the row and INSERT it with its new key, in one transaction.");
  }

  Result<Plan> route(ShardId shard, bool only_points) {
    Route made{shard, {}, analysis_.writes, all_.shardlet};
    if (!only_points && hides(analysis_.owned, map_, shard)) {
      if (!analysis_.unhideable.empty()) return fail(moving(analysis_.unhideable));
      KG_TRY(made.text, text_for(analysis_.own, shard, 0));
    }
    return Plan(std::move(made));
  }

  static Error moving(const std::string& why) {
    return {
        .sqlstate = std::string(sqlstate::kNotSupported),
        .message = "not while a shardlet moves: " + why,
        .hint = "Run it again when the move is done (SHOW JOBS), or say with = which sharding key it is for."};
  }

  Result<std::string> text_for(const TextTemplate& text, ShardId shard, std::uint64_t limit) {
    KG_TRY(std::string made, render(text, {analysis_.units, values_, map_, shard, limit}));
    const TextTemplate whole{Piece{.kind = Piece::Kind::kOwn, .range = analysis_.whole}};
    KG_TRY(const std::string own, render(whole, {analysis_.units, values_, map_, shard, limit}));
    if (made == own) made.clear();
    return made;
  }

  // Adds LIMIT and OFFSET to the merge; what each shard is asked for at most.
  Result<std::uint64_t> take_limits(const Limits& limits, Merge& merge) {
    std::uint64_t limit = 0;
    bool limited = false;
    if (limits.limit_one) {
      limited = true;
      limit = 1;
    } else if (limits.limit) {
      const CountValue value = count_of(*limits.limit, values_, analysis_.constants);
      if (!value.count && !value.null) return fail(not_a_count("LIMIT"));
      limited = value.count.has_value();
      limit = value.count.value_or(0);
    }
    if (limits.offset) {
      const CountValue value = count_of(*limits.offset, values_, analysis_.constants);
      if (!value.count && !value.null) return fail(not_a_count("OFFSET"));
      merge.offset = value.count.value_or(0);
    }
    if (!limited) return std::numeric_limits<std::int64_t>::max();
    merge.limit = limit;
    std::uint64_t sum = limit + merge.offset;
    if (sum > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      sum = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return sum;
  }
  static Error not_a_count(std::string_view what) {
    return {.sqlstate = std::string(sqlstate::kNotSupported),
            .message = std::string(what) + " over several shards must be a number that is not negative",
            .hint = "Write it as a plain number or a bigint parameter."};
  }

  // Whatever shard gets it says so, in PostgreSQL's words.
  [[nodiscard]] bool is_negative(const Limits& limits) const {
    return (limits.limit && count_of(*limits.limit, values_, analysis_.constants).negative) ||
           (limits.offset && count_of(*limits.offset, values_, analysis_.constants).negative);
  }

  Result<Plan> several(const FanOutTemplate& fan_out) {
    if (is_negative(fan_out.limits)) return Plan(Route{all_.shards.front(), {}, fan_out.writes, {}});
    FanOut made;
    made.merge = fan_out.merge;
    made.writes = fan_out.writes;
    KG_TRY(const std::uint64_t limit, take_limits(fan_out.limits, made.merge));
    for (const ShardId shard : all_.shards) {
      ShardTask task{shard, {}};
      // Points too: of two keys one may live here and the other's rows be hidden here.
      const bool hidden = hides(analysis_.owned, map_, shard);
      if (hidden && !analysis_.unhideable.empty()) return fail(moving(analysis_.unhideable));
      if (fan_out.text) {
        KG_TRY(task.text, text_for(*fan_out.text, shard, limit));
      } else if (hidden) {
        KG_TRY(task.text, text_for(analysis_.own, shard, limit));
      }
      made.tasks.push_back(std::move(task));
    }
    if (fan_out.copy) return Plan(CopyOut{std::move(made.tasks), fan_out.copy->header, fan_out.copy->binary});
    return Plan(std::move(made));
  }

  Result<Plan> gathered(const GatherTemplate& gather) {
    if (!analysis_.unhideable.empty())
      for (const ShardId shard : all_.shards)
        if (hides(analysis_.owned, map_, shard)) return fail(moving(analysis_.unhideable));
    const ShardId home = map_.home_shard()->id;
    Gather made;
    made.tier = gather.tier;
    made.writes = gather.writes;
    made.cursor = gather.cursor;
    made.hold = gather.hold;
    made.copy_out = gather.copy_out;
    // The home shard when its tables are read, else a shard that has rows anyway.
    made.finisher = gather.needs_home ? home : all_.shards.front();
    for (const GatheredTemplate& relation : gather.relations) {
      GatheredRelation& out = made.relations.emplace_back(relation.relation);
      Touched where;
      for (const std::size_t table : relation.tables)
        for (const ShardId shard : touched_[table].shards) where.add(shard);
      if (relation.home) where.add(home);
      for (const ShardId shard : where.shards) {
        ShardTask task{shard, {}};
        KG_TRY(task.text, render(relation.text, {analysis_.units, values_, map_, shard, 0}));
        out.tasks.push_back(std::move(task));
      }
    }
    KG_TRY(made.text, render(gather.text, {analysis_.units, values_, map_, made.finisher, 0}));
    return Plan(std::move(made));
  }

  [[nodiscard]] ShardId home_or_any() const { return map_.home_shard() == nullptr ? 0 : map_.home_shard()->id; }

  Result<Plan> insert();

  const Analysis& analysis_;
  const Values& values_;
  const ShardMap& map_;
  std::vector<Touched> touched_;  // as analysis_.tables
  Touched all_;
};

Result<Plan> Planner::insert() {
  const InsertTemplate& insert = *analysis_.insert;
  const InsertRows rows(insert, values_, analysis_.units);
  if (insert.key_read_first) return read_first(*insert.read_first);
  if (insert.work_out) {
    // Sequences of replicated tables are those of the home shard.
    const ShardId where = insert.map.empty() ? home_or_any() : 0;
    return work_out_insert(*insert.work_out, rows, insert, {analysis_.units, values_, map_, where, 0});
  }
  const Mapping* mapping = map_.mapping(insert.map);
  if (mapping == nullptr)
    return fail(sqlstate::kUndefinedObject,
                "the map " + insert.map + " of table " + insert.display + " is gone");
  thread_local std::string key;
  std::vector<ShardId> shard_of_row;
  ShardId first = 0;
  std::string_view shardlet;
  bool same = true;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    key.clear();
    if (Status known = rows.key_of(row, mapping->key_types(), analysis_.constants, key); !known) {
      // PostgreSQL knows what it is, or the words for what is wrong with it.
      const std::string& state = known.error().sqlstate;
      if (!insert.unsure || values_.explains || (state != sqlstate::kNotSupported && state != kNoValue))
        return fail(std::move(known).error());
      return work_out_insert(*insert.unsure, rows, insert, {analysis_.units, values_, map_, 0, 0});
    }
    const auto entry = mapping->find(key);
    if (!entry) return fail(no_shardlet(*mapping, key));
    if (entry->state() != ShardletState::kOnline)
      if (auto stop = obstacle(entry->state(), entry->name(), true, values_.past_holds))
        return std::move(*stop);
    if (row == 0) {
      first = entry->shard();
      shardlet = entry->name();
    }
    if (shardlet != entry->name()) shardlet = {};
    if (rows.size() > 1) shard_of_row.push_back(entry->shard());
    same &= entry->shard() == first;
  }
  bool only_points = true;
  if (!analysis_.tables.empty())
    if (auto stop = touch_tables(only_points)) return std::move(*stop);
  const ShardId home = map_.home_shard() == nullptr ? 0 : map_.home_shard()->id;
  const bool elsewhere =
      std::any_of(all_.shards.begin(), all_.shards.end(), [&](ShardId id) { return id != first; });
  if (same && !elsewhere && (!analysis_.home || first == home)) return Plan(Route{first, {}, true, shardlet});
  if (insert.read_first) return read_first(*insert.read_first);
  if (insert.unsplittable) return fail(*insert.unsplittable);
  if (elsewhere || analysis_.home || !analysis_.tables.empty())
    return fail(sqlstate::kNotSupported,
                "INSERT of rows into " + insert.display + " that reads tables which are not where the rows go",
                "Read the values first, then insert them.");
  const auto texts = rows.texts();
  if (texts.size() != rows.size())
    return fail(sqlstate::kNotSupported, "INSERT of these rows into " + insert.display + " for several shards",
                "Insert them with one statement for each sharding key.");
  if (insert.timed && !values_.explains)
    return work_out_insert(*insert.timed, rows, insert, {analysis_.units, values_, map_, 0, 0});
  FanOut made;
  made.writes = true;
  std::vector<ShardId> order;
  for (const ShardId shard : shard_of_row)
    if (std::find(order.begin(), order.end(), shard) == order.end()) order.push_back(shard);
  std::sort(order.begin(), order.end());
  const std::string_view text = values_.normal->text();
  // EXPLAIN (ROUTE) shows the INSERT alone.
  const std::uint32_t from =
      values_.begin + (values_.normal->units().size() == analysis_.units.size() || analysis_.whole.begin == 0
                           ? analysis_.whole.begin
                           : 0);
  const std::string_view head = text.substr(from, texts.front().begin - from);
  const std::uint32_t end = values_.normal->units().back().end;
  const std::string_view tail = text.substr(texts.back().end, end - texts.back().end);
  for (const ShardId shard : order) {
    ShardTask task{shard, std::string(head)};
    bool begun = false;
    for (std::size_t row = 0; row < texts.size(); ++row) {
      if (shard_of_row[row] != shard) continue;
      if (begun) task.text += ", ";
      begun = true;
      task.text += texts[row].of(text);
    }
    task.text += tail;
    made.tasks.push_back(std::move(task));
  }
  if (insert.returning) {
    made.merge.kind = Merge::Kind::kPlaced;
    for (const ShardId shard : shard_of_row)
      made.merge.placement.push_back(
          static_cast<std::uint32_t>(std::find(order.begin(), order.end(), shard) - order.begin()));
  }
  return Plan(std::move(made));
}

}  // namespace

Result<Plan> make_plan(const Analysis& analysis, const Values& values, const ShardMap& map) {
  return Planner(analysis, values, map).plan();
}

bool depends_on_parameters(const Analysis& analysis, const parser::Normaliser& normal) {
  if (analysis.depends_on_parameters) return true;
  // In the rows of an INSERT a parameter stands for a literal: they may have been learnt with literals.
  return analysis.insert &&
         std::any_of(normal.slots().begin(), normal.slots().end(),
                     [](const parser::Slot& slot) { return slot.kind == parser::SlotKind::kParameter; });
}
bool needs_home(const Analysis& analysis) {
  return analysis.home;
}
std::vector<std::string> worked_out_of(const Analysis& analysis) {
  std::vector<std::string> first;
  const auto& work = analysis.folds ? analysis.folds : analysis.times;
  if (work)
    for (const WorkOutTemplate::Expression& each : work->expressions)
      first.emplace_back(each.text.empty() ? each.range.of(analysis.statement->text()) : each.text);
  return first;
}
std::size_t bytes_of(const Analysis& analysis) {
  return analysis.bytes;
}

}  // namespace kintsugi::planner
