#include "planner/key_set.h"

#include <algorithm>
#include <optional>

namespace kintsugi::planner {
namespace {

using Op = KeyCondition::Op;

// After every key that begins with what stands before it: tags are 0 to 2.
constexpr char kBehind = 3;
// More points than this are treated as the range of their first columns.
constexpr std::size_t kPointsMax = 200000;

struct ColumnFacts {
  std::optional<std::vector<std::string>> points;  // ascending, encoded
  std::optional<std::string> low, high;            // ready to be put behind a prefix
};

void intersect_points(ColumnFacts& facts, std::vector<std::string> points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (!facts.points) {
    facts.points = std::move(points);
    return;
  }
  std::vector<std::string> both;
  std::set_intersection(facts.points->begin(), facts.points->end(), points.begin(), points.end(),
                        std::back_inserter(both));
  facts.points = std::move(both);
}

enum class Took : std::uint8_t { kFine, kNothingLeft };

// The values of a list; false when one is not known, and so nothing is.
bool list_points(const KeyCondition& leaf, const KeyContext& context, std::vector<std::string>& points) {
  const shardmap::KeyType type = context.types[leaf.column];
  const auto take = [&](auto&& append) {
    std::string key;
    switch (append(key)) {
      case KeyOutcome::kValue: points.push_back(std::move(key)); return true;
      case KeyOutcome::kNull:
      case KeyOutcome::kNoSuch: return true;
      case KeyOutcome::kInvalid:  // PostgreSQL will say so, wherever it is asked
      case KeyOutcome::kUnknown: return false;
    }
    return false;
  };
  const auto source = [&](const Source& each) {
    return take([&](std::string& key) {
      return append_source(each, type, KeyUse::kCompare, context.values, context.constants, key);
    });
  };
  switch (leaf.op) {
    case Op::kEqual: return source(leaf.source);
    case Op::kList:
      for (const KeyCondition& child : leaf.children)
        if (!source(child.source)) return false;
      return true;
    case Op::kGroup: {
      if (context.values.normal == nullptr || leaf.group >= context.values.normal->groups().size())
        return false;
      const parser::SlotGroup& group = context.values.normal->groups()[leaf.group];
      Source each = leaf.source;
      each.kind = Source::Kind::kGroupSlot;
      each.group = leaf.group;
      for (std::uint32_t i = 0; i < group.count; ++i) {
        each.index = i;
        if (!source(each)) return false;
      }
      return true;
    }
    case Op::kArray: {
      Parameter array;
      std::string text;
      if (leaf.source.kind == Source::Kind::kParameter) {
        if (leaf.source.index >= context.values.parameters.size()) return false;
        array = context.values.parameters[leaf.source.index];
      } else {
        if (!string_of(leaf.source, context.values, context.constants, text)) return false;
        array.bytes = text;
      }
      if (array.null) return true;
      std::vector<Parameter> elements;
      std::vector<std::string> storage;
      if (!array_elements(array, elements, storage)) return false;
      for (const Parameter& element : elements)
        if (!take([&](std::string& key) {
              return append_element(element, leaf.source.cast, type, KeyUse::kCompare, context.values, key);
            }))
          return false;
      return true;
    }
    default: return false;
  }
}

Took take_bound(const KeyCondition& leaf, const KeyContext& context, ColumnFacts& facts) {
  std::string bytes;
  switch (append_source(leaf.source, context.types[leaf.column], KeyUse::kCompare, context.values,
                        context.constants, bytes)) {
    case KeyOutcome::kValue: break;
    case KeyOutcome::kNull: return Took::kNothingLeft;
    default: return Took::kFine;
  }
  if (leaf.op == Op::kGreater || leaf.op == Op::kLessEqual) bytes += kBehind;
  if (leaf.op == Op::kGreater || leaf.op == Op::kGreaterEqual) {
    if (!facts.low || *facts.low < bytes) facts.low = std::move(bytes);
  } else if (!facts.high || bytes < *facts.high) {
    facts.high = std::move(bytes);
  }
  return Took::kFine;
}

void tidy(std::vector<KeyRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const KeyRange& a, const KeyRange& b) { return a.low < b.low; });
  std::vector<KeyRange> out;
  for (KeyRange& range : ranges) {
    if (!range.high.empty() && range.high <= range.low) continue;
    if (!out.empty() && (out.back().high.empty() || range.low < out.back().high)) {
      if (out.back().point && range.point) continue;
      out.back().point = false;
      if (!out.back().high.empty() && (range.high.empty() || out.back().high < range.high))
        out.back().high = std::move(range.high);
      continue;
    }
    out.push_back(std::move(range));
  }
  ranges = std::move(out);
}

KeyRange point_at(std::string key) {
  std::string high = key + '\0';
  return {std::move(key), std::move(high), true};
}

KeySet ranges_of(std::vector<ColumnFacts>& columns) {
  std::vector<std::string> prefixes{""};
  std::size_t column = 0;
  for (; column < columns.size() && columns[column].points; ++column) {
    const auto& points = *columns[column].points;
    if (prefixes.size() * std::max<std::size_t>(points.size(), 1) > kPointsMax) break;
    std::vector<std::string> longer;
    longer.reserve(prefixes.size() * points.size());
    for (const std::string& prefix : prefixes)
      for (const std::string& point : points) longer.push_back(prefix + point);
    prefixes = std::move(longer);
  }
  KeySet set;
  set.all = false;
  if (column == columns.size()) {
    for (std::string& key : prefixes) set.ranges.push_back(point_at(std::move(key)));
    tidy(set.ranges);
    return set;
  }
  const ColumnFacts& next = columns[column];
  if (column == 0 && !next.low && !next.high) return {};
  for (const std::string& prefix : prefixes) {
    KeyRange range{prefix + next.low.value_or(""), "", false};
    if (next.high)
      range.high = prefix + *next.high;
    else if (!prefix.empty())
      range.high = prefix + kBehind;
    set.ranges.push_back(std::move(range));
  }
  tidy(set.ranges);
  return set;
}

KeySet intersect(const KeySet& a, const KeySet& b) {
  if (a.all) return b;
  if (b.all) return a;
  KeySet out;
  out.all = false;
  for (std::size_t i = 0, k = 0; i < a.ranges.size() && k < b.ranges.size();) {
    const KeyRange& left = a.ranges[i];
    const KeyRange& right = b.ranges[k];
    KeyRange both{std::max(left.low, right.low), "", left.point || right.point};
    const bool left_ends = !left.high.empty() && (right.high.empty() || left.high <= right.high);
    both.high = left_ends ? left.high : right.high;
    if (both.high.empty() || both.low < both.high) out.ranges.push_back(std::move(both));
    if (left_ends)
      ++i;
    else if (right.high.empty())
      break;
    else
      ++k;
  }
  return out;
}

KeySet nothing() {
  return {false, {}};
}

KeySet evaluate_all_of(const std::vector<const KeyCondition*>& conditions, const KeyContext& context) {
  std::vector<ColumnFacts> columns(context.types.size());
  std::vector<const KeyCondition*> others;
  for (const KeyCondition* each : conditions) {
    switch (each->op) {
      case Op::kAll: break;
      case Op::kNone: return nothing();
      case Op::kEqual:
      case Op::kList:
      case Op::kGroup:
      case Op::kArray: {
        std::vector<std::string> points;
        if (!list_points(*each, context, points)) break;
        intersect_points(columns[each->column], std::move(points));
        break;
      }
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
        if (take_bound(*each, context, columns[each->column]) == Took::kNothingLeft) return nothing();
        break;
      case Op::kAnd:
      case Op::kOr: others.push_back(each); break;
    }
  }
  KeySet set = ranges_of(columns);
  for (const KeyCondition* each : others) set = intersect(set, evaluate(*each, context));
  return set;
}

}  // namespace

KeyCondition KeyCondition::both(std::vector<KeyCondition> conditions) {
  KeyCondition made{.op = Op::kAnd};
  for (KeyCondition& each : conditions) {
    if (each.op == Op::kNone) return none();
    if (each.op == Op::kAll) continue;
    if (each.op == Op::kAnd) {
      for (KeyCondition& child : each.children) made.children.push_back(std::move(child));
    } else {
      made.children.push_back(std::move(each));
    }
  }
  if (made.children.empty()) return all();
  if (made.children.size() == 1) return KeyCondition(std::move(made.children.front()));
  return made;
}

KeyCondition KeyCondition::either(std::vector<KeyCondition> conditions) {
  KeyCondition made{.op = Op::kOr};
  for (KeyCondition& each : conditions) {
    if (each.op == Op::kAll) return all();
    if (each.op == Op::kNone) continue;
    made.children.push_back(std::move(each));
  }
  if (made.children.empty()) return none();
  if (made.children.size() == 1) return KeyCondition(std::move(made.children.front()));
  return made;
}

KeySet evaluate(const KeyCondition& condition, const KeyContext& context) {
  if (condition.op == Op::kAnd) {
    std::vector<const KeyCondition*> conditions;
    for (const KeyCondition& child : condition.children) conditions.push_back(&child);
    return evaluate_all_of(conditions, context);
  }
  if (condition.op == Op::kOr) {
    KeySet out = nothing();
    for (const KeyCondition& child : condition.children) {
      KeySet set = evaluate(child, context);
      if (set.all) return set;
      for (KeyRange& range : set.ranges) out.ranges.push_back(std::move(range));
    }
    tidy(out.ranges);
    return out;
  }
  return evaluate_all_of({&condition}, context);
}

void Touched::add(shardmap::ShardId shard) {
  const auto at = std::lower_bound(shards.begin(), shards.end(), shard);
  if (at == shards.end() || *at != shard) shards.insert(at, shard);
}

void Touched::add(const shardmap::ShardletView& entry) {
  add(entry.shard());
  const std::string_view name = entry.name();
  if (entries == 0)
    shardlet = name;
  else if (shardlet != name)
    shardlet = {};
  ++entries;
  switch (entry.state()) {
    case shardmap::ShardletState::kOnline: break;
    case shardmap::ShardletState::kReadOnly: read_only = name; break;
    case shardmap::ShardletState::kOffline: offline = name; break;
    case shardmap::ShardletState::kHeld: held = name; break;
  }
}

void touch(const KeySet& keys, const shardmap::Mapping& mapping, Touched& touched) {
  const bool hash = mapping.kind() == shardmap::MapKind::kHash;
  const bool whole = keys.all || (hash && std::any_of(keys.ranges.begin(), keys.ranges.end(),
                                                      [](const KeyRange& range) { return !range.point; }));
  // Once every shard is in, and no shardlet is out of the ordinary, the rest tells nothing new.
  const auto finished = [&] {
    return mapping.not_online_count() == 0 && touched.entries > 1 && touched.shardlet.empty() &&
           std::all_of(mapping.shards().begin(), mapping.shards().end(), [&](const auto& counted) {
             return std::binary_search(touched.shards.begin(), touched.shards.end(), counted.first);
           });
  };
  if (whole) {
    if (mapping.not_online_count() == 0 && mapping.entry_count() > 1) {
      for (const auto& [shard, entries] : mapping.shards()) touched.add(shard);
      if (mapping.shardlet_count() > 1) touched.shardlet = {};
      touched.entries += 2;
      return;
    }
    for (const shardmap::ShardletView entry : mapping.entries()) touched.add(entry);
    return;
  }
  for (const KeyRange& range : keys.ranges) {
    if (range.point) {
      if (const auto entry = mapping.find(range.low)) touched.add(*entry);
    } else {
      std::size_t seen = 0;
      for (const shardmap::ShardletView entry : mapping.overlapping(range.low, range.high)) {
        touched.add(entry);
        if (++seen % 64 == 0 && finished()) return;
      }
    }
  }
}

}  // namespace kintsugi::planner
