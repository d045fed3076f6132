// Random edits against a model that is plain enough to be right by looking at it: a std::map of entries.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "shardmap/map_edit.h"

namespace kintsugi::shardmap {
namespace {

struct ModelEntry {
  std::string high, name, shard;
  ShardletState state;
  friend bool operator==(const ModelEntry&, const ModelEntry&) = default;
};
using Model = std::map<std::string, ModelEntry>;  // by encoded low

class Player {
 public:
  Player(MapKind kind, KeyType type, std::uint64_t seed, std::uint64_t keys)
      : kind_(kind), type_(type), keys_(keys), random_(seed) {
    map_ = *apply(*ShardMap::empty("store"),
                  {edit::CreateShard{"s1", "d", "", ShardState::kOnline},
                   edit::CreateShard{"s2", "d", "", ShardState::kOnline},
                   edit::CreateShard{"s3", "d", "", ShardState::kOnline}, edit::CreateMap{"m", kind, {type}}});
  }

  void play() {
    const std::uint64_t dice = below(10);
    if (dice < 6 || model_.empty()) {
      create();
    } else if (dice < 8) {
      alter();
    } else if (dice < 9) {
      drop();
    } else {
      split();
    }
  }

  void check(int lookups) {
    const Mapping& mapping = *map_->mapping("m");
    ASSERT_EQ(mapping.entry_count(), model_.size());
    for (int i = 0; i < lookups; ++i) check_lookup(mapping, encoded(text(below(keys_ + 2))));
    const std::string low = encoded(text(below(keys_)));
    const std::string high = below(8) == 0 ? "" : encoded(text(below(keys_)));
    check_span(mapping, low, high);
  }

  void check_all() {
    const Mapping& mapping = *map_->mapping("m");
    auto at = model_.begin();
    std::map<std::string, std::size_t> on_shard;
    std::size_t not_online = 0;
    for (const ShardletView view : mapping.entries()) {
      ASSERT_NE(at, model_.end());
      EXPECT_EQ(view.low(), at->first);
      EXPECT_EQ(view.high(), at->second.high);
      EXPECT_EQ(view.name(), at->second.name);
      const auto shardlet = map_->shardlet(at->second.name);
      ASSERT_TRUE(shardlet) << at->second.name;
      if (kind_ == MapKind::kList) {
        EXPECT_TRUE(std::binary_search(shardlet->values.begin(), shardlet->values.end(), at->first));
      } else {
        EXPECT_EQ(shardlet->low, at->first);
      }
      ++on_shard[at->second.shard];
      not_online += at->second.state != ShardletState::kOnline ? 1 : 0;
      ++at;
    }
    EXPECT_EQ(at, model_.end());
    std::map<std::string, std::size_t> counted;
    for (const auto& [shard, entries] : mapping.shards()) counted[map_->shard(shard)->name] = entries;
    EXPECT_EQ(counted, on_shard);
    EXPECT_EQ(mapping.not_online_count(), not_online);
    EXPECT_EQ(mapping.shardlet_count(), names().size());
    EXPECT_EQ(map_->shardlets_of(mapping).size(), names().size());
  }

  [[nodiscard]] const MapPtr& map() const { return map_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] int accepted() const { return accepted_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::string text(std::uint64_t n) const {
    if (type_ != KeyType::kText)
      return std::to_string(static_cast<std::int64_t>(n) - static_cast<std::int64_t>(keys_ / 2));
    // Keys of two families, some of which share their first 20 bytes.
    return (n % 2 == 0 ? "a-family-of-long-keys-" : "b") + std::string(n % 7, 'x') + std::to_string(n);
  }
  std::string encoded(const std::string& key) const { return *encode_key({type_}, {key}); }
  std::string any_shard() { return "s" + std::to_string(1 + below(3)); }
  std::string fresh_name() { return "n" + std::to_string(below(keys_ * 2)); }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [low, entry] : model_) all.insert(entry.name);
    return all;
  }
  std::string any_name() {
    auto at = model_.lower_bound(encoded(text(below(keys_))));
    return (at == model_.end() ? model_.begin() : at)->second.name;
  }
  [[nodiscard]] bool named(const std::string& name) const {
    return std::any_of(model_.begin(), model_.end(),
                       [&name](const auto& each) { return each.second.name == name; });
  }
  [[nodiscard]] bool overlaps(const std::string& low, const std::string& high) const {
    return std::any_of(model_.begin(), model_.end(), [&](const auto& each) {
      return high.empty() ? each.first == low : each.first < high && low < each.second.high;
    });
  }

  void run(const MapEdit& edit, bool expected, Model next) {
    const auto result = apply(*map_, edit);
    ASSERT_EQ(result.has_value(), expected) << to_json(edit) << (result ? "" : result.error().to_string());
    ++(expected ? accepted_ : refused_);
    if (!expected) return;
    map_ = *result;
    model_ = std::move(next);
  }

  void create() {
    edit::CreateShardlet op{"m", fresh_name(), {}, {}, {}, any_shard(), ShardletState::kOnline};
    Model next = model_;
    bool good = !named(op.name);
    if (kind_ == MapKind::kList) {
      std::set<std::uint64_t> chosen;
      for (std::uint64_t n = 1 + below(4); n > 0; --n) chosen.insert(below(keys_));
      for (const std::uint64_t n : chosen) {
        op.values.push_back({text(n)});
        good = good && !overlaps(encoded(text(n)), "");
        next[encoded(text(n))] = {"", op.name, op.shard, op.state};
      }
    } else {
      std::string low_text = text(below(keys_));
      std::string high_text = text(below(keys_ / 8 + 1) + 1);
      if (type_ != KeyType::kText)
        high_text = std::to_string(std::stoll(low_text) + 1 + static_cast<long long>(below(3)));
      op.low = {BoundColumn::value(low_text)};
      op.high = {BoundColumn::value(high_text)};
      const std::string low = encoded(low_text);
      const std::string high = encoded(high_text);
      good = good && low < high && !overlaps(low, high);
      next[low] = {high, op.name, op.shard, op.state};
    }
    run({op}, good, std::move(next));
  }

  void alter() {
    edit::AlterShardlet op{any_name(), {}, {}, {}};
    if (below(2) == 0) op.new_name = fresh_name();
    if (below(2) == 0) op.shard = any_shard();
    if (below(2) == 0) op.state = static_cast<ShardletState>(below(4));
    Model next = model_;
    bool good = !op.new_name || *op.new_name == op.name || !named(*op.new_name);
    for (auto& [low, entry] : next) {
      if (entry.name != op.name) continue;
      // Who hands it over knows it by its name.
      if (op.new_name && *op.new_name != op.name && entry.state == ShardletState::kHeld) good = false;
      if (op.shard) entry.shard = *op.shard;
      if (op.state) entry.state = *op.state;
      if (op.new_name) entry.name = *op.new_name;
    }
    run({op}, good, std::move(next));
  }

  void drop() {
    const std::string name = any_name();
    Model next = model_;
    std::erase_if(next, [&name](const auto& each) { return each.second.name == name; });
    run({edit::DropShardlet{name}}, true, std::move(next));
  }

  // Drop and create in one edit; for a LIST the first value goes one way and the others the other.
  void split() {
    const std::string name = any_name();
    auto left = creation_of(*map_, name);
    ASSERT_TRUE(left);
    auto right = *left;
    right.name = name + "r";
    right.shard = any_shard();
    Model next = model_;
    bool good = !named(right.name);
    if (kind_ == MapKind::kList) {
      left->values.resize(1);
      right.values.erase(right.values.begin());
      good = good && !right.values.empty();
      for (const auto& value : right.values) {
        next[encoded(value[0])].name = right.name;
        next[encoded(value[0])].shard = right.shard;
      }
    } else {
      const std::string at_text = text(below(keys_));
      const std::string at = encoded(at_text);
      left->high = right.low = {BoundColumn::value(at_text)};
      const std::string low = map_->shardlet(name)->low;
      const std::string high = map_->shardlet(name)->high;
      good = good && low < at && at < high;
      if (good) {
        next[at] = {high, right.name, right.shard, right.state};
        next[low].high = at;
      }
    }
    run({edit::DropShardlet{name}, *left, right}, good, std::move(next));
  }

  void check_lookup(const Mapping& mapping, const std::string& key) {
    const ModelEntry* expected = nullptr;
    auto at = model_.upper_bound(key);
    if (at != model_.begin()) {
      --at;
      if (kind_ == MapKind::kList ? at->first == key : key < at->second.high) expected = &at->second;
    }
    const auto found = mapping.find(key);
    ASSERT_EQ(found.has_value(), expected != nullptr);
    if (expected == nullptr) return;
    EXPECT_EQ(found->name(), expected->name);
    EXPECT_EQ(found->state(), expected->state);
    EXPECT_EQ(map_->shard(found->shard())->name, expected->shard);
  }

  void check_span(const Mapping& mapping, const std::string& low, const std::string& high) {
    std::vector<std::string> expected;
    for (const auto& [at, entry] : model_) {
      const bool begins_before = high.empty() || at < high;
      const bool in = kind_ == MapKind::kList ? at >= low : entry.high > low;
      // A range without keys overlaps nothing.
      if (begins_before && in && (high.empty() || low < high)) expected.push_back(at);
    }
    std::vector<std::string> found;
    for (const ShardletView view : mapping.overlapping(low, high)) found.emplace_back(view.low());
    EXPECT_EQ(found, expected);
  }

  MapKind kind_;
  KeyType type_;
  std::uint64_t keys_;
  std::mt19937_64 random_;
  MapPtr map_;
  Model model_;
  int accepted_ = 0;
  int refused_ = 0;
};

using Case = std::tuple<MapKind, KeyType, std::uint64_t>;
class ShardMapModel : public testing::TestWithParam<Case> {};

}  // namespace

TEST_P(ShardMapModel, RandomEditsAgree) {
  const auto [kind, type, keys] = GetParam();
  Player player(kind, type, 4711 + keys, keys);
  std::vector<std::pair<MapPtr, std::size_t>> kept;
  const int rounds = keys > 1000 ? 4000 : 3000;
  for (int round = 0; round < rounds; ++round) {
    player.play();
    if (HasFatalFailure()) return;
    player.check(5);
    if (HasFatalFailure()) return;
    if (round % 500 == 0) {
      kept.emplace_back(player.map(), player.model().size());
      player.check_all();
    }
  }
  player.check_all();
  EXPECT_GT(player.accepted(), rounds / 10);
  EXPECT_GT(player.refused(), rounds / 100);
  // Older maps are as they were.
  for (const auto& [map, entries] : kept) {
    std::size_t counted = 0;
    for (const ShardletView view : map->mapping("m")->entries()) {
      ++counted;
      EXPECT_TRUE(map->shardlet(view.name()));
    }
    EXPECT_EQ(counted, entries);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShardMapModel,
                         testing::Values(Case{MapKind::kRange, KeyType::kBigint, 60},
                                         Case{MapKind::kRange, KeyType::kBigint, 8000},
                                         Case{MapKind::kRange, KeyType::kText, 200},
                                         Case{MapKind::kList, KeyType::kBigint, 300},
                                         Case{MapKind::kList, KeyType::kText, 5000}));

}  // namespace kintsugi::shardmap
