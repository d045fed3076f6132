#include "shardmap/key_predicate.h"

#include "base/sql_quote.h"
#include "shardmap/key_encoding.h"
#include "shardmap/pg_hash.h"
#include "shardmap/shard_map.h"

namespace kintsugi::shardmap {
namespace {

const KeyTypes kHash{KeyType::kBigint};

std::string literal(KeyType type, const std::string& text) {
  return quote_literal(text) + "::" + std::string(name_of(type));
}

// For <, >= and the like: PostgreSQL must order texts by their bytes, whatever the column's collation is.
std::string ordered(KeyType type, const std::string& expression) {
  return type == KeyType::kText ? expression + " COLLATE \"C\"" : expression;
}

std::string row_of(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  std::string row = "ROW(";
  for (std::size_t i = 0; i < parts.size(); ++i) row += (i > 0 ? ", " : "") + parts[i];
  return row + ")";
}

// `key >= bound` for a low one, `key < bound` for a high one. Empty: true for every key.
std::string compare(const KeyTypes& types, const std::vector<std::string>& columns, const Bound& bound,
                    bool low) {
  std::vector<std::string> keys;
  std::vector<std::string> values;
  std::size_t i = 0;
  for (; i < bound.size() && bound[i].kind == BoundColumn::Kind::kValue; ++i) {
    keys.push_back(ordered(types[i], columns[i]));
    values.push_back(literal(types[i], bound[i].text));
  }
  // Keys that begin with these values lie above a bound that goes on with MINVALUE, below one with MAXVALUE.
  const bool rest_max = i < bound.size() && bound[i].kind == BoundColumn::Kind::kMax;
  if (keys.empty()) return low == rest_max ? "false" : "";
  const char* sign = low ? (rest_max ? " > " : " >= ") : (rest_max ? " <= " : " < ");
  return row_of(keys) + sign + row_of(values);
}

void add(std::string& conjunction, const std::string& term) {
  if (term.empty()) return;
  conjunction += (conjunction.empty() ? "" : " AND ") + term;
}

std::string none_null(const std::vector<std::string>& columns) {
  std::string text;
  for (const std::string& column : columns) add(text, column + " IS NOT NULL");
  return text;
}

Result<std::string> range_text(const KeyTypes& types, const std::vector<std::string>& columns,
                               const KeyRange& range) {
  KG_TRY(const Bound low, decode_bound(types, range.low));
  KG_TRY(const Bound high, decode_bound(types, range.high));
  std::string text;
  // One column that is compared is not NULL by that; of several, the later ones are not always looked at.
  const std::string above = compare(types, columns, low, true);
  const std::string below = compare(types, columns, high, false);
  if (columns.size() > 1 || (above.empty() && below.empty())) add(text, none_null(columns));
  add(text, above);
  add(text, below);
  return text;
}

Result<std::string> values_text(const KeyTypes& types, const std::vector<std::string>& columns,
                                const std::vector<KeyRange>& ranges) {
  std::string text;
  for (const KeyRange& range : ranges) {
    KG_TRY(const Bound value, decode_bound(types, range.low));
    std::string one;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].kind != BoundColumn::Kind::kValue)
        return fail("XX001", "a value of a LIST map has a bound in it");
      if (columns.size() == 1) {
        one = literal(types[i], value[i].text);
      } else {
        add(one, columns[i] + " = " + literal(types[i], value[i].text));
      }
    }
    if (columns.size() == 1) {
      text += (text.empty() ? columns[0] + " IN (" : ", ") + one;
    } else {
      text += (text.empty() ? "(" : " OR (") + one + ")";
    }
  }
  return columns.size() == 1 ? text + ")" : text;
}

}  // namespace

Result<std::string> inside_ranges(MapKind kind, const KeyTypes& key_types,
                                  const std::vector<std::string>& columns,
                                  const std::vector<KeyRange>& ranges) {
  if (columns.size() != key_types.size() || columns.empty())
    return fail(sqlstate::kInternal, "a predicate names another number of columns than the key has");
  if (ranges.empty()) return std::string("false");
  if (kind == MapKind::kList) {
    KG_TRY(const std::string text, values_text(key_types, columns, ranges));
    return "(" + text + ")";
  }
  const bool hash = kind == MapKind::kHash;
  std::string text;
  for (const KeyRange& range : ranges) {
    const std::vector<std::string> bound_columns = hash ? std::vector{hash_expression(columns)} : columns;
    KG_TRY(const std::string one, range_text(hash ? kHash : key_types, bound_columns, range));
    text += ranges.size() == 1 ? one : (text.empty() ? "(" : " OR (") + one + ")";
  }
  if (!hash) return "(" + text + ")";
  // A NULL has a hash too.
  return "(" + none_null(columns) + " AND " + (ranges.size() == 1 ? text : "(" + text + ")") + ")";
}

Result<std::string> inside_ranges(const Mapping& mapping, const std::vector<std::string>& columns,
                                  const std::vector<KeyRange>& ranges) {
  return inside_ranges(mapping.kind(), mapping.key_types(), columns, ranges);
}

Result<std::string> outside_ranges(const Mapping& mapping, const std::vector<std::string>& columns,
                                   const std::vector<KeyRange>& ranges) {
  if (ranges.empty()) return std::string("true");
  KG_TRY(const std::string inside, inside_ranges(mapping, columns, ranges));
  return "(" + inside + " IS NOT TRUE)";
}

std::vector<KeyRange> hidden_on(const Mapping& mapping, ShardId shard) {
  std::vector<KeyRange> ranges;
  for (const HiddenRange& hidden : mapping.hidden()) {
    if (hidden.shard == shard) ranges.push_back({hidden.low, hidden.high});
  }
  return ranges;
}

std::vector<KeyRange> ranges_of(const Shardlet& shardlet) {
  if (shardlet.values.empty()) return {{shardlet.low, shardlet.high}};
  std::vector<KeyRange> ranges;
  for (const std::string& value : shardlet.values) ranges.push_back({value, {}});
  return ranges;
}

}  // namespace kintsugi::shardmap
