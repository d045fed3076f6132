// The commands that the outside will call, and the repairs, against databases with rows.
#include "shardmap/recovery.h"

#include <gtest/gtest.h>

#include "shardmap/map_commands.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/store_contract.h"

namespace kintsugi::shardmap {
namespace {

using contract::must;
using contract::soon;

class RecoveryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<pgtest::Cluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    std::string sql;
    for (const char* name : {"store", "other", "one", "two"}) {
      sql += "DROP DATABASE IF EXISTS " + std::string(name) + " WITH (FORCE);\nCREATE DATABASE " + name + ";\n";
    }
    pgtest::psql(cluster_->dsn(), sql);
    store_ = open("store");
  }
  static std::string dsn(const std::string& database) { return cluster_->dsn(database); }
  static std::unique_ptr<MapStore> open(const std::string& database) {
    auto store = open_store(dsn(database), "", soon());
    if (!store) throw std::runtime_error(store.error().to_string());
    return std::move(*store);
  }
  MapCommands commands() { return MapCommands(*store_); }
  MapPtr map() { return must(store_->load(soon())).map; }

  static edit::CreateShardlet range(const std::string& name, const BoundColumn& low, const BoundColumn& high,
                                    const std::string& shard) {
    return {"tenants", name, {low}, {high}, {}, shard, ShardletState::kOnline};
  }
  // Tenants below 0 on s1, the others on s2, and a table that is sharded by them.
  void build() {
    for (const char* database : {"one", "two"}) {
      pgtest::psql(dsn(database), "CREATE TABLE orders (tenant bigint, n int)");
    }
    pgtest::psql(dsn("one"), "INSERT INTO orders SELECT -g, g FROM generate_series(1, 50) g");
    pgtest::psql(dsn("two"), "INSERT INTO orders SELECT g, g FROM generate_series(0, 50) g");
    ASSERT_TRUE(commands().create_shard({"s1", dsn("one")}, soon()));
    ASSERT_TRUE(commands().create_shard({"s2", dsn("two")}, soon()));
    ASSERT_TRUE(commands().create_map({"tenants", MapKind::kRange, {KeyType::kBigint}, 0, {}}, soon()));
    ASSERT_TRUE(
        commands().create_shardlet(range("a", BoundColumn::min(), BoundColumn::value("0"), "s1"), soon()));
    ASSERT_TRUE(
        commands().create_shardlet(range("b", BoundColumn::value("0"), BoundColumn::max(), "s2"), soon()));
    const auto adopted = commands().shard_table(orders(), soon());
    ASSERT_TRUE(adopted) << adopted.error().to_string();
  }
  static Table orders() { return {"public", "orders", TableKind::kSharded, "tenants", {"tenant"}}; }
  std::vector<std::string> differences(bool rows = true) {
    const auto found = check(*store_, rows, soon());
    EXPECT_TRUE(found) << (found ? "" : found.error().to_string());
    std::vector<std::string> out;
    for (const Difference& difference : *found) {
      out.push_back(std::string(name_of(difference.kind)) + " " + difference.shard + ": " + difference.what);
    }
    return out;
  }

  static inline std::unique_ptr<pgtest::Cluster> cluster_;
  std::unique_ptr<MapStore> store_;
};

using Lines = std::vector<std::string>;

}  // namespace

// The road of most users: one database with its data becomes shard s1 of a map with one shardlet.
TEST_F(RecoveryTest, AnExistingDatabaseBecomesAOneShardletMap) {
  pgtest::psql(dsn("one"),
               "CREATE TABLE orders (tenant bigint NOT NULL, n int); INSERT INTO orders SELECT g % 97, g FROM "
               "generate_series(1, 5000) g");
  ASSERT_TRUE(commands().create_shard({"s1", dsn("one")}, soon()));
  ASSERT_TRUE(commands().create_map({"tenants", MapKind::kRange, {KeyType::kBigint}, 0, {}}, soon()));
  ASSERT_TRUE(commands().create_shardlet(range("all", BoundColumn::min(), BoundColumn::max(), "s1"), soon()));
  const auto adopted = commands().shard_table(orders(), soon());
  ASSERT_TRUE(adopted) << adopted.error().to_string();
  EXPECT_EQ((*adopted)->table("public", "orders")->map, "tenants");
  EXPECT_EQ(differences(), Lines{});
  EXPECT_EQ(pgtest::psql(dsn("one"), "SELECT count(*) FROM orders"), "5000");
}

TEST_F(RecoveryTest, ATableIsAdoptedOnlyWhenItsRowsAreWhereTheMapSays) {
  build();
  ASSERT_TRUE(commands().drop_table("public", "orders", soon()));
  pgtest::psql(dsn("one"), "INSERT INTO orders VALUES (7, 0), (NULL, 0)");
  const auto refused = commands().shard_table(orders(), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "55000");
  EXPECT_NE(refused.error().detail.find("key (7) is on shard \"s1\" and belongs on \"s2\""), std::string::npos)
      << refused.error().detail;
  EXPECT_NE(refused.error().detail.find("key NULL is on shard \"s1\""), std::string::npos)
      << refused.error().detail;
  EXPECT_EQ(map()->table("public", "orders"), nullptr);
  pgtest::psql(dsn("one"), "DELETE FROM orders WHERE tenant = 7 OR tenant IS NULL");
  EXPECT_TRUE(commands().shard_table(orders(), soon()));
}

TEST_F(RecoveryTest, AColumnThatCannotBeAKeyIsRefused) {
  build();
  const auto sqlstate_of = [&](const std::string& table, const std::string& columns) {
    for (const char* database : {"one", "two"})
      pgtest::psql(dsn(database), "CREATE TABLE " + table + " (" + columns + ")");
    const auto done =
        commands().shard_table({"public", table, TableKind::kSharded, "tenants", {"tenant"}}, soon());
    return done ? "accepted" : done.error().sqlstate;
  };
  EXPECT_EQ(sqlstate_of("t1", "tenant int"), "accepted");
  EXPECT_EQ(sqlstate_of("t2", "tenant text"), "42804");
  EXPECT_EQ(sqlstate_of("t3", "other bigint"), "42703");
  EXPECT_EQ(sqlstate_of("t4", "n bigint, tenant bigint GENERATED ALWAYS AS (n + 1) STORED"), "0A000");
  ASSERT_TRUE(commands().create_map({"amounts", MapKind::kRange, {KeyType::kNumeric}, 0, {}}, soon()));
  for (const char* database : {"one", "two"}) pgtest::psql(dsn(database), "CREATE TABLE t5 (k numeric(10, 2))");
  ASSERT_TRUE(commands().create_shardlet(
      {"amounts", "am", {BoundColumn::min()}, {BoundColumn::max()}, {}, "s1", ShardletState::kOnline}, soon()));
  EXPECT_EQ(
      commands().shard_table({"public", "t5", TableKind::kSharded, "amounts", {"k"}}, soon()).error().sqlstate,
      "0A000");
  EXPECT_EQ(
      commands().shard_table({"public", "t6", TableKind::kSharded, "tenants", {"k"}}, soon()).error().sqlstate,
      "42P01");
}

TEST_F(RecoveryTest, CommandsRefuseWhatWouldLoseRows) {
  build();
  EXPECT_EQ(commands().drop_shardlet("a", soon()).error().sqlstate, "55000");
  EXPECT_EQ(commands().alter_shardlet({"a", {}, "s2", {}}, soon()).error().sqlstate, "0A000");
  pgtest::psql(dsn("one"), "DELETE FROM orders");
  EXPECT_TRUE(commands().drop_shardlet("a", soon()));
  const auto hashed = commands().create_map({"h", MapKind::kHash, {KeyType::kUuid}, 7, {}}, soon());
  ASSERT_TRUE(hashed) << hashed.error().to_string();
  EXPECT_EQ((*hashed)->mapping("h")->shardlet_count(), 7U);
  EXPECT_EQ((*hashed)->mapping("h")->shards().size(), 2U);
  std::string end;
  for (const ShardletView view : (*hashed)->mapping("h")->entries()) {
    if (!end.empty()) {
      EXPECT_EQ(view.low(), end);
    }
    end = view.high();
  }
}

TEST_F(RecoveryTest, WhatIsNoTableOfItsOwnIsNotPlaced) {
  build();
  for (const char* database : {"one", "two"}) {
    pgtest::psql(
        dsn(database),
        "CREATE TABLE days (tenant bigint, day date) PARTITION BY RANGE (day); CREATE TABLE days1 PARTITION OF "
        "days FOR VALUES FROM ('2024-01-01') TO ('2025-01-01')");
  }
  const auto part =
      commands().shard_table({"public", "days1", TableKind::kSharded, "tenants", {"tenant"}}, soon());
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().sqlstate, "55000");
  EXPECT_EQ(part.error().message, "table public.days1 is a partition of days");
  EXPECT_TRUE(commands().shard_table({"public", "days", TableKind::kSharded, "tenants", {"tenant"}}, soon()));
  const auto system = commands().shard_table({"kintsugi", "serial", TableKind::kReplicated, "", {}}, soon());
  ASSERT_FALSE(system);
  EXPECT_EQ(system.error().sqlstate, "42501");
}

// The database has promised them so far, and each shard goes on to promise its own part.
TEST_F(RecoveryTest, UniqueIndexesWithoutTheKeyAreTold) {
  build();
  for (const char* database : {"one", "two"}) {
    pgtest::psql(dsn(database),
                 "CREATE TABLE people (id bigint PRIMARY KEY, tenant bigint, email text UNIQUE, UNIQUE (email, "
                 "tenant))");
  }
  const Table people{"public", "people", TableKind::kSharded, "tenants", {"tenant"}};
  const auto placed = commands().shard_table(people, soon());
  ASSERT_TRUE(placed) << placed.error().to_string();
  EXPECT_EQ(
      *commands().warnings_of(**placed, people, soon()),
      (Lines{
          "the unique index people_email_key (email) of table public.people has not the sharding key in it: it "
          "holds on each shard alone",
          "the unique index people_pkey (id) of table public.people has not the sharding key in it: it holds "
          "on "
          "each shard alone"}));
  EXPECT_EQ(*commands().warnings_of(**placed, orders(), soon()), Lines{});
}

// Statements for it would meet tables that are not there.
TEST_F(RecoveryTest, AShardThatIsBeingPreparedIsNotSaidToBeReady) {
  ASSERT_TRUE(commands().create_shard({"s1", dsn("one"), ShardState::kPreparing}, soon()));
  for (const ShardState state : {ShardState::kOnline, ShardState::kDraining, ShardState::kOffline}) {
    const auto done = commands().alter_shard({"s1", {}, {}, {}, state}, soon());
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sqlstate, "55000");
  }
  EXPECT_TRUE(commands().alter_shard({"s1", "first", {}, {}, {}}, soon()));
}

TEST_F(RecoveryTest, EachDifferenceIsFoundAndRepairedFromTheStore) {
  build();
  EXPECT_EQ(differences(), Lines{});
  pgtest::psql(dsn("one"), "INSERT INTO orders VALUES (33, 1); UPDATE kintsugi.owned SET name = 'x'");
  pgtest::psql(dsn("two"), "DELETE FROM kintsugi.placed_table");
  EXPECT_EQ(differences(),
            (Lines{"shardlet s1: the store gives it shardlet \"a\", its local map does not",
                   "shardlet s1: its local map owns shardlet \"x\", the store does not say so",
                   "row s1: table public.orders has rows with key (33) here, which belongs on shard \"s2\"",
                   "table s2: table public.orders is not so in its local map"}));
  const auto planned = resolve(*store_, Side::kStore, true, soon());
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->size(), 3U);
  EXPECT_EQ(differences(false).size(), 3U);  // a dry run changes nothing
  EXPECT_EQ(*resolve(*store_, Side::kStore, false, soon()), *planned);
  EXPECT_EQ(differences(false), Lines{});
  EXPECT_EQ(differences().size(), 1U);  // rows are for people to decide
}

// By hand, or by a backup without the schema `kintsugi`.
TEST_F(RecoveryTest, ALocalMapThatIsLostOrDamagedIsMadeAnewFromTheStore) {
  build();
  for (const char* damage :
       {"DROP SCHEMA kintsugi CASCADE", "DELETE FROM kintsugi.identity", "DELETE FROM kintsugi.map",
        "UPDATE kintsugi.map SET kind = 'ring'", "UPDATE kintsugi.map SET key_types = '['",
        "UPDATE kintsugi.owned SET state = 99", "UPDATE kintsugi.owned SET state = -1",
        "UPDATE kintsugi.owned SET map = 'nowhere'", "UPDATE kintsugi.owned SET low = '\\x07'",
        "UPDATE kintsugi.placed_table SET key_columns = '7'", "UPDATE kintsugi.placed_table SET kind = 'odd'",
        "TRUNCATE kintsugi.map, kintsugi.owned, kintsugi.placed_table",
        "UPDATE kintsugi.identity SET epoch = -5; DELETE FROM kintsugi.owned"}) {
    pgtest::psql(dsn("two"), damage);
    EXPECT_NE(differences(), Lines{}) << damage;
    const auto planned = resolve(*store_, Side::kStore, true, soon());
    ASSERT_TRUE(planned) << damage << ": " << planned.error().to_string();
    EXPECT_FALSE(planned->empty()) << damage;
    EXPECT_NE(differences(), Lines{}) << damage << ": a dry run changes nothing";
    const auto done = resolve(*store_, Side::kStore, false, soon());
    ASSERT_TRUE(done) << damage << ": " << done.error().to_string();
    EXPECT_EQ(*done, *planned) << damage;
    EXPECT_EQ(differences(), Lines{}) << damage;
  }
}

TEST_F(RecoveryTest, WhatCannotBeMadeAnewIsToldWithItsReason) {
  build();
  const auto told = [&]() -> std::string {
    const auto done = resolve(*store_, Side::kStore, false, soon());
    if (!done) return done.error().to_string();
    return done->size() == 1 ? done->front() : std::to_string(done->size()) + " sentences";
  };
  pgtest::psql(dsn("two"), "DROP TABLE kintsugi.owned");
  EXPECT_NE(told().find("relation \"kintsugi.owned\" does not exist. While no job runs"), std::string::npos)
      << told();
  const auto others = resolve(*store_, Side::kShards, false, soon());
  ASSERT_FALSE(others);
  EXPECT_NE(others.error().message.find("shard \"s2\": "), std::string::npos) << others.error().message;
  EXPECT_NE(others.error().hint.find("--from store"), std::string::npos);
  pgtest::psql(dsn("two"), "UPDATE kintsugi.identity SET shard_id = 'x'");
  EXPECT_NE(told().find("it says that it is shard \"s2\" with the identity x, not "), std::string::npos)
      << told();
  // Rows that are elsewhere by now would be counted twice.
  pgtest::psql(dsn("two"), "DROP SCHEMA kintsugi CASCADE; INSERT INTO orders VALUES (-7, 1)");
  EXPECT_EQ(
      told(),
      "the database of shard \"s2\" has no schema kintsugi and stays as it is, because it is not what that "
      "shard was: table public.orders has key (-7), which belongs on shard \"s1\"");
  // Another database, at the same address.
  pgtest::psql(dsn("two"), "DROP TABLE orders");
  EXPECT_EQ(
      told(),
      "the database of shard \"s2\" has no schema kintsugi and stays as it is, because it is not what that "
      "shard was: it has no table public.orders");
  const auto anew = commands().alter_shard({"s2", {}, dsn("two"), {}, {}}, soon());
  ASSERT_FALSE(anew);
  EXPECT_EQ(anew.error().sqlstate, "55000");
  store_ = open("other");
  const auto rebuilt = rebuild(*store_, {dsn("one"), dsn("two")}, soon());
  ASSERT_FALSE(rebuilt);
  EXPECT_NE(rebuilt.error().message.find("database 2 of those that were named"), std::string::npos)
      << rebuilt.error().message;
}

TEST_F(RecoveryTest, TheStoreIsRepairedFromTheShards) {
  build();
  const StoredMap before = must(store_->load(soon()));
  // Somebody has changed the store alone.
  (void)must(store_->commit(
      before,
      {edit::DropTable{"public", "orders"}, edit::DropShardlet{"a"}, edit::AlterShardlet{"b", "bb", {}, {}}},
      {}, soon()));
  EXPECT_EQ(differences(false).size(), 5U);
  ASSERT_TRUE(resolve(*store_, Side::kShards, true, soon()));
  EXPECT_EQ(differences(false).size(), 5U);
  const auto done = resolve(*store_, Side::kShards, false, soon());
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(differences(), Lines{});
  EXPECT_EQ(map()->shardlet("a"), before.map->shardlet("a"));
  EXPECT_EQ(map()->shardlet("b"), before.map->shardlet("b"));
}

TEST_F(RecoveryTest, TheStoreIsMadeAnewFromTheShards) {
  build();
  ASSERT_TRUE(commands().alter_shard({"s2", {}, {}, {}, ShardState::kDraining}, soon()));
  // Of s2 nothing is newer than of s1: that the home shard is s1 is told by the local maps, not by an order.
  ASSERT_TRUE(commands().alter_shardlet({"b", "b", {}, ShardletState::kReadOnly}, soon()));
  const MapPtr before = map();
  store_.reset();
  store_ = open("other");
  EXPECT_EQ(commands().create_shard({"s1", dsn("one")}, soon()).error().sqlstate, "55000");
  const auto done = rebuild(*store_, {dsn("two"), dsn("one")}, soon());
  ASSERT_TRUE(done) << done.error().to_string();
  const MapPtr after = map();
  EXPECT_GT(after->epoch(), before->epoch());
  EXPECT_EQ(after->home_shard()->name, "s1");
  EXPECT_EQ(differences(), Lines{});
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(after->shardlet(name)->low, before->shardlet(name)->low);
    EXPECT_EQ(after->shard(after->shardlet(name)->shard)->identity,
              before->shard(before->shardlet(name)->shard)->identity);
  }
  EXPECT_EQ(*after->table("public", "orders"), orders());
  EXPECT_EQ(after->shard_named("s2")->state, ShardState::kDraining);
  EXPECT_EQ(rebuild(*store_, {dsn("one")}, soon()).error().sqlstate, "55000");
}

TEST_F(RecoveryTest, AMapIsExportedAndImportedIntoAnEmptyStore) {
  build();
  const auto text = commands().export_all(soon());
  ASSERT_TRUE(text);
  EXPECT_EQ(commands().import_all(*text, soon()).error().sqlstate, "55000");
  for (const char* database : {"one", "two"}) pgtest::psql(dsn(database), "DROP SCHEMA kintsugi CASCADE");
  store_.reset();
  store_ = open("other");
  const auto done = commands().import_all(*text, soon());
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(differences(), Lines{});
  EXPECT_EQ((*done)->mapping("tenants")->shardlet_count(), 2U);
}

}  // namespace kintsugi::shardmap
