// Which keys a table's rows can have in a statement, as a condition over values that come later, and what it
// leaves of the map once they are there. Private to planner/. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "planner/key_value.h"
#include "shardmap/mapping.h"

namespace kintsugi::planner {

// True for at least all rows that the statement can need.
struct KeyCondition {
  enum class Op : std::uint8_t {
    kAll,    // nothing is known
    kNone,   // no row
    kEqual,  // column = source
    kList,   // one of the children, which are kEqual
    kGroup,  // column IN (a group of slots)
    kArray,  // column = ANY (source, an array)
    kLess,   // column < source
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAnd,
    kOr,
  };
  Op op = Op::kAll;
  std::uint8_t column = 0;  // of the key
  Source source;
  std::uint32_t group = 0;
  std::vector<KeyCondition> children;

  static KeyCondition all() { return {}; }
  static KeyCondition none() { return {.op = Op::kNone}; }
  // Of several, dropping what says nothing.
  static KeyCondition both(std::vector<KeyCondition> conditions);
  static KeyCondition either(std::vector<KeyCondition> conditions);
  friend bool operator==(const KeyCondition&, const KeyCondition&) = default;
};

// Keys from low on and before high, encoded; an empty high is no end. A point is one whole key, low.
struct KeyRange {
  std::string low;
  std::string high;
  bool point = false;
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

struct KeySet {
  bool all = true;
  std::vector<KeyRange> ranges;  // ascending, apart from each other
};

struct KeyContext {
  const shardmap::KeyTypes& types;
  const Values& values;
  const std::vector<Constant>& constants;
};

KeySet evaluate(const KeyCondition& condition, const KeyContext& context);

// What of a map is touched.
struct Touched {
  std::vector<shardmap::ShardId> shards;      // ascending, each once
  std::string_view shardlet;                  // the only one, when it is; else empty
  std::size_t entries = 0;                    // how many were looked at; stops early, so 2 means several
  std::string_view offline, read_only, held;  // the name of one that is

  void add(const shardmap::ShardletView& entry);
  void add(shardmap::ShardId shard);
};

void touch(const KeySet& keys, const shardmap::Mapping& mapping, Touched& touched);

}  // namespace kintsugi::planner
