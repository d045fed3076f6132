// What every kind of store promises, as test bodies: run by sqlite_store_test.cc and postgres_store_pgtest.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "shardmap/map_file.h"
#include "shardmap/map_store.h"

namespace kintsugi::shardmap::contract {

inline Deadline soon() {
  return Deadline::in(std::chrono::seconds(20));
}
using Open = std::function<std::unique_ptr<MapStore>()>;

inline MapEdit first_edit() {
  MapEdit edit{edit::CreateShard{"s1", "host=one", "", ShardState::kOnline},
               edit::CreateShard{"s2", "host=two", "", ShardState::kOnline},
               edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint, KeyType::kText}},
               edit::CreateMap{"regions", MapKind::kList, {KeyType::kBytea}},
               edit::CreateShardlet{
                   "regions", "r", {}, {}, {{"\\x00"}, {"\\x"}, {"\\xff00"}}, "s2", ShardletState::kReadOnly},
               edit::PutTable{Table{"public", "orders", TableKind::kSharded, "tenants", {"a", "b"}}}};
  for (int i = 0; i < 700; ++i) {
    edit.operations.emplace_back(
        edit::CreateShardlet{"tenants",
                             "t" + std::to_string(i),
                             {BoundColumn::value(std::to_string(i)), BoundColumn::min()},
                             {BoundColumn::value(std::to_string(i)), BoundColumn::value("m'\xc3\xa9")},
                             {},
                             "s1",
                             ShardletState::kOnline});
  }
  return edit;
}

inline StoredMap must(Result<StoredMap> stored) {
  EXPECT_TRUE(stored) << (stored ? "" : stored.error().to_string());
  return stored ? *stored : StoredMap{ShardMap::empty("none"), ""};
}

inline void commits_and_loads(const Open& open) {
  const auto store = open();
  const StoredMap empty = must(store->load(soon()));
  EXPECT_EQ(empty.map->epoch(), 0U);
  EXPECT_EQ(empty.map->store_id().size(), 36U);
  const StoredMap first = must(store->commit(empty, first_edit(), {}, soon()));
  EXPECT_EQ(first.map->epoch(), 1U);
  const StoredMap loaded = must(open()->load(soon()));
  EXPECT_EQ(export_map(*loaded.map), export_map(*first.map));
  EXPECT_EQ(loaded.token, first.token);

  const MapEdit second{edit::AlterShardlet{"t5", "renamed", "s2", ShardletState::kOffline},
                       edit::AlterShardlet{"r", {}, {}, ShardletState::kOnline},
                       edit::DropShardlet{"t6"},
                       edit::HideRange{"renamed", "s1", "job 1"},
                       edit::AlterShard{"s2", "s2b", "host=other", "id", ShardState::kDraining},
                       edit::DropTable{"public", "orders"},
                       edit::SetHome{"s1"}};
  const StoredMap next = must(store->commit(loaded, second, {}, soon()));
  EXPECT_EQ(export_map(*must(open()->load(soon())).map), export_map(*next.map));
  const MapEdit third{
      edit::RevealRanges{"job 1"}, edit::DropMap{"tenants"},
      edit::CreateMap{"tenants", MapKind::kHash, {KeyType::kUuid}},
      edit::CreateShardlet{
          "tenants", "t5", {BoundColumn::min()}, {BoundColumn::max()}, {}, "s1", ShardletState::kOnline}};
  const StoredMap last = must(store->commit(next, third, {}, soon()));
  EXPECT_EQ(export_map(*must(open()->load(soon())).map), export_map(*last.map));

  // Whoever has an older map replays what came after.
  const auto edits = store->edits_since(1, first.token, soon());
  ASSERT_TRUE(edits && *edits);
  ASSERT_EQ((*edits)->size(), 2U);
  EXPECT_EQ((**edits)[0].edit, second);
  EXPECT_EQ((**edits)[1].token, last.token);
  EXPECT_EQ((*store->edits_since(0, "", soon()))->size(), 3U);
  EXPECT_TRUE((*store->edits_since(3, last.token, soon()))->empty());
  EXPECT_FALSE(*store->edits_since(1, "another history", soon()));
  EXPECT_FALSE(*store->edits_since(9, last.token, soon()));
}

inline void refuses_a_stale_base(const Open& open) {
  const auto one = open();
  const auto two = open();
  const StoredMap base = must(one->load(soon()));
  const MapEdit edit{edit::CreateMap{"a" + random_uuid(), MapKind::kRange, {KeyType::kInt}}};
  ASSERT_TRUE(one->commit(base, edit, {{"intent", "x", "body", {}}}, soon()));
  const auto late = two->commit(base, {edit::CreateMap{"b", MapKind::kRange, {KeyType::kInt}}},
                                {{"intent", "y", "body", {}}}, soon());
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().sqlstate, "40001");
  EXPECT_FALSE(late.error().hint.empty());
  EXPECT_EQ(must(two->load(soon())).map->mapping("b"), nullptr);
  EXPECT_EQ(two->notes("intent", soon())->size(), 1U);
  // An edit that is wrong in itself leaves no trace either.
  const auto wrong =
      two->commit(must(two->load(soon())), {edit::DropMap{"nowhere"}}, {{"intent", "z", "b", {}}}, soon());
  EXPECT_EQ(wrong.error().sqlstate, "42704");
  EXPECT_EQ(two->notes("intent", soon())->size(), 1U);
}

// Every editor adds its own shards, retrying on 40001; at the end all are there, each once.
inline void loses_no_update(const Open& open, int editors, int edits) {
  std::vector<std::thread> threads;
  std::atomic<int> conflicts{0};
  std::atomic<int> failures{0};
  for (int e = 0; e < editors; ++e) {
    threads.emplace_back([&, e] {
      const auto store = open();
      for (int i = 0; i < edits;) {
        auto base = store->load(soon());
        if (!base) {
          ++failures;
          return;
        }
        const std::string name = "e" + std::to_string(e) + "-" + std::to_string(i);
        const auto done =
            store->commit(*base, {edit::CreateShard{name, "d", "", ShardState::kOnline}}, {}, soon());
        if (done) {
          ++i;
        } else if (done.error().sqlstate == "40001") {
          ++conflicts;
        } else {
          ADD_FAILURE() << done.error().to_string();
          ++failures;
          return;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const StoredMap last = must(open()->load(soon()));
  EXPECT_EQ(last.map->shards().size(), static_cast<std::size_t>(editors * edits));
  EXPECT_EQ(last.map->epoch(), static_cast<std::uint64_t>(editors * edits));
  // The history makes the same map.
  MapPtr replayed = ShardMap::empty(last.map->store_id());
  const auto history = open()->edits_since(0, "", soon());
  ASSERT_TRUE(history && *history);
  for (const LoggedEdit& edit : **history) replayed = *apply(*replayed, edit.edit);
  EXPECT_EQ(export_map(*replayed), export_map(*last.map));
}

inline void wakes_who_waits(const Open& open) {
  const auto waiting = open();
  const StoredMap base = must(waiting->load(soon()));
  // The first call may say "look" because the session is new.
  while (*waiting->wait(base.map->epoch(), Deadline::in(std::chrono::milliseconds(1)))) {
  }
  EXPECT_FALSE(*waiting->wait(base.map->epoch(), Deadline::in(std::chrono::milliseconds(50))));
  std::thread editor([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_TRUE(open()->commit(base, {edit::CreateMap{"w", MapKind::kRange, {KeyType::kInt}}}, {}, soon()));
  });
  EXPECT_TRUE(*waiting->wait(base.map->epoch(), soon()));
  editor.join();
}

inline void keeps_notes(const Open& open) {
  const auto store = open();
  ASSERT_TRUE(
      store->put_notes({{"router", "a", "1", {}}, {"router", "b", "2", {}}, {"other", "a", "3", {}}}, soon()));
  ASSERT_TRUE(store->put_notes({{"router", "a", "one", {}}, {"other", "a", {}, {}}}, soon()));
  const auto notes = store->notes("router", soon());
  ASSERT_TRUE(notes);
  ASSERT_EQ(notes->size(), 2U);
  EXPECT_EQ((*notes)[0].body, "one");
  EXPECT_EQ((*notes)[1].key, "b");
  EXPECT_GE((*notes)[0].age_ms, 0);
  EXPECT_LT((*notes)[0].age_ms, 20000);
  EXPECT_TRUE(store->notes("other", soon())->empty());
  EXPECT_EQ(
      store->put_notes({{"job", "1", "x", ""}, {"router", "a", "mine", "someone"}}, soon()).error().sqlstate,
      "40001");
  EXPECT_TRUE(store->notes("job", soon())->empty());
  EXPECT_TRUE(store->put_notes({{"job", "1", "x", ""}, {"router", "a", "mine", "one"}}, soon()));
  EXPECT_EQ(store->put_notes({{"job", "1", "y", ""}}, soon()).error().sqlstate, "40001");
}

}  // namespace kintsugi::shardmap::contract
