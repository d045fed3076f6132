// Lookups among keys of every awkward shape against the plainest search: lengths that differ, keys that begin
// with one another, the same eight bytes in many, far and near neighbours, shards with large numbers.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "shardmap/entry_lookup.h"

namespace kintsugi::shardmap {
namespace {

std::string big_endian(std::uint64_t n) {
  std::string bytes(8, '\0');
  for (int i = 7; i >= 0; --i, n >>= 8) bytes[static_cast<std::size_t>(i)] = static_cast<char>(n);
  return bytes;
}

struct Shape {
  const char* name;
  std::string (*key)(std::mt19937_64& random);
};

const Shape kShapes[] = {
    {"near", [](std::mt19937_64& random) { return "\1" + big_endian(random() % 60000); }},
    {"far", [](std::mt19937_64& random) { return "\1" + big_endian(random()); }},
    {"some_near_some_far",
     [](std::mt19937_64& random) {
       const std::uint64_t n = random();
       return "\1" + big_endian(n % 3 == 0 ? n : n % 3 == 1 ? n % 5000 : 70000 * (n % 4000));
     }},
    {"digits", [](std::mt19937_64& random) { return "tenant-" + std::to_string(random() % 100000); }},
    {"digits_of_one_length",
     [](std::mt19937_64& random) { return "t" + std::to_string(1000000000 + random() % 2000000 * 37) + '\0'; }},
    {"digits_and_letters_seldom",
     [](std::mt19937_64& random) {
       std::string key = "t" + std::to_string(100000 + random() % 30000);
       if (random() % 50 == 0) key[1 + random() % 6] = static_cast<char>("/:a\0\xff"[random() % 5]);
       return key;
     }},
    {"clusters",
     [](std::mt19937_64& random) {
       return "\1" + big_endian((random() % 40 << 50) + (random() % 3 << 20) + random() % 100);
     }},
    {"few_letters",
     [](std::mt19937_64& random) {
       std::string key(1 + random() % 14, 'a');
       for (char& c : key) c = static_cast<char>(random() % 3);
       return key;
     }},
    {"same_heads",
     [](std::mt19937_64& random) {
       return "prefix" + std::string(random() % 4, 'x') + "00000000" + std::to_string(random() % 30000);
     }},
    {"highest",
     [](std::mt19937_64& random) { return std::string(random() % 12, '\xff') + big_endian(random() % 300); }},
    {"long_prefix",
     [](std::mt19937_64& random) { return std::string(300, 'p') + big_endian(random() % 40000); }},
};

class EntryIndexShapes : public testing::TestWithParam<Shape> {};

}  // namespace

TEST_P(EntryIndexShapes, FindsWhatAPlainSearchFinds) {
  std::mt19937_64 random(99);
  for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 224U, 225U, 500U, 6000U}) {
    std::map<std::string, ShardId> model;
    for (std::size_t i = 0; i < size; ++i)
      model.emplace(GetParam().key(random), random() % 5 == 0 ? 8190 + random() % 5 : 1 + random() % 40);
    EntryIndex index;
    ChunkRegister chunks;
    std::vector<std::uint64_t> pairs;
    for (const auto& [key, shard] : model)
      index.append({key, {}, "n", shard, static_cast<ShardletState>(shard % 4)}, chunks, pairs);
    index.finish();
    const auto check = [&](const std::string& key) {
      const auto after = model.upper_bound(key);
      const auto found = index.floor(key);
      ASSERT_EQ(found.has_value(), after != model.begin());
      if (found) {
        const auto& [low, shard] = *std::prev(after);
        ASSERT_EQ(found->low(), low);
        ASSERT_EQ(found->shard(), shard);
        ASSERT_EQ(found->state(), static_cast<ShardletState>(shard % 4));
      }
      const auto same = index.exact(key);
      ASSERT_EQ(same.has_value(), model.contains(key));
      if (same) {
        ASSERT_EQ(same->low(), key);
      }
    };
    for (const auto& [key, shard] : model) {
      for (const std::string& near : {key, key + '\0', key + "z", key.substr(0, key.size() / 2),
                                      key.empty() ? key : key.substr(0, key.size() - 1)})
        check(near);
      std::string other = key;
      if (!other.empty()) other[random() % other.size()] ^= static_cast<char>(1 << random() % 8);
      check(other);
      if (HasFatalFailure()) return;
    }
    for (int i = 0; i < 1000; ++i) check(GetParam().key(random));
    for (const std::string& end : {std::string(), std::string(20, '\xff'), std::string(1, '\0')}) check(end);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EntryIndexShapes, testing::ValuesIn(kShapes),
                         [](const auto& shape) { return std::string(shape.param.name); });

}  // namespace kintsugi::shardmap
