// Tables and columns that are not as most are: either they move with every byte, or the move says why not
// before it has touched anything.
#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class OddTest : public Moving {
 protected:
  void SetUp() override {
    Moving::SetUp();
    ranges();
  }
  void expect_refused(const std::string& reason) {
    const auto refused = jobs().submit(move_of("b", "s2"), soon());
    ASSERT_FALSE(refused) << reason;
    EXPECT_EQ(refused.error().sqlstate, "55000");
    EXPECT_NE(refused.error().to_string().find(reason), std::string::npos) << refused.error().to_string();
    EXPECT_TRUE(must(jobs().list(soon())).empty());
  }
  // Moves b there and back; each time all rows are what they were, and those of b where they should be.
  void expect_travels(const std::vector<std::string>& tables, MoveMode mode = MoveMode::kOnline) {
    std::vector<std::vector<std::string>> before;
    for (const std::string& table : tables) before.push_back(all_rows(table));
    start_runner();
    for (const char* target : {"s2", "s1"}) {
      JobRequest request = move_of("b", target);
      request.mode = mode;
      const JobInfo job = done(request);
      ASSERT_EQ(job.state, JobState::kDone) << story(job);
      for (std::size_t i = 0; i < tables.size(); ++i) {
        EXPECT_EQ(all_rows(tables[i]), before[i]) << tables[i];
        EXPECT_EQ(rows(target == std::string("s2") ? 2 : 1, tables[i], "tenant >= 100 AND tenant < 200"),
                  all_in_b(tables[i]))
            << tables[i];
      }
      expect_clean();
      if (HasFailure()) return;
    }
  }
  static std::vector<std::string> all_in_b(const std::string& table) {
    auto all = rows(1, table, "tenant >= 100 AND tenant < 200");
    const auto others = rows(2, table, "tenant >= 100 AND tenant < 200");
    all.insert(all.end(), others.begin(), others.end());
    std::sort(all.begin(), all.end());
    return all;
  }
};

}  // namespace

// A server's own types have other numbers on the next one, and their arrays and rows tell these numbers.
TEST_F(OddTest, ColumnsOfEveryKindOfTypeTravel) {
  pgtest::psql(dsn(2),
               "CREATE TYPE shift1 AS ENUM ('a'); CREATE TYPE shift2 AS (a int); CREATE TABLE shift3 (a int)");
  on_both(R"(
    CREATE TYPE mood AS ENUM ('sad', 'so so', 'happy');
    CREATE TYPE place AS (street text, number int, mood mood);
    CREATE DOMAIN percent AS int CHECK (VALUE BETWEEN 0 AND 100);
    CREATE DOMAIN moods AS mood[];
    CREATE TYPE span AS RANGE (subtype = float8);
    CREATE TABLE all_types (tenant bigint PRIMARY KEY, e mood, es mood[], p place, ps place[], d percent, ds percent[],
      dm moods, r int4range, mr nummultirange, sp span, sps span[], n numeric, n2 numeric(40, 20), f float8, f4 float4,
      b bytea, j json, jb jsonb, jp jsonpath, x xml, ts timestamptz, tz timetz, iv interval, ip inet, m macaddr8,
      bits bit varying, pt point, poly polygon, q tsvector, tq tsquery, u uuid, texts text[][], c char(5), "char" "char",
      cls regclass, typ regtype, nm name, o oid, t text COLLATE "C");
    CREATE TABLE keyed_by_enum (tenant bigint, m mood, d percent, note text, PRIMARY KEY (m, tenant, d));)");
  pgtest::psql(dsn(1), R"(
    INSERT INTO all_types SELECT t, 'so so', ARRAY['sad', NULL, 'happy']::mood[], ROW('a "b", c', t, 'sad')::place,
      ARRAY[ROW(NULL, 1, 'happy')::place, NULL], 50, ARRAY[1, 2]::percent[], ARRAY['sad']::mood[]::moods, '[1,5)',
      '{[1,2), (3,4]}', '[1.5,2.5]', ARRAY['[0,1)'::span], 1.50, 12345678901234567890.12345678901234567890, '-0', 'NaN',
      decode(repeat('00ff5c', 5000), 'hex'), '{"a":  1, "a": 2}', '{"b": [1.10, null]}', '$.a[*] ? (@ > 1)',
      '<a>&amp;</a>', 'infinity', '12:00+05:30', '1 mon -3 days 00:00:00.000001', '10.0.0.1/8',
      '08:00:2b:01:02:03:04:05', B'10101', '(1.1,2)', '((0,0),(1,1),(1,0))', 'a:1 fat:2', 'fat & !rat',
      md5(t::text)::uuid, '{{a,"b c"},{NULL,"\\"}}', 'ab', 'x', 'keyed_by_enum', 'mood', 'a name', 4000000000,
      E'tab\tnew\nline\\.' FROM generate_series(90, 250) t;
    INSERT INTO all_types (tenant) VALUES (0), (150000), (89);
    INSERT INTO keyed_by_enum SELECT t, m, 5, 'n' FROM generate_series(90, 250) t, unnest(enum_range(NULL::mood)) m;)");
  put_table("all_types");
  put_table("keyed_by_enum");
  // Written to while it is copied, and compared by keys of such types.
  JobRunnerOptions with = options();
  with.tuning.verify_in_fence = -1ms;
  start_runner(with);
  JobRequest request = move_of("b", "s2");
  request.max_rate = 500000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(
      dsn(1),
      "UPDATE keyed_by_enum SET note = 'x' WHERE d = 5 AND m = 'so so'; DELETE FROM keyed_by_enum WHERE m = "
      "'sad' "
      "AND tenant % 2 = 0; UPDATE keyed_by_enum SET d = 6 WHERE m = 'happy'; UPDATE all_types SET es = "
      "array_append(es, 'sad'), n = n * 10 WHERE tenant % 3 = 0");
  const auto before = rows(1, "keyed_by_enum", "tenant >= 100 AND tenant < 200");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "keyed_by_enum"), before);
  expect_clean();
  ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
  runners_.clear();
  expect_travels({"all_types", "keyed_by_enum"});
}

TEST_F(OddTest, ColumnsInAnotherOrderAndColumnsThatWereDropped) {
  pgtest::psql(dsn(1),
               "CREATE TABLE t (gone int, tenant bigint, a text, b int, gone2 text, g int GENERATED ALWAYS AS "
               "(b + 1) STORED, "
               "PRIMARY KEY (tenant, b)); ALTER TABLE t DROP gone, DROP gone2; CREATE TABLE k (gone int, "
               "tenant bigint NOT "
               "NULL, a text, b int); ALTER TABLE k DROP gone");
  pgtest::psql(dsn(2),
               "CREATE TABLE t (b int, g int GENERATED ALWAYS AS (b + 1) STORED, x int, a text, tenant bigint, "
               "PRIMARY KEY "
               "(tenant, b)); ALTER TABLE t DROP x; CREATE TABLE k (b int, a text, tenant bigint NOT NULL)");
  put_table("t");
  put_table("k");
  pgtest::psql(
      dsn(1),
      "INSERT INTO t (tenant, a, b) SELECT t, 'x' || t, t FROM generate_series(0, 299) t; INSERT INTO k "
      "(tenant, a, b) SELECT tenant, a, b FROM t");
  const auto sorted = [](const std::string& table, int shards) {
    const std::string names = table == "t" ? "tenant, a, b, g" : "tenant, a, b";
    std::vector<std::string> all;
    for (int i = 1; i <= shards; ++i) {
      pgtest::Connection pg(dsn(i));
      for (const auto& row : pg.query("SELECT ROW(" + names + ")::text FROM " + table)) all.push_back(row[0]);
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 3000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(
      dsn(1),
      "UPDATE t SET a = 'new', b = -b WHERE tenant % 7 = 0; UPDATE k SET a = 'new' WHERE b % 7 = 0; DELETE "
      "FROM k WHERE b % 11 = 0");
  const auto t = sorted("t", 1);  // all are there until the commit
  const auto k = sorted("k", 1);
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(sorted("t", 2), t);
  EXPECT_EQ(sorted("k", 2), k);
  EXPECT_EQ(rows(2, "t").size(), 100U);
  expect_clean();
}

TEST_F(OddTest, ForeignKeysOfAllSortsAndRowsThatComeAndGoAcrossTheEdge) {
  on_both(R"(
    CREATE TABLE tree (tenant bigint, id int, up int, n int DEFAULT 0, PRIMARY KEY (tenant, id),
      FOREIGN KEY (tenant, up) REFERENCES tree ON DELETE CASCADE);
    CREATE TABLE egg (tenant bigint, id int, hen int, PRIMARY KEY (tenant, id));
    CREATE TABLE hen (tenant bigint, id int, egg int NOT NULL, PRIMARY KEY (tenant, id),
      FOREIGN KEY (tenant, egg) REFERENCES egg DEFERRABLE INITIALLY DEFERRED);
    ALTER TABLE egg ADD FOREIGN KEY (tenant, hen) REFERENCES hen DEFERRABLE INITIALLY DEFERRED;
    CREATE TABLE fired (tenant bigint, what text);
    CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.fired VALUES (NEW.tenant,
      TG_OP); RETURN NEW; END $$;
    CREATE TRIGGER fire AFTER INSERT OR UPDATE ON tree FOR EACH ROW EXECUTE FUNCTION fire();)");
  for (const char* name : {"tree", "egg", "hen", "fired"}) put_table(name);
  pgtest::psql(
      dsn(1),
      "INSERT INTO tree SELECT t, i, nullif(i - 1, 0) FROM generate_series(0, 299) t, generate_series(1, 5) i; "
      "BEGIN; INSERT INTO egg SELECT t, 1, 1 FROM generate_series(0, 299) t; INSERT INTO hen SELECT t, 1, 1 "
      "FROM "
      "generate_series(0, 299) t; COMMIT; TRUNCATE fired");
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 20000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(dsn(1), R"(
    UPDATE tree SET n = n + 1 WHERE tenant = 150;
    UPDATE tree SET tenant = tenant + 1000, up = NULL WHERE tenant = 151 AND id = 5;
    INSERT INTO tree (tenant, id) SELECT 205, 99; UPDATE tree SET tenant = 105 WHERE tenant = 205 AND id = 99;
    DELETE FROM tree WHERE tenant = 152 AND id = 1;
    BEGIN; DELETE FROM hen WHERE tenant = 153; DELETE FROM egg WHERE tenant = 153; COMMIT;)");
  std::vector<std::string> names{"tree", "egg", "hen", "fired"};
  std::vector<std::vector<std::string>> before;
  for (const std::string& name : names) before.push_back(rows(1, name));  // all are there until the commit
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(all_rows(names[i]), before[i]) << names[i];
  EXPECT_EQ(rows(2, "tree").size(), 500U - 1 - 5 + 1);
  EXPECT_EQ(rows(2, "fired").size(), 5U + 1) << "no trigger has fired for what was only moved";
  expect_clean();
}

TEST_F(OddTest, LargeValuesThatAnUpdateLeavesAsTheyAre) {
  on_both(R"(
    CREATE TABLE big (tenant bigint PRIMARY KEY, body text, bytes bytea, n int); ALTER TABLE big ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE big_keyless (tenant bigint NOT NULL, body text, n int); ALTER TABLE big_keyless ALTER body SET STORAGE EXTERNAL;
    CREATE TABLE big_key (tenant bigint, body text, n int, PRIMARY KEY (tenant, body));
    ALTER TABLE big_key ALTER body SET STORAGE EXTERNAL)");
  for (const char* name : {"big", "big_keyless", "big_key"}) put_table(name);
  pgtest::psql(
      dsn(1),
      "INSERT INTO big SELECT t, repeat(md5(t::text), 500), decode(repeat(md5(t::text), 700), 'hex'), 0 FROM "
      "generate_series(90, 210) t; INSERT INTO big_keyless SELECT tenant, body, 0 FROM big; INSERT INTO "
      "big_key "
      "SELECT tenant, left(body, 2400), 0 FROM big");
  JobRunnerOptions with = options();
  with.tuning.verify_in_fence = -1ms;
  start_runner(with);
  JobRequest request = move_of("b", "s2");
  request.max_rate = 2000000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  for (const char* name : {"big", "big_keyless", "big_key"})
    pgtest::psql(dsn(1), std::string("UPDATE ") + name + " SET n = n + 1 WHERE tenant % 2 = 0");
  std::vector<std::vector<std::string>> before;
  for (const char* name : {"big", "big_keyless", "big_key"}) before.push_back(rows(1, name));
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  std::size_t i = 0;
  for (const char* name : {"big", "big_keyless", "big_key"}) {
    EXPECT_EQ(all_rows(name), before[i++]) << name;
    EXPECT_EQ(rows(2, name).size(), 100U) << name;
  }
  expect_clean();
}

TEST_F(OddTest, WhatCannotBeFollowedIsSaidBeforehandAndMovesOffline) {
  on_both(
      "CREATE UNLOGGED TABLE fast (tenant bigint PRIMARY KEY); CREATE TABLE made (tenant bigint, n int, g int "
      "GENERATED "
      "ALWAYS AS (n * 2) STORED, PRIMARY KEY (tenant, g))");
  pgtest::psql(dsn(1),
               "INSERT INTO fast SELECT generate_series(0, 299); INSERT INTO made (tenant, n) SELECT t, t FROM "
               "generate_series(0, 299) t");
  put_table("fast");
  put_table("made");
  expect_refused("table public.fast is unlogged: its changes cannot be followed (mode = offline moves it)");
  expect_refused("table public.made has a generated column in its primary key");
  expect_travels({"fast", "made"}, MoveMode::kOffline);
}

// It identifies no row for PostgreSQL: to publish the table as it is would have its UPDATEs refused.
TEST_F(OddTest, ADeferrablePrimaryKeyIsNoIdentityAndNobodyIsRefusedForIt) {
  on_both(
      "CREATE TABLE t (tenant bigint, place int, n int DEFAULT 0, PRIMARY KEY (tenant, place) DEFERRABLE "
      "INITIALLY "
      "DEFERRED)");
  put_table("t");
  pgtest::psql(dsn(1), "INSERT INTO t SELECT t, i FROM generate_series(90, 210) t, generate_series(1, 2) i");
  JobRunnerOptions with = options();
  with.tuning.verify_in_fence = -1ms;
  start_runner(with);
  JobRequest request = move_of("b", "s2");
  request.max_rate = 3000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(dsn(1), "UPDATE t SET n = n + 1; UPDATE t SET place = 3 - place WHERE tenant % 2 = 0");
  pgtest::psql(dsn(1), "DELETE FROM t WHERE tenant = 120; INSERT INTO t VALUES (121, 3)");
  const auto before = rows(1, "t");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(all_rows("t"), before);
  EXPECT_EQ(rows(2, "t").size(), 199U);
  expect_clean();
}

TEST_F(OddTest, TypesWithoutEqualityAreRefusedWhereRowsHaveNoKey) {
  on_both("CREATE TYPE pair AS (a int, b path); CREATE DOMAIN boxes AS box[]; CREATE TYPE mood AS ENUM ('a')");
  for (const char* type : {"box", "circle", "jsonpath", "json[]", "pair", "boxes", "pg_snapshot", "xml"}) {
    on_both(std::string("CREATE TABLE t (tenant bigint NOT NULL, x ") + type + ")");
    put_table("t");
    expect_refused("table public.t has no primary key and a column whose type has no equality");
    on_both("ALTER TABLE t REPLICA IDENTITY FULL");
    expect_refused("table public.t has no primary key and a column whose type has no equality");
    if (HasFailure()) FAIL() << type;
    must(change().edit({edit::DropTable{"public", "t"}}, soon()));
    on_both("DROP TABLE t");
  }
  on_both(
      "CREATE TABLE t (tenant bigint NOT NULL, a varchar[], b cidr, c int4range, d mood, e regclass, f xid, g "
      "jsonb, h "
      "\"char\", i tsvector, j name, k numeric(5, 2)[])");
  put_table("t");
  pgtest::psql(
      dsn(1),
      "INSERT INTO t SELECT t, '{a}', '10.0.0.0/8', '[1,3)', 'a', 'pg_class', '5', '{}', 'x', 'a', 'n', "
      "'{1.50}' FROM generate_series(90, 210) t");
  expect_travels({"t"});
}

TEST_F(OddTest, RulesThatAreAppliedToMovedRowsTooAreRefused) {
  const std::string rule =
      "CREATE RULE soft AS ON DELETE TO t DO INSTEAD UPDATE t SET gone = true WHERE tenant = OLD.tenant; ";
  on_both(
      "CREATE TABLE t (tenant bigint PRIMARY KEY, gone bool DEFAULT false); CREATE TABLE fired (what text)");
  pgtest::psql(dsn(1), "INSERT INTO t SELECT generate_series(90, 210)");
  put_table("t");
  pgtest::psql(dsn(1), rule);
  expect_refused("table public.t differs: rule CREATE RULE soft");
  pgtest::psql(dsn(2), rule);
  on_both("ALTER TABLE t ENABLE ALWAYS RULE soft");
  expect_refused("table public.t has rule soft, which is applied to moved rows too");
  on_both(
      "ALTER TABLE t ENABLE RULE soft; CREATE RULE tell AS ON INSERT TO t DO ALSO INSERT INTO fired VALUES "
      "('i')");
  expect_travels({"t"});
  EXPECT_TRUE(all_rows("fired").empty());
}

// Made while the move was under way: the rows stay hidden until they can be deleted.
TEST_F(OddTest, RowsThatATriggerKeepsOnTheSourceAreNotShownAgain) {
  on_both("CREATE TABLE t (tenant bigint PRIMARY KEY)");
  pgtest::psql(dsn(1), "INSERT INTO t SELECT generate_series(0, 299)");
  put_table("t");
  start_runner();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 1000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(
      dsn(1),
      "CREATE SEQUENCE tries; CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM "
      "nextval('public.tries'); RETURN NULL; END $$; CREATE TRIGGER keep BEFORE DELETE ON t FOR EACH ROW "
      "EXECUTE FUNCTION keep(); ALTER TABLE t ENABLE ALWAYS TRIGGER keep");
  // The second attempt has begun.
  while (std::stoi(pgtest::psql(dsn(1), "SELECT last_value FROM tries")) <= 100)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(must(jobs().show(submitted.id, soon())).state, JobState::kCleaning);
  EXPECT_FALSE(map()->mapping("tenants")->hidden().empty());
  pgtest::psql(dsn(1), "DROP TRIGGER keep ON t");
  const JobInfo job = must(jobs().wait(submitted.id, soon()));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(all_rows("t").size(), 300U);
  expect_clean();
}

TEST_F(OddTest, TriggersThatFireForMovedRowsTooAndTablesWithHeirsAreRefused) {
  on_both(
      "CREATE TABLE t (tenant bigint PRIMARY KEY); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ "
      "BEGIN "
      "RETURN NULL; END $$; CREATE TRIGGER \"Audit\" AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); "
      "ALTER TABLE t "
      "ENABLE ALWAYS TRIGGER \"Audit\"; CREATE TABLE parent (tenant bigint PRIMARY KEY)");
  put_table("t");
  put_table("parent");
  expect_refused("table public.t has trigger \"Audit\", which fires for moved rows too");
  on_both("ALTER TABLE t ENABLE TRIGGER \"Audit\"; CREATE TABLE heir () INHERITS (parent)");
  expect_refused("table public.parent has tables that inherit from it");
}

TEST_F(OddTest, AShardThatIsDownIsNamedAndNothingBegins) {
  shop(200, 1);
  clusters_[1]->kill();
  const auto refused = jobs().submit(move_of("b", "s2"), soon());
  clusters_[1]->start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sqlstate, "KG005");
  EXPECT_NE(refused.error().message.find("\"s2\""), std::string::npos) << refused.error().to_string();
  EXPECT_TRUE(must(jobs().list(soon())).empty());
}

// A unique value that the target has already, under a key of another shardlet.
TEST_F(OddTest, AValueThatTheTargetHasAlreadyEndsTheMoveAndNothingIsLost) {
  on_both("CREATE TABLE users (tenant bigint NOT NULL, login text UNIQUE, PRIMARY KEY (tenant, login))");
  put_table("users");
  pgtest::psql(dsn(1), "INSERT INTO users SELECT t, 'u' || t FROM generate_series(0, 299) t");
  start_runner();
  ASSERT_EQ(done(move_of("c", "s2")).state, JobState::kDone);
  pgtest::psql(dsn(2), "INSERT INTO users VALUES (500, 'u150')");
  const auto before = all_rows("users");
  const JobInfo job = done(move_of("b", "s2"));
  EXPECT_EQ(job.state, JobState::kFailed) << story(job);
  EXPECT_EQ(job.error->sqlstate, "23505") << story(job);
  EXPECT_NE(job.error->to_string().find("u150"), std::string::npos) << story(job);
  EXPECT_EQ(all_rows("users"), before);
  expect_clean();
  // It comes up only while changes are followed.
  pgtest::psql(dsn(2), "DELETE FROM users WHERE tenant = 500; INSERT INTO users VALUES (501, 'new')");
  JobRequest request = move_of("b", "s2");
  request.max_rate = 2000;
  const JobInfo submitted = must(jobs().submit(request, soon()));
  while (must(jobs().show(submitted.id, soon())).state < JobState::kCopying) std::this_thread::sleep_for(1ms);
  pgtest::psql(dsn(1), "INSERT INTO users VALUES (160, 'new')");
  const auto now = all_rows("users");
  const JobInfo second = must(jobs().wait(submitted.id, soon(120s)));
  EXPECT_EQ(second.state, JobState::kFailed) << story(second);
  EXPECT_NE(second.error->message.find("cannot apply"), std::string::npos) << story(second);
  EXPECT_EQ(all_rows("users"), now);
  expect_clean();
}

}  // namespace kintsugi::splitmerge
