#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shardmap/pg_session.h"
#include "shardmap/sql_scripts.h"
#include "tests/pg/cluster.h"
#include "tests/shardmap/store_contract.h"

namespace kintsugi::shardmap {
namespace {

using contract::must;
using contract::soon;

class PostgresStoreTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = std::make_unique<pgtest::Cluster>(); }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override { pgtest::psql(cluster_->dsn(), "DROP SCHEMA IF EXISTS kintsugi_map CASCADE"); }

  static std::unique_ptr<MapStore> open(const std::string& dsn) {
    auto store = open_store(dsn, "", soon());
    if (!store) throw std::runtime_error(store.error().to_string());
    return std::move(*store);
  }
  static std::unique_ptr<MapStore> open() { return open(cluster_->dsn()); }
  static inline std::unique_ptr<pgtest::Cluster> cluster_;
};

}  // namespace

TEST_F(PostgresStoreTest, CommitsAndLoads) {
  contract::commits_and_loads([] { return open(); });
}
TEST_F(PostgresStoreTest, RefusesAStaleBase) {
  contract::refuses_a_stale_base([] { return open(); });
}
TEST_F(PostgresStoreTest, LosesNoUpdate) {
  contract::loses_no_update([] { return open(); }, 4, 12);
}
TEST_F(PostgresStoreTest, WakesWhoWaits) {
  contract::wakes_who_waits([] { return open(); });
}
TEST_F(PostgresStoreTest, KeepsNotes) {
  contract::keeps_notes([] { return open(); });
}

// Editors that are processes, one of them killed in the middle of its work: what was committed is whole.
TEST_F(PostgresStoreTest, ProcessesEditAndDie) {
  (void)open();
  std::vector<pid_t> children;
  for (int e = 0; e < 3; ++e) {
    const pid_t child = fork();
    if (child == 0) {
      const auto store = open();
      for (int i = 0; i < 400;) {
        const auto base = store->load(soon());
        if (!base) _exit(1);
        const std::string name = "p" + std::to_string(e) + "-" + std::to_string(i);
        const auto done =
            store->commit(*base, {edit::CreateShard{name, "d", "", ShardState::kOnline}}, {}, soon());
        if (!done && done.error().sqlstate != "40001") _exit(2);
        if (done) ++i;
      }
      _exit(0);
    }
    children.push_back(child);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  const StoredMap last = must(open()->load(soon()));
  EXPECT_GT(last.map->epoch(), 3U);
  EXPECT_EQ(last.map->shards().size(), last.map->epoch());
  EXPECT_EQ((*open()->edits_since(0, "", soon()))->size(), last.map->epoch());
}

// It has the lock that every change of the map takes.
TEST_F(PostgresStoreTest, AProcessThatIsFrozenInACommitHoldsNobodyUpForLong) {
  const auto store = open();
  const auto make = [](const char* name) {
    return MapEdit{edit::CreateShard{name, "d", "", ShardState::kOnline}};
  };
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto its = open();
    setenv("KINTSUGI_FAILPOINT", "stop store: in the midst of a commit", 1);
    const auto done = its->commit(*its->load(soon()), make("frozen"), {}, soon());
    _exit(done ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  const auto done = store->commit(must(store->load(soon())), make("awake"), {}, soon());
  EXPECT_TRUE(done) << done.error().to_string();
  kill(child, SIGCONT);
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it believes that it has committed";
  EXPECT_EQ(must(store->load(soon())).map->shards().size(), 1U);
}

TEST_F(PostgresStoreTest, ANewerStoreIsRefused) {
  open();
  pgtest::psql(cluster_->dsn(), "INSERT INTO kintsugi_map.schema_version (version) VALUES (99)");
  const auto store = open_store(cluster_->dsn(), "", soon());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().sqlstate, "0A000");
  EXPECT_NE(store.error().message.find("version 99"), std::string::npos);
}

TEST_F(PostgresStoreTest, AnOlderStoreIsExtendedAndKeepsWhatItHas) {
  const auto store = open();
  (void)must(store->commit(must(store->load(soon())),
                           MapEdit{edit::CreateMap{"m", MapKind::kRange, {KeyType::kInt}}}, {}, soon()));
  const auto session = PgSession::connect(cluster_->dsn(), true, soon());
  // As a program that knows one version more would do at its start, twice.
  std::vector<std::string_view> later = sql_scripts::store_postgres();
  later.emplace_back("ALTER TABLE shard ADD COLUMN region text NOT NULL DEFAULT 'here'");
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(migrate_schema(**session, "kintsugi_map", later, "the map store", soon()));
  }
  EXPECT_EQ((*session)->query("SELECT name FROM kintsugi_map.map", {}, soon())->size(), 1U);
  EXPECT_FALSE(open_store(cluster_->dsn(), "", soon())) << "this program is now the older one";
}

TEST_F(PostgresStoreTest, ManyOpenAnEmptyStoreAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([] { EXPECT_TRUE(open()->load(soon())); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PostgresStoreTest, AConnectionStringWithAPasswordIsNeverRepeated) {
  for (const char* dsn :
       {"host=127.0.0.1 port=1 password=secret dbname=x", "postgresql://u:secret@", "secret"}) {
    auto store = open_store(dsn, "", Deadline::in(std::chrono::seconds(3)));
    std::string said = store ? (*store)->load(Deadline::in(std::chrono::seconds(3))).error().to_string()
                             : store.error().to_string();
    EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  }
}

// What a database has set for its application does not change what the store says or keeps. The frozen WAL
// writer makes sure that a commit is not on the disk by chance.
TEST_F(PostgresStoreTest, SettingsOfTheDatabaseChangeNothingAndACommitSurvivesACrash) {
  pgtest::Cluster failing;
  pgtest::psql(
      failing.dsn(),
      "ALTER DATABASE postgres SET synchronous_commit = off; ALTER DATABASE postgres SET bytea_output = "
      "escape; ALTER DATABASE postgres SET standard_conforming_strings = off; ALTER DATABASE postgres SET "
      "client_encoding = 'LATIN1'; ALTER DATABASE postgres SET default_transaction_isolation = "
      "'serializable'; ALTER DATABASE postgres SET lock_timeout = 1");
  StoredMap committed;
  {
    const auto store = open(failing.dsn());
    const pid_t writer = std::stoi(
        pgtest::psql(failing.dsn(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"));
    kill(writer, SIGSTOP);
    MapEdit edit{edit::CreateShard{"s", "dbname=\\x", "", ShardState::kOnline},
                 edit::CreateMap{"m", MapKind::kRange, {KeyType::kText}}};
    for (const char* low : {"a\\b", "ü中", "\x01\x7f'"}) {
      edit.operations.emplace_back(edit::CreateShardlet{"m",
                                                        std::string("from ") + low,
                                                        {BoundColumn::value(low)},
                                                        {BoundColumn::value(std::string(low) + "z")},
                                                        {},
                                                        "s",
                                                        ShardletState::kOnline});
    }
    committed = must(store->commit(must(store->load(soon())), edit, {}, soon()));
  }
  failing.kill();
  failing.start();
  const StoredMap loaded = must(open(failing.dsn())->load(soon()));
  EXPECT_EQ(loaded.map->epoch(), committed.map->epoch());
  const auto found = [](const StoredMap& stored) {
    return stored.map->shardlets_of(*stored.map->mapping("m"));
  };
  ASSERT_EQ(found(loaded).size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found(loaded)[i].name, found(committed)[i].name);
    EXPECT_EQ(found(loaded)[i].low, found(committed)[i].low);
    EXPECT_EQ(found(loaded)[i].high, found(committed)[i].high);
  }
}

TEST_F(PostgresStoreTest, AFrozenStoreIsAnErrorByTheDeadline) {
  pgtest::Cluster frozen;
  const auto store = open(frozen.dsn());
  const StoredMap base = must(store->load(soon()));
  frozen.freeze();
  const auto begin = std::chrono::steady_clock::now();
  const auto done = store->commit(base, {edit::CreateMap{"m", MapKind::kRange, {KeyType::kInt}}}, {},
                                  Deadline::in(std::chrono::milliseconds(800)));
  const auto took = std::chrono::steady_clock::now() - begin;
  frozen.thaw();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().sqlstate, "KG006") << done.error().to_string();
  EXPECT_LT(took, std::chrono::seconds(6));
}

// The primary dies and the standby is promoted, while an editor goes on: what was answered is there, nothing
// twice.
TEST_F(PostgresStoreTest, FollowsAPromotedStandbyAndReadsFromItBefore) {
  pgtest::Cluster primary;
  pgtest::Cluster standby = pgtest::Cluster::standby_of(primary);
  pgtest::psql(primary.dsn(),
               "ALTER SYSTEM SET synchronous_standby_names = '*'; ALTER SYSTEM SET synchronous_commit = on;"
               "SELECT pg_reload_conf()");
  const std::string both = "host=127.0.0.1,127.0.0.1 port=" + std::to_string(primary.port()) + "," +
                           std::to_string(standby.port()) + " dbname=postgres user=postgres";
  std::atomic<bool> stop{false};
  std::atomic<int> committed{0};
  std::atomic<int> refused{0};
  std::atomic<int> wrong{0};
  (void)must(open(both)->load(soon()));
  std::thread editor([&] {
    const auto store = open(both);
    for (int i = 0; !stop;) {
      const Deadline deadline = Deadline::in(std::chrono::seconds(3));
      const auto base = store->load(deadline);
      if (!base) continue;
      const auto done = store->commit(
          *base, {edit::CreateShard{"n" + std::to_string(i), "d", "", ShardState::kOnline}}, {}, deadline);
      if (done) {
        ++i;
        ++committed;
      } else if (done.error().sqlstate == "KG006") {
        ++refused;
        if (!done.error().detail.empty() && done.error().detail.find("not known") != std::string::npos) ++i;
      } else if (done.error().sqlstate != "40001" && done.error().sqlstate != "42710") {
        ADD_FAILURE() << done.error().to_string();
        ++wrong;
      }
    }
  });
  struct Join {  // also when something else fails, which could not be told otherwise
    std::atomic<bool>& stop;
    std::thread& thread;
    ~Join() {
      stop = true;
      if (thread.joinable()) thread.join();
    }
  } const join{stop, editor};
  while (committed < 20) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  primary.kill();
  // Nobody is primary: reads go to the standby.
  const auto reader = open(both);
  const StoredMap meanwhile = must(reader->load(soon()));
  EXPECT_GE(meanwhile.map->epoch(), 20U);
  EXPECT_FALSE(reader->writable());
  const auto refusal =
      reader->commit(meanwhile, {edit::DropShard{"n1"}}, {}, Deadline::in(std::chrono::seconds(2)));
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().sqlstate, "KG006") << refusal.error().to_string();
  const int before = committed;
  standby.promote();
  pgtest::psql(standby.dsn(), "ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (committed < before + 10 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(committed, before + 10);
  stop = true;
  editor.join();
  const StoredMap last = must(open(both)->load(soon()));
  EXPECT_GE(static_cast<int>(last.map->shards().size()), committed.load());
  EXPECT_EQ(last.map->shards().size(), last.map->epoch());
}

}  // namespace kintsugi::shardmap
