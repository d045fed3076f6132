// Changes that touch the store and shards, killed between any two steps: afterwards store and local maps agree.
#include "shardmap/map_change.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shardmap/local_map.h"
#include "shardmap/map_commands.h"
#include "shardmap/pg_session.h"
#include "shardmap/recovery.h"
#include "shardmap/sql_scripts.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/store_contract.h"

namespace kintsugi::shardmap {
namespace {

using namespace std::chrono_literals;
using contract::must;
using contract::soon;

class MapChangeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<pgtest::Cluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    std::string sql;
    for (const char* name : {"store", "one", "two", "three"}) {
      sql += "DROP DATABASE IF EXISTS " + std::string(name) + " WITH (FORCE);\nCREATE DATABASE " + name + ";\n";
    }
    pgtest::psql(cluster_->dsn(), sql);
    store_ = open();
  }
  static std::string dsn(const std::string& database) { return cluster_->dsn(database); }
  static std::unique_ptr<MapStore> open() {
    auto store = open_store(dsn("store"), "", soon());
    if (!store) throw std::runtime_error(store.error().to_string());
    return std::move(*store);
  }
  MapChange change() { return MapChange(*store_); }
  MapPtr map() { return must(store_->load(soon())).map; }

  // Two shards, a map with two shardlets, a table.
  void build() {
    ASSERT_TRUE(change().create_shard({"s1", dsn("one")}, soon()));
    ASSERT_TRUE(change().create_shard({"s2", dsn("two")}, soon()));
    const auto done = change().edit(
        {edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint}},
         edit::CreateShardlet{
             "tenants", "a", {BoundColumn::min()}, {BoundColumn::value("0")}, {}, "s1", ShardletState::kOnline},
         edit::CreateShardlet{
             "tenants", "b", {BoundColumn::value("0")}, {BoundColumn::max()}, {}, "s2", ShardletState::kOnline},
         edit::PutTable{Table{"public", "orders", TableKind::kSharded, "tenants", {"tenant"}}}},
        soon());
    ASSERT_TRUE(done) << done.error().to_string();
  }

  // What differs between the store and the databases; empty when they agree.
  std::string disagreement() {
    const MapPtr now = map();
    for (const char* kind : {"sync", "intent", "adopt", "placing"}) {
      if (!store_->notes(kind, soon())->empty()) return std::string("there are notes of kind ") + kind;
    }
    for (const char* database : {"one", "two", "three"}) {
      auto local = LocalMap::connect(dsn(database), soon());
      const auto identity = local->identity(soon());
      const Shard* shard = nullptr;
      for (const Shard* each : now->shards()) {
        if (each->dsn == dsn(database)) shard = each;
      }
      if (shard == nullptr) {
        if (*identity) return std::string(database) + " is claimed without being in the map";
        continue;
      }
      if (!*identity || (*identity)->shard_id != shard->identity)
        return std::string(database) + " has another identity";
      if ((*identity)->store_id != now->store_id()) return std::string(database) + " is another store's";
      if ((*identity)->home != (shard == now->home_shard()) || (*identity)->state != shard->state)
        return std::string(database) + " has another state, or home";
      const auto have = local->read(soon());
      const LocalContents want = contents_of(*now, *shard);
      if (have->tables != want.tables) return std::string(database) + " has other tables";
      if (have->identity.shard_name != want.identity.shard_name)
        return std::string(database) + " has another name";
      if (have->mappings.size() != want.mappings.size()) return std::string(database) + " has other maps";
      for (std::size_t i = 0; i < have->mappings.size(); ++i) {
        if (have->mappings[i].owned != want.mappings[i].owned)
          return std::string(database) + " owns other shardlets";
      }
    }
    return "";
  }

  // Runs `work` in a process that dies at the failpoint.
  static void die_at(const std::string& failpoint, const std::function<void(MapChange&)>& work) {
    die_with_store_at(failpoint, [&work](MapStore& store) {
      MapChange change(store);
      work(change);
    });
  }
  static void die_with_store_at(const std::string& failpoint, const std::function<void(MapStore&)>& work) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setenv("KINTSUGI_FAILPOINT", failpoint.c_str(), 1);
      work(*open());
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it did not come by " << failpoint;
  }

  // By a recoverer alone. It begins when the maker is dead: one that was slow would be taken for dead, and what
  // he had begun undone before he came to the point at which he is to die.
  void expect_agreement_soon(const std::string& where) {
    const Recoverer recoverer(dsn("store"), "", 100ms, 300ms);
    std::string left;
    const auto end = std::chrono::steady_clock::now() + 10s;
    do {
      left = disagreement();
      if (left.empty()) return;
      std::this_thread::sleep_for(50ms);
    } while (std::chrono::steady_clock::now() < end);
    ADD_FAILURE() << "killed " << where << ": " << left;
  }

  static inline std::unique_ptr<pgtest::Cluster> cluster_;
  std::unique_ptr<MapStore> store_;
};

}  // namespace

TEST_F(MapChangeTest, LocalMapsFollowTheStore) {
  build();
  EXPECT_EQ(disagreement(), "");
  ASSERT_TRUE(change().edit({edit::AlterShardlet{"b", "bb", "s1", ShardletState::kReadOnly},
                             edit::AlterShard{"s2", "second", {}, {}, {}}},
                            soon()));
  EXPECT_EQ(disagreement(), "");
  ASSERT_TRUE(change().drop_shard("second", soon()));
  EXPECT_EQ(disagreement(), "");
  EXPECT_EQ(change().drop_shard("s1", soon()).error().sqlstate, "2BP01");
  EXPECT_EQ(pgtest::psql(dsn("two"), "SELECT count(*) FROM pg_namespace WHERE nspname = 'kintsugi'"), "0");
}

// No shardlet has them: somebody has brought them there past the routers, and nobody would find them any more.
TEST_F(MapChangeTest, AShardWithRowsOfAShardedTableIsNotLetGo) {
  build();
  pgtest::psql(dsn("two"), "CREATE TABLE orders (tenant bigint); CREATE TABLE other (id int)");
  ASSERT_TRUE(change().edit({edit::AlterShardlet{"b", {}, "s1", {}}}, soon()));
  pgtest::psql(dsn("two"), "INSERT INTO orders VALUES (7); INSERT INTO other VALUES (7)");
  const auto refused = change().drop_shard("s2", soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "2BP01");
  EXPECT_NE(refused.error().message.find("there are rows in public.orders"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(disagreement(), "");
  pgtest::psql(dsn("two"), "DELETE FROM orders");
  ASSERT_TRUE(change().drop_shard("s2", soon()));
  EXPECT_EQ(disagreement(), "");
  pgtest::psql(dsn("two"), "DROP TABLE orders, other");
}

TEST_F(MapChangeTest, ADatabaseIsOneShardOfOneStore) {
  build();
  const auto twice = change().create_shard({"s3", dsn("one")}, soon());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().sqlstate, "55000");
  EXPECT_NE(twice.error().message.find("already shard \"s1\""), std::string::npos) << twice.error().message;
  auto other = open_store(dsn("three"), "", soon());
  ASSERT_TRUE(other);
  const auto stolen = MapChange(**other).create_shard({"mine", dsn("two")}, soon());
  ASSERT_FALSE(stolen);
  EXPECT_EQ(stolen.error().sqlstate, "55000");
  EXPECT_NE(stolen.error().message.find(map()->store_id()), std::string::npos);
  EXPECT_TRUE((*other)->notes("intent", soon())->empty());
  const auto away = change().create_shard({"s3", "host=127.0.0.1 port=1 dbname=x"}, soon());
  EXPECT_EQ(away.error().sqlstate, "KG005");
}

TEST_F(MapChangeTest, AShardThatMovedIsAttachedByItsIdentity) {
  build();
  pgtest::psql(cluster_->dsn(), "DROP DATABASE three");
  store_.reset();
  pgtest::psql(cluster_->dsn(), "CREATE DATABASE three TEMPLATE two");
  store_ = open();
  EXPECT_EQ(change().reattach_shard("s2", dsn("one"), soon()).error().sqlstate, "55000");
  EXPECT_EQ(change().reattach_shard("s2", dsn("store"), soon()).error().sqlstate, "55000");
  const auto done = change().reattach_shard("s2", dsn("three"), soon());
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ((*done)->shard_named("s2")->dsn, dsn("three"));
}

// Restored from a backup that is older than the map: statements over all shards would see what has moved twice.
TEST_F(MapChangeTest, AShardWithRowsThatAreElsewhereByNowIsNotAttached) {
  build();
  pgtest::psql(dsn("one"), "CREATE TABLE orders (tenant bigint PRIMARY KEY)");
  pgtest::psql(dsn("two"), "CREATE TABLE orders (tenant bigint PRIMARY KEY); INSERT INTO orders VALUES (207)");
  pgtest::psql(cluster_->dsn(), "DROP DATABASE three");
  pgtest::psql(cluster_->dsn(), "CREATE DATABASE three TEMPLATE two");
  ASSERT_TRUE(change().edit({edit::AlterShardlet{"b", {}, "s1", {}}}, soon()));
  pgtest::psql(dsn("two"), "DELETE FROM orders");
  pgtest::psql(dsn("one"), "INSERT INTO orders VALUES (207)");
  const auto refused = change().reattach_shard("s2", dsn("three"), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "55000");
  EXPECT_EQ(refused.error().message,
            "the database has rows of other shards: table public.orders has key (207), which belongs on shard "
            "\"s1\"");
  EXPECT_EQ(map()->shard_named("s2")->dsn, dsn("two"));
  pgtest::psql(dsn("three"), "DELETE FROM orders");
  ASSERT_TRUE(change().reattach_shard("s2", dsn("three"), soon()));
  EXPECT_EQ(map()->shard_named("s2")->dsn, dsn("three"));
  pgtest::psql(dsn("one"), "DROP TABLE orders");
}

TEST_F(MapChangeTest, AShardThatIsAwayFollowsWhenItIsBack) {
  build();
  ASSERT_TRUE(change().edit({edit::AlterShard{"s2", {}, dsn("nowhere"), {}, {}}}, soon()));
  ASSERT_TRUE(change().edit({edit::AlterShardlet{"b", {}, {}, ShardletState::kOffline}}, soon()));
  EXPECT_EQ(*change().recover(0ms, soon()), 1);
  ASSERT_TRUE(change().edit({edit::AlterShard{"s2", {}, dsn("two"), {}, {}}}, soon()));
  EXPECT_EQ(*change().recover(0ms, soon()), 0);
  EXPECT_EQ(disagreement(), "");
}

TEST_F(MapChangeTest, ALocalMapThatAnOlderProgramLeftIsBroughtUp) {
  const std::vector<std::string_view> now = sql_scripts::shard();
  ASSERT_GT(now.size(), 1U);
  for (std::size_t version = 1; version < now.size(); ++version) {
    {
      const auto session = PgSession::connect(dsn("one"), true, soon());
      const std::vector<std::string_view> then(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(version));
      ASSERT_TRUE(migrate_schema(**session, "kintsugi", then, "an older schema", soon()));
    }
    build();
    EXPECT_EQ(disagreement(), "") << "from version " << version;
    const auto session = PgSession::connect(dsn("one"), true, soon());
    const auto versions =
        (*session)->query("SELECT count(*), max(version) FROM kintsugi.schema_version", {}, soon());
    EXPECT_EQ(versions->at(0), (PgRow{std::to_string(now.size()), std::to_string(now.size())}));
    SetUp();  // new databases
  }
}

TEST_F(MapChangeTest, KilledAnywhereEverythingAgreesWithinTenSeconds) {
  build();
  const auto create = [](MapChange& change) { (void)change.create_shard({"s3", dsn("three")}, soon()); };
  for (const char* point : {"create shard: after intent", "create shard: after claim", "before commit",
                            "after commit", "after local map"}) {
    die_at(point, create);
    expect_agreement_soon(std::string("making a shard, ") + point);
    if (map()->shard_named("s3") != nullptr) {
      ASSERT_TRUE(change().drop_shard("s3", soon()));
    }
    EXPECT_EQ(disagreement(), "");
  }
  for (const char* point :
       {"before commit", "after commit", "drop shard: after commit", "give back: after release"}) {
    ASSERT_TRUE(change().create_shard({"s3", dsn("three")}, soon()));
    die_at(point, [](MapChange& change) { (void)change.drop_shard("s3", soon()); });
    expect_agreement_soon(std::string("dropping a shard, ") + point);
    if (map()->shard_named("s3") != nullptr) {
      ASSERT_TRUE(change().drop_shard("s3", soon()));
    }
  }
  int n = 0;
  for (const char* point : {"before commit", "after commit", "after local map"}) {
    const std::string to = n++ % 2 == 0 ? "s1" : "s2";
    die_at(point, [&to](MapChange& change) {
      (void)change.edit({edit::AlterShardlet{"b", {}, to, {}}, edit::AlterShardlet{"a", {}, to, {}}}, soon());
    });
    expect_agreement_soon(std::string("moving shardlets, ") + point);
  }
}

// A local map is as large as its part of the map; it is in step when the change is answered, not some day.
TEST_F(MapChangeTest, ALocalMapOfManyShardletsFollowsAtOnce) {
  const auto patiently = [] { return Deadline::in(3min); };  // the store takes its time for so many
  build();
  ASSERT_TRUE(
      MapCommands(*store_).create_map({"many", MapKind::kHash, {KeyType::kUuid}, 65536, {"s1"}}, patiently()));
  EXPECT_EQ(disagreement(), "");
  MapEdit list{edit::CreateMap{"names", MapKind::kList, {KeyType::kText}}};
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "n" + std::to_string(i);
    list.operations.emplace_back(
        edit::CreateShardlet{"names", name, {}, {}, {{name}, {name + "'"}}, "s2", ShardletState::kOnline});
  }
  ASSERT_TRUE(change().edit(list, patiently()));
  EXPECT_EQ(disagreement(), "");
  ASSERT_TRUE(change().edit({edit::DropMap{"many"}, edit::DropMap{"names"}}, patiently()));
  EXPECT_EQ(disagreement(), "");
}

// The undoing of a shard's making is a change of both sides as well: a recoverer dies in it, another one ends
// it.
TEST_F(MapChangeTest, KilledWhileItIsUndoneEverythingAgreesWithinTenSeconds) {
  build();
  for (const char* begun : {"create shard: after intent", "create shard: after claim"}) {
    for (const char* point : {"give back: after taking over", "give back: after release"}) {
      die_at(begun, [](MapChange& change) { (void)change.create_shard({"s3", dsn("three")}, soon()); });
      die_at(point, [](MapChange& change) { (void)change.recover(0ms, soon()); });
      expect_agreement_soon(std::string(begun) + ", undone, " + point);
      EXPECT_EQ(map()->shard_named("s3"), nullptr);
    }
  }
}

TEST_F(MapChangeTest, KilledWhileAShardIsAttachedAgainEverythingAgreesWithinTenSeconds) {
  build();
  pgtest::psql(cluster_->dsn(), "DROP DATABASE three; CREATE DATABASE three TEMPLATE two");
  int n = 0;
  for (const char* point : {"before commit", "after commit", "after local map"}) {
    // What the map has learnt since the copy was made, the copy learns when it is attached.
    const bool there = n % 2 == 0;
    ASSERT_TRUE(change().edit({edit::AlterShardlet{there ? "b" : "bb", there ? "bb" : "b", {}, {}}}, soon()));
    const std::string to = n++ % 2 == 0 ? "three" : "two";
    die_at(point, [&to](MapChange& change) { (void)change.reattach_shard("s2", dsn(to), soon()); });
    const Recoverer recoverer(dsn("store"), "", 100ms, 300ms);
    const auto agrees = [&] {
      const MapPtr now = map();
      const auto local = LocalMap::connect(now->shard_named("s2")->dsn, soon())->read(soon());
      return store_->notes("sync", soon())->empty() && local->identity.epoch == now->epoch() &&
             local->mappings.at(0).owned == contents_of(*now, *now->shard_named("s2")).mappings.at(0).owned;
    };
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!agrees() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(agrees()) << point;
  }
}

TEST_F(MapChangeTest, KilledWhileItIsRepairedEverythingAgreesWithinTenSeconds) {
  build();
  for (const Side side : {Side::kStore, Side::kShards}) {
    for (const char* point : {"before commit", "after commit", "after local map"}) {
      // Two shards, each wrong in its own way, and further than the store.
      pgtest::psql(
          dsn("one"),
          "UPDATE kintsugi.owned SET name = 'x' || name; UPDATE kintsugi.identity SET epoch = epoch + 50");
      pgtest::psql(dsn("two"), "UPDATE kintsugi.owned SET state = 1 - state");
      const auto repair = [side](MapStore& store) { (void)resolve(store, side, false, soon()); };
      die_with_store_at(point, repair);
      if (std::string(point) == "before commit") {
        EXPECT_FALSE(check(*store_, false, soon())->empty());  // nothing was begun
        repair(*store_);
      }
      expect_agreement_soon(std::string("a repair, ") + point);
      EXPECT_TRUE(check(*store_, false, soon())->empty());
      EXPECT_EQ(map()->shardlet("a").has_value(), side == Side::kStore) << point;
    }
  }
}

TEST_F(MapChangeTest, KilledWhileAShardThatHasLostItsSchemaIsMadeItAgainEverythingAgreesWithinTenSeconds) {
  build();
  for (const char* database : {"one", "two"})
    pgtest::psql(dsn(database), "CREATE TABLE orders (tenant bigint PRIMARY KEY)");
  for (const char* point : {"before commit", "after commit", "adopt: after adoption", "after local map"}) {
    pgtest::psql(dsn("two"), "DROP SCHEMA kintsugi CASCADE");
    const auto repair = [](MapStore& store) { (void)resolve(store, Side::kStore, false, soon()); };
    die_with_store_at(point, repair);
    if (std::string(point) == "before commit") {
      EXPECT_FALSE(LocalMap::connect(dsn("two"), soon())->identity(soon())->has_value()) << "nothing was begun";
      repair(*store_);
    }
    expect_agreement_soon(std::string("a schema made again, ") + point);
    EXPECT_TRUE(store_->notes("adopt", soon())->empty()) << point;
    EXPECT_TRUE(check(*store_, false, soon())->empty()) << point;
  }
}

// A guard that stays behind would refuse every write for ever; one that goes too early is no guard.
TEST_F(MapChangeTest, KilledWhileATableIsPlacedEverythingAgreesWithinTenSeconds) {
  build();
  for (const char* database : {"one", "two"}) {
    pgtest::psql(dsn(database),
                 "CREATE TABLE lines (tenant bigint); CREATE TABLE rates (code text PRIMARY KEY)");
  }
  const Table lines{"public", "lines", TableKind::kSharded, "tenants", {"tenant"}};
  const Table rates{"public", "rates", TableKind::kReplicated, "", {}};
  const auto guards = [](const char* database) {
    return pgtest::psql(dsn(database), "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'kintsugi%'");
  };
  struct Point {
    const char* name;
    bool guarded, committed;
  };
  for (const Table& table : {lines, rates}) {
    const auto place = [&table](MapStore& store) { (void)MapCommands(store).shard_table(table, soon()); };
    for (const auto& [point, guarded, committed] :
         {Point{"place table: after note", false, false}, Point{"place table: guarded", true, false},
          Point{"before commit", true, false}, Point{"after commit", true, true},
          Point{"after local map", true, true}, Point{"place table: after commit", true, true},
          Point{"place table: lowered", false, true}}) {
      die_with_store_at(point, place);
      EXPECT_EQ(guards("one") != "0", guarded) << point;
      // Its lock goes when its server has noticed.
      const std::string locks =
          "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE locktype = "
          "'advisory' AND datname = current_database()";
      while (pgtest::psql(dsn("one"), locks) != "0") std::this_thread::sleep_for(10ms);
      // Whoever comes by first may die of it, too.
      const auto clear = [](MapChange& change) { (void)change.recover(0ms, soon()); };
      if (!committed) die_at("clear placing: taken over", clear);
      while (pgtest::psql(dsn("one"), locks) != "0") std::this_thread::sleep_for(10ms);
      die_at("clear placing: lowered", clear);
      expect_agreement_soon(std::string("placing a table, ") + point);
      EXPECT_EQ(guards("one") + guards("two"), "00") << point;
      EXPECT_EQ(map()->table("public", table.name) != nullptr, committed) << point;
      if (committed) {
        ASSERT_TRUE(change().edit({edit::DropTable{"public", table.name}}, soon()));
      }
      EXPECT_EQ(disagreement(), "");
    }
    place(*store_);
    EXPECT_NE(map()->table("public", table.name), nullptr);
    EXPECT_EQ(disagreement(), "");
    EXPECT_EQ(guards("one") + guards("two"), "00");
  }
}

// Between the check of the rows and the commit nobody brings in a row that the map would not find.
TEST_F(MapChangeTest, WhileATableIsPlacedNobodyWritesWhatTheMapWouldNotFind) {
  build();
  for (const char* database : {"one", "two"})
    pgtest::psql(dsn(database), "CREATE TABLE lines (tenant bigint); CREATE TABLE rates (code text)");
  const auto sqlstate = [](const char* database, const std::string& sql) {
    const auto session = PgSession::connect(dsn(database), true, soon());
    const Status done = (*session)->script(sql, soon());
    return done ? "" : done.error().sqlstate;
  };
  const auto frozen = [&](const Table& table, const std::string& point,
                          const std::function<void()>& meanwhile) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      setenv("KINTSUGI_FAILPOINT", ("stop " + point).c_str(), 1);
      const auto placed = MapCommands(*open()).shard_table(table, soon());
      _exit(placed ? 0 : placed.error().sqlstate == "55000" ? 5 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status)) << "it did not come by " << point;
    meanwhile();
    kill(child, SIGCONT);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(disagreement(), "");
    return WEXITSTATUS(status);
  };
  const Table lines{"public", "lines", TableKind::kSharded, "tenants", {"tenant"}};
  const Table rates{"public", "rates", TableKind::kReplicated, "", {}};
  // Too late for the first look at the rows, and before the guard: the second finds it.
  EXPECT_EQ(frozen(lines, "place table: after note",
                   [&] { EXPECT_EQ(sqlstate("one", "INSERT INTO lines VALUES (1)"), ""); }),
            5);
  EXPECT_EQ(map()->table("public", "lines"), nullptr);
  EXPECT_EQ(sqlstate("one", "DELETE FROM lines"), "") << "its guard is still there";
  // Behind the guard; the failpoint is passed a second time when it wakes.
  EXPECT_EQ(frozen(lines, "before commit",
                   [&] {
                     EXPECT_EQ(sqlstate("one", "INSERT INTO lines VALUES (-1)"), "") << "it belongs here";
                     EXPECT_EQ(sqlstate("one", "INSERT INTO lines VALUES (1)"), "40001");
                     EXPECT_EQ(sqlstate("one", "INSERT INTO lines VALUES (NULL)"), "40001");
                     EXPECT_EQ(sqlstate("one", "UPDATE lines SET tenant = 1"), "40001");
                     EXPECT_EQ(sqlstate("two", "INSERT INTO lines VALUES (1)"), "40001")
                         << "routers go home yet";
                     // A recoverer sees that somebody is at work, and lets him.
                     EXPECT_GT(change().recover(0ms, soon()).value_or(0), 0);
                     EXPECT_EQ(sqlstate("one", "INSERT INTO lines VALUES (1)"), "40001");
                     const auto second = MapCommands(*store_).shard_table(lines, soon());
                     EXPECT_EQ(second ? "" : second.error().sqlstate, "55006");
                   }),
            0);
  EXPECT_NE(map()->table("public", "lines"), nullptr);
  EXPECT_EQ(sqlstate("two", "INSERT INTO lines VALUES (1)"), "");
  EXPECT_EQ(frozen(rates, "before commit",
                   [&] {
                     for (const char* sql : {"INSERT INTO rates VALUES ('eur')", "TRUNCATE rates"})
                       EXPECT_EQ(sqlstate("one", sql), "40001");
                   }),
            0);
  EXPECT_EQ(sqlstate("one", "INSERT INTO rates VALUES ('eur')"), "");
}

// Its transaction may have to be waited for, not for ever; and then nothing is left of the attempt.
TEST_F(MapChangeTest, ATableThatSomebodyWritesToForLongIsNotPlaced) {
  build();
  for (const char* database : {"one", "two"}) pgtest::psql(dsn(database), "CREATE TABLE lines (tenant bigint)");
  const Table lines{"public", "lines", TableKind::kSharded, "tenants", {"tenant"}};
  const auto writer = *PgSession::connect(dsn("one"), true, soon());
  ASSERT_TRUE(writer->script("BEGIN; INSERT INTO lines VALUES (-1)", soon()));
  const auto placed = MapCommands(*store_).shard_table(lines, Deadline::in(3s));
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().sqlstate, "55P03") << placed.error().to_string();
  EXPECT_EQ(map()->table("public", "lines"), nullptr);
  ASSERT_TRUE(writer->script("COMMIT", soon()));
  expect_agreement_soon("not placed");
  EXPECT_TRUE(MapCommands(*store_).shard_table(lines, soon()));
}

TEST_F(MapChangeTest, KilledWhileTheStoreIsMadeAnewEverythingAgreesWithinTenSeconds) {
  for (const char* point : {"before commit", "after commit", "adopt: after adoption", "after local map"}) {
    build();
    const std::string was = map()->store_id();
    store_.reset();
    pgtest::psql(cluster_->dsn(), "DROP DATABASE store WITH (FORCE); CREATE DATABASE store");
    store_ = open();
    // Not in the order in which they were made: which of them is the home shard, they know themselves.
    const auto make = [](MapStore& store) { (void)rebuild(store, {dsn("two"), dsn("one")}, soon()); };
    die_with_store_at(point, make);
    if (std::string(point) == "before commit") {
      EXPECT_EQ(map()->epoch(), 0U);
      EXPECT_EQ((*LocalMap::connect(dsn("one"), soon())->identity(soon()))->store_id, was);
      make(*store_);
    }
    expect_agreement_soon(std::string("a rebuild, ") + point);
    EXPECT_EQ(map()->home_shard()->name, "s1");
    EXPECT_EQ(map()->mapping("tenants")->shardlet_count(), 2U);
    SetUp();
  }
}

TEST_F(MapChangeTest, KilledWhileAFileIsImportedEverythingAgreesWithinTenSeconds) {
  build();
  const std::string file = *MapCommands(*store_).export_all(soon());
  for (const char* point : {"create shard: after intent", "create shard: after claim", "before commit",
                            "after commit", "after local map"}) {
    SetUp();
    die_with_store_at(point, [&file](MapStore& store) { (void)MapCommands(store).import_all(file, soon()); });
    expect_agreement_soon(std::string("an import, ") + point);
    // All of it or nothing.
    const bool all = map()->shard_named("s1") != nullptr;
    EXPECT_EQ(map()->mappings().size(), all ? 1U : 0U) << point;
    EXPECT_EQ(map()->shards().size(), all ? 2U : 0U) << point;
    if (!all) {
      ASSERT_TRUE(MapCommands(*store_).import_all(file, soon())) << point;
    }
    EXPECT_EQ(disagreement(), "");
  }
}

// A claim that a sleeping maker left behind does not block the database for ever.
TEST_F(MapChangeTest, ALeftOverClaimOfOurOwnIsTakenOver) {
  build();
  auto local = LocalMap::connect(dsn("three"), soon());
  ASSERT_TRUE(local->claim(map()->store_id(), random_uuid(), "s3", soon()));
  ASSERT_TRUE(change().create_shard({"s3", dsn("three")}, soon()));
  EXPECT_EQ(disagreement(), "");
}

// A recoverer that gives up on the making of a shard and one who makes it still: only one of them wins.
TEST_F(MapChangeTest, AnImpatientRecovererAndTheMakerDoNotBothWin) {
  std::atomic<bool> stop{false};
  std::thread impatient([&] {
    const auto store = open();
    while (!stop) (void)MapChange(*store).recover(0ms, soon());
  });
  for (int i = 0; i < 15; ++i) {
    if (change().create_shard({"s1", dsn("one")}, soon())) {
      ASSERT_TRUE(change().drop_shard("s1", soon()));
    }
  }
  stop = true;
  impatient.join();
  while (*change().recover(0ms, soon()) > 0) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(disagreement(), "");
}

}  // namespace kintsugi::shardmap
