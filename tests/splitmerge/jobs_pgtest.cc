// Split, merge, drain, rebalance, cancel: what the command layer may ask for.
#include <unistd.h>

#include <filesystem>

#include "tests/splitmerge/moving.h"

namespace kintsugi::splitmerge {
namespace {

class JobsTest : public Moving {
 protected:
  static JobRequest split_of(const std::string& shardlet, const std::string& at = "") {
    JobRequest request;
    request.type = JobType::kSplit;
    request.shardlets = {shardlet};
    if (!at.empty()) request.at = {BoundColumn::value(at)};
    return request;
  }
  static JobRequest merge_of(const std::vector<std::string>& shardlets, const std::string& into = "") {
    JobRequest request;
    request.type = JobType::kMerge;
    request.shardlets = shardlets;
    if (!into.empty()) request.into = {into};
    return request;
  }
  static JobRequest whole(JobType type, const std::string& shard = "") {
    JobRequest request;
    request.type = type;
    request.shard = shard;
    return request;
  }
  // "low..high" of a shardlet, for people.
  std::string bounds(const std::string& name) {
    const MapPtr now = map();
    const auto shardlet = now->shardlet(name);
    if (!shardlet) return "none";
    const auto& types = now->mapping(shardlet->map)->bound_types();
    return describe_key(types, shardlet->low) + ".." + describe_key(types, shardlet->high);
  }
};

}  // namespace

TEST_F(JobsTest, ASplitInPlaceIsAnEditAlone) {
  ranges();
  shop();
  start_runner();
  JobRequest request = split_of("b", "150");
  request.into = {"b1", "b2"};
  const JobInfo job = done(request);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(bounds("b1"), "(100)..(150)");
  EXPECT_EQ(bounds("b2"), "(150)..(200)");
  EXPECT_EQ(bounds("b"), "none");
  const JobInfo merged = done(merge_of({"b2", "b1"}, "b"));
  ASSERT_EQ(merged.state, JobState::kDone) << story(merged);
  EXPECT_EQ(bounds("b"), "(100)..(200)");
  expect_clean();
  EXPECT_EQ(jobs().submit(split_of("b", "100"), soon()).error().sqlstate, "42P17");
  EXPECT_EQ(jobs().submit(split_of("b", "x"), soon()).error().sqlstate, "22P02");
  EXPECT_EQ(jobs().submit(merge_of({"a", "c"}), soon()).error().sqlstate, "55000");
  EXPECT_EQ(jobs().submit(merge_of({"a"}), soon()).error().sqlstate, "22023");
}

TEST_F(JobsTest, WithoutAKeyTheMiddleOfTheDataIsFound) {
  ranges();
  shop();
  pgtest::psql(dsn(1), "INSERT INTO orders SELECT 120, 1000 + i, 'busy' FROM generate_series(1, 1000) i");
  start_runner();
  // 2100 rows of 100 tenants, and 1000 more of tenant 120: 1546 rows are before tenant 126, 1554 from there on.
  const JobInfo job = done(split_of("b"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(bounds("b_l"), "(100)..(126)");
  EXPECT_EQ(bounds("b_r"), "(126)..(200)");
  pgtest::psql(dsn(1),
               "DELETE FROM orders WHERE tenant < 99; DELETE FROM items WHERE tenant < 99; DELETE FROM stock "
               "WHERE tenant < 99");
  const JobInfo none = done(split_of("a"));
  EXPECT_EQ(none.state, JobState::kFailed);
  EXPECT_NE(none.error->message.find("no middle"), std::string::npos) << story(none);
  EXPECT_EQ(bounds("a"), "(MINVALUE)..(100)");
}

TEST_F(JobsTest, ASplitWithATargetMovesAPartAndAMergeBringsItBack) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  start_runner();
  JobRequest request = split_of("b", "150");
  request.to = "s2";
  request.move = "r";
  const JobInfo job = done(request);
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(owner_of("b_l"), "s1");
  EXPECT_EQ(owner_of("b_r"), "s2");
  EXPECT_EQ(rows(2, "orders").size(), 500U);
  expect_clean();
  const JobInfo merged = done(merge_of({"b_l", "b_r"}, "b"));
  ASSERT_EQ(merged.state, JobState::kDone) << story(merged);
  EXPECT_EQ(bounds("b"), "(100)..(200)");
  EXPECT_EQ(owner_of("b"), "s1");
  EXPECT_EQ(rows(1, "orders"), orders);
  expect_clean();
}

// The parts come one after the other, and from different shards.
TEST_F(JobsTest, AMergeOnAShardWhereNoPartLives) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  const auto items = all_rows("items");
  start_runner();
  JobRequest request = merge_of({"a", "b", "c"}, "all");
  request.to = "s2";
  const JobInfo merged = done(request);
  ASSERT_EQ(merged.state, JobState::kDone) << story(merged);
  EXPECT_EQ(bounds("all"), "(MINVALUE)..(MAXVALUE)");
  EXPECT_EQ(owner_of("all"), "s2");
  EXPECT_EQ(rows(1, "orders").size(), 0U);
  EXPECT_EQ(rows(2, "orders"), orders);
  EXPECT_EQ(rows(2, "items"), items);
  expect_clean();
}

// Neighbours that come to one shard side by side: each move hides, checks and cleans its own rows alone.
TEST_F(JobsTest, NeighboursThatMoveToOneShardAtOnce) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  start_runner();
  std::vector<std::uint64_t> ids;
  for (const char* name : {"a", "b"}) ids.push_back(must(jobs().submit(move_of(name, "s2"), soon())).id);
  JobRequest split = split_of("c", "250");
  split.to = "s2";
  split.move = "l";
  ids.push_back(must(jobs().submit(split, soon())).id);
  for (const std::uint64_t id : ids) {
    const JobInfo job = must(jobs().wait(id, soon()));
    EXPECT_EQ(job.state, JobState::kDone) << story(job);
  }
  for (const char* name : {"a", "b", "c_l"}) EXPECT_EQ(owner_of(name), "s2");
  EXPECT_EQ(owner_of("c_r"), "s1");
  EXPECT_EQ(rows(2, "orders").size(), 2500U);
  EXPECT_EQ(all_rows("orders"), orders);
  expect_clean();
  const JobInfo merged = done(merge_of({"a", "b", "c_l", "c_r"}, "all"));
  ASSERT_EQ(merged.state, JobState::kDone) << story(merged);
  EXPECT_EQ(owner_of("all"), "s2");
  EXPECT_EQ(rows(2, "orders"), orders);
  expect_clean();
}

TEST_F(JobsTest, CanceledBeforeTheCommitEverythingIsAsItWas) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  JobRequest request = split_of("b", "150");
  request.to = "s2";
  request.max_rate = 2000;  // bytes a second: still copying when it is canceled
  start_runner();
  const JobInfo job = must(jobs().submit(request, soon()));
  EXPECT_EQ(jobs().submit(move_of("b", "s2"), soon()).error().sqlstate, "55006");
  while (must(jobs().show(job.id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(must(jobs().cancel(job.id, soon())).canceling);
  const JobInfo ended = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(ended.state, JobState::kCanceled) << story(ended);
  EXPECT_EQ(bounds("b"), "(100)..(200)");
  EXPECT_EQ(rows(1, "orders"), orders);
  EXPECT_EQ(rows(2, "orders").size(), 0U);
  expect_clean();
  EXPECT_EQ(jobs().cancel(job.id, soon()).error().sqlstate, "55000");
  EXPECT_EQ(jobs().cancel(99, soon()).error().sqlstate, "42704");
}

TEST_F(JobsTest, ADrainEmptiesAShardAndARebalanceLevelsThem) {
  ranges();
  shop();
  const auto orders = all_rows("orders");
  start_runner();
  const auto plan = must(jobs().plan(whole(JobType::kRebalance), soon()));
  ASSERT_EQ(plan.size(), 1U);
  EXPECT_EQ(plan[0].from, "s1");
  EXPECT_EQ(plan[0].to, "s2");
  EXPECT_EQ(plan[0].rows, 2100U);
  const JobInfo levelled = done(whole(JobType::kRebalance));
  ASSERT_EQ(levelled.state, JobState::kDone) << story(levelled);
  EXPECT_EQ(levelled.children.size(), 1U);
  EXPECT_EQ(owner_of(plan[0].shardlet), "s2");
  expect_clean();
  const JobInfo drained = done(whole(JobType::kDrain, "s1"));
  ASSERT_EQ(drained.state, JobState::kDone) << story(drained);
  EXPECT_EQ(drained.children.size(), 2U);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(owner_of(name), "s2");
  EXPECT_EQ(rows(1, "orders").size(), 0U);
  EXPECT_EQ(rows(2, "orders"), orders);
  EXPECT_EQ(map()->shard_named("s1")->state, shardmap::ShardState::kDraining);
  expect_clean();
}

TEST_F(JobsTest, AJobOfAStoppedRunnerIsTakenUpByAnother) {
  ranges();
  shop();
  JobRequest request = move_of("b", "s2");
  request.max_rate = 50000;
  start_runner(options("first"));
  const JobInfo job = must(jobs().submit(request, soon()));
  while (must(jobs().show(job.id, soon())).state != JobState::kCopying) std::this_thread::sleep_for(1ms);
  runners_.clear();
  EXPECT_FALSE(is_final(must(jobs().show(job.id, soon())).state));
  start_runner(options("second"));
  const JobInfo ended = must(jobs().wait(job.id, soon()));
  ASSERT_EQ(ended.state, JobState::kDone) << story(ended);
  expect_clean();
}

TEST_F(JobsTest, TheEmbeddedStoreKeepsJobsToo) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("kg-jobs-" + std::to_string(getpid()))).string();
  for (int i = 1; i <= 2; ++i) pgtest::psql(dsn(i), "DROP SCHEMA kintsugi CASCADE");
  store_ = must(shardmap::open_store("sqlite:" + file, "", soon()));
  for (int i = 1; i <= 2; ++i) must(change().create_shard({"s" + std::to_string(i), dsn(i)}, soon()));
  ranges();
  shop();
  auto with = options();
  with.store = "sqlite:" + file;
  start_runner(with);
  const JobInfo job = done(move_of("b", "s2"));
  ASSERT_EQ(job.state, JobState::kDone) << story(job);
  EXPECT_EQ(rows(2, "orders").size(), 1000U);
  expect_clean();
  runners_.clear();
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(file + end);
}

}  // namespace kintsugi::splitmerge
