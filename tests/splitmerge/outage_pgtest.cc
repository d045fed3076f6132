// Servers that fail in the midst of a move: a disk that fills up, a restart, a server that takes no writes any
// more, or comes back without logical decoding; and rows as large as they get.
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/splitmerge/runner_process.h"
#include "tests/splitmerge/troubled.h"

namespace kintsugi::splitmerge {
namespace {

// A disk of its own, as small as that, for a tablespace.
class SmallDisk {
 public:
  explicit SmallDisk(int megabytes)
      : path_((std::filesystem::temp_directory_path() / "kg-disk-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    const std::string size = "size=" + std::to_string(megabytes) + "m,mode=0777";
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, size.c_str()) == 0;
    if (!mounted_) return;
    std::filesystem::create_directory(path_ + "/space");
    std::filesystem::permissions(path_ + "/space", std::filesystem::perms::all);
    if (std::system(("chown postgres " + path_ + "/space && chmod 700 " + path_ + "/space").c_str()) != 0)
      throw std::runtime_error("chown failed");
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] std::string space() const { return path_ + "/space"; }
  void fill() const {
    for (const std::size_t size : {1U << 20, 4096U}) {  // a job is under way: quickly, then to the last block
      std::ofstream filler(path_ + "/filler", std::ios::binary | std::ios::app);
      const std::string block(size, 'x');
      while (filler.write(block.data(), static_cast<std::streamsize>(size)).flush()) {
      }
    }
  }
  void make_room() const { std::filesystem::remove(path_ + "/filler"); }

 private:
  std::string path_;
  bool mounted_ = false;
};

class OutageTest : public Troubled {
 protected:
  static constexpr int kTarget = 1;  // of clusters_: the one that has not the store
  static void restart(bool crash) {
    if (crash)
      clusters_[kTarget]->kill();
    else
      clusters_[kTarget]->stop();
    clusters_[kTarget]->start();
  }
  static void wal_level(const std::string& level) {
    std::ofstream(file("postgresql.conf"), std::ios::app) << "wal_level = " << level << "\n";
  }
  static std::string file(const std::string& name) { return clusters_[kTarget]->directory() + "/data/" + name; }
};

// The tables of s2 are on a disk that fills up.
class FullDiskTest : public OutageTest {
 protected:
  void SetUp() override {
    disk_ = std::make_unique<SmallDisk>(200);
    if (!disk_->mounted()) GTEST_SKIP() << "a file system can be mounted by root only";
    Moving::SetUp();
    pgtest::psql(clusters_[kTarget]->dsn(), "CREATE TABLESPACE small LOCATION '" + disk_->space() + "'");
    pgtest::psql(clusters_[kTarget]->dsn(), "ALTER DATABASE shard2 SET default_tablespace = small");
    ranges();
    shop(300, 30);
  }
  void TearDown() override {
    if (!disk_->mounted()) return;
    OutageTest::TearDown();
    pgtest::psql(clusters_[kTarget]->dsn(), "DROP DATABASE shard2 WITH (FORCE); DROP TABLESPACE small");
  }
  std::unique_ptr<SmallDisk> disk_;
};

}  // namespace

TEST_F(FullDiskTest, WhileTheRowsAreCopied) {
  const std::uint64_t id = move_that_copies("s2");
  disk_->fill();
  const JobInfo job = must(jobs().wait(id, soon()));
  expect_failed(job, "s1", "shard \"s2\"");
  ASSERT_TRUE(job.error);
  EXPECT_EQ(job.error->sqlstate, "53100") << story(job);
  EXPECT_NE(job.error->hint.find("RESUME JOB"), std::string::npos) << story(job);
  EXPECT_TRUE(rows(2, "stock").empty());
  disk_->make_room();
  ASSERT_TRUE(jobs().resume(id, soon()));
  expect_done(id, "s2");
}

TEST_F(FullDiskTest, WhileTheTargetCatchesUp) {
  const std::uint64_t id = move_that_waits_to("s2");
  disk_->fill();
  pgtest::psql(dsn(1),
               "UPDATE items SET body = jsonb_build_object('o', repeat(n::text, 20)) WHERE tenant >= 100 AND "
               "tenant < 200");
  const JobInfo job = end_of(id);
  expect_failed(job, "s1", "shard \"s2\"");
  EXPECT_NE(job.error->to_string().find("room"), std::string::npos) << story(job);
  disk_->make_room();
  ASSERT_TRUE(jobs().resume(id, soon()));
  expect_done(id, "s2");
}

TEST_F(OutageTest, ATargetThatIsRestartedWhileTheRowsAreCopied) {
  const std::uint64_t id = move_that_copies("s2");
  restart(false);
  expect_done(id, "s2");
}

TEST_F(OutageTest, ATargetThatCrashesWhileTheRowsAreCopied) {
  const std::uint64_t id = move_that_copies("s2");
  restart(true);
  expect_done(id, "s2");
}

TEST_F(OutageTest, ATargetThatIsRestartedOrCrashesWhileTheMoveWaitsForTheFence) {
  for (const bool crash : {false, true}) {
    const std::uint64_t id = move_that_waits_to("s2");
    pgtest::psql(dsn(1), "UPDATE orders SET note = 'then' WHERE tenant >= 100 AND tenant < 190");
    restart(crash);
    expect_done(id, "s2");
    EXPECT_EQ(rows(2, "orders", "note = 'then'").size(), 2700U);
    runners_.clear();
    start_runner();
    ASSERT_EQ(done(move_of("b", "s1")).state, JobState::kDone);
    runners_.clear();
  }
}

// A server that answers nothing any more, and whose connections live: nobody waits for it who is asked to stop.
TEST_F(OutageTest, CanceledWhileTheTargetIsFrozen) {
  const std::uint64_t id = move_that_copies("s2");
  clusters_[kTarget]->freeze();
  ASSERT_TRUE(jobs().cancel(id, soon()));
  const std::string left =
      "SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication)";
  for (const Deadline patience = soon(50000ms); !patience.passed(); std::this_thread::sleep_for(20ms)) {
    if (pgtest::psql(dsn(1), left) == "0") break;
  }
  EXPECT_EQ(pgtest::psql(dsn(1), left), "0") << "the source is not as it was";
  clusters_[kTarget]->thaw();
  const JobInfo job = must(jobs().wait(id, soon()));
  EXPECT_EQ(job.state, JobState::kCanceled) << story(job);
  expect_nothing_lost();
}

// It comes back as a standby that follows nobody, as after a fail-over that went wrong.
TEST_F(OutageTest, ATargetThatTakesNoWritesAnyMore) {
  JobRunnerOptions with = options();
  with.tuning.retry_patience = 1000ms;
  const std::uint64_t id = move_that_waits_to("s2", with);
  clusters_[kTarget]->stop();
  std::ofstream(file("standby.signal")) << "";
  clusters_[kTarget]->start();
  // The source is as it was at once, whatever the target does.
  until_told(id, "undoing");
  writer_->query("COMMIT");
  writer_.reset();
  for (const Deadline patience = soon(); !patience.passed(); std::this_thread::sleep_for(5ms)) {
    if (pgtest::psql(dsn(1), "SELECT count(*) FROM pg_replication_slots") == "0") break;
  }
  EXPECT_EQ(
      pgtest::psql(
          dsn(1), "SELECT (SELECT count(*) FROM pg_replication_slots) + (SELECT count(*) FROM pg_publication)"),
      "0");
  clusters_[kTarget]->promote();
  const JobInfo job = must(jobs().wait(id, soon()));
  expect_failed(job, "s1", "\"s2\"");
}

// PostgreSQL does not start then as long as the slots are there; its log says so.
TEST_F(OutageTest, ASourceThatComesBackWithoutLogicalDecoding) {
  bring_b_to_s2();
  for (const bool soon_enough : {true, false}) {
    JobRunnerOptions with = options();
    if (!soon_enough) with.tuning.retry_patience = 500ms;
    const std::uint64_t id = move_that_waits_to("s1", with);
    clusters_[kTarget]->stop();
    wal_level("replica");
    EXPECT_THROW(clusters_[kTarget]->start(), std::runtime_error);
    if (!soon_enough) until_told(id, "undoing");
    wal_level("logical");
    clusters_[kTarget]->start();
    writer_.reset();
    const JobInfo job = must(jobs().wait(id, soon()));
    if (soon_enough) {
      EXPECT_EQ(job.state, JobState::kDone) << story(job);
      expect_nothing_lost();
      runners_.clear();
      bring_b_to_s2();
    } else {
      expect_failed(job, "s2", "shard \"s2\" cannot be reached");
    }
    runners_.clear();
  }
}

// The slots are taken away by hand, so that it starts: then no online move is to be had, and that is what is
// told.
TEST_F(OutageTest, ASourceThatHasNoLogicalDecodingAnyMore) {
  bring_b_to_s2();
  const std::uint64_t id = move_that_waits_to("s1");
  clusters_[kTarget]->stop();
  wal_level("replica");
  for (const auto& slot : std::filesystem::directory_iterator(file("pg_replslot")))
    std::filesystem::remove_all(slot.path());
  clusters_[kTarget]->start();
  writer_.reset();
  const JobInfo job = must(jobs().wait(id, soon()));
  expect_failed(job, "s2", "wal_level of the source is replica");
  clusters_[kTarget]->stop();
  wal_level("logical");
  clusters_[kTarget]->start();
}

// What a job failed for is what it says when it has been undone, not what has delayed that.
TEST_F(OutageTest, AFailedJobTellsWhyItFailedAndNotWhatDelayedItsUndoing) {
  pgtest::psql(
      dsn(2),
      "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'spoiled' USING "
      "ERRCODE = '22000'; END $$; CREATE TRIGGER kintsugi_fence_spoil BEFORE INSERT ON stock FOR EACH ROW "
      "EXECUTE "
      "FUNCTION spoil(); ALTER TABLE stock ENABLE ALWAYS TRIGGER kintsugi_fence_spoil");
  const std::uint64_t id = must(jobs().submit(move_of("b", "s2"), soon())).id;
  {
    RunnerProcess process(store_dsn(), "undo: fence down");
    ASSERT_TRUE(process.died(20s)) << story(*jobs().show(id, soon()));
  }
  clusters_[kTarget]->stop();
  start_runner();
  until_told(id, "cannot be reached");
  clusters_[kTarget]->start();
  const JobInfo job = must(jobs().wait(id, soon()));
  pgtest::psql(dsn(2), "DROP TRIGGER kintsugi_fence_spoil ON stock; DROP FUNCTION spoil()");
  expect_failed(job, "s1", "spoiled");
}

TEST_F(OutageTest, RowsOfAHundredMegabytesMove) {
  on_both(
      "CREATE TABLE files (tenant bigint, id int, body bytea, note text, PRIMARY KEY (tenant, id));"
      "ALTER TABLE files ALTER body SET STORAGE EXTERNAL; CREATE TABLE piles (tenant bigint, body text)");
  // Bytes that take their place; of some it is not told again what they are when the row is changed beside
  // them.
  pgtest::psql(dsn(1),
               "INSERT INTO files SELECT 150, i, convert_to(repeat(md5(i::text), 3300000), 'UTF8'), '' FROM "
               "generate_series(1, 3) i; INSERT INTO piles SELECT 150, repeat(md5(i::text), 3300000) FROM "
               "generate_series(1, 2) i");
  put_table("files");
  put_table("piles");
  start_runner();
  const JobInfo submitted = must(jobs().submit(move_of("b", "s2"), soon()));
  until_copying(submitted.id);
  pgtest::psql(dsn(1),
               "UPDATE files SET note = 'x' WHERE id = 1; UPDATE files SET body = body || '\\x00' WHERE id = 2;"
               "UPDATE piles SET body = body || 'x'");
  const JobInfo job = must(jobs().wait(submitted.id, soon(600000ms)));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT id, length(body), note FROM files ORDER BY 1"),
            "1|105600000|x\n2|105600001|\n3|105600000|");
  EXPECT_EQ(pgtest::psql(dsn(2), "SELECT count(*), min(length(body)), max(length(body)) FROM piles"),
            "2|105600001|105600001");
  expect_clean();
}

}  // namespace kintsugi::splitmerge
