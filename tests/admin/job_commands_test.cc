// What is said of jobs and what is said of the map go together.
#include <gtest/gtest.h>

#include <filesystem>

#include "admin/commands/command_layer.h"
#include "shardmap/map_store.h"
#include "splitmerge/job_notes.h"

namespace kintsugi::admin {
namespace {

using shardmap::BoundColumn;
namespace edit = shardmap::edit;

edit::CreateShardlet shardlet(const std::string& name, shardmap::Bound low, shardmap::Bound high) {
  return {"tenants", name, std::move(low), std::move(high), {}, "s1", shardmap::ShardletState::kOnline};
}

// A store in which a split was done a moment ago, and a router that has not heard of it yet: it hears after it
// was asked for its map twenty times more.
class JobCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "kg-job-commands-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    const Deadline soon = Deadline::in(std::chrono::seconds(20));
    auto store = shardmap::open_store("sqlite:map.db", folder_, soon);
    ASSERT_TRUE(store);
    auto before = (*store)->load(soon);
    ASSERT_TRUE(before);
    before =
        (*store)->commit(*before,
                         {edit::CreateShard{"s1", "host=nowhere", "", shardmap::ShardState::kOnline},
                          edit::CreateMap{"tenants", shardmap::MapKind::kRange, {shardmap::KeyType::kBigint}},
                          shardlet("a", {BoundColumn::min()}, {BoundColumn::max()})},
                         {}, soon);
    ASSERT_TRUE(before) << before.error().to_string();
    splitmerge::JobRecord job;
    job.info.id = 7;
    job.info.request.type = splitmerge::JobType::kSplit;
    job.info.request.shardlets = {"a"};
    job.info.request.into = {"l", "r"};
    job.info.state = splitmerge::JobState::kDone;
    const auto after = (*store)->commit(
        *before,
        {edit::DropShardlet{"a"}, shardlet("l", {BoundColumn::min()}, {BoundColumn::value("500")}),
         shardlet("r", {BoundColumn::value("500")}, {BoundColumn::max()})},
        {{splitmerge::kEndedNote, "7", splitmerge::body_of(job), {}}}, soon);
    ASSERT_TRUE(after) << after.error().to_string();
    old_ = before->map;
    new_ = after->map;
    auto surroundings = std::make_shared<Surroundings>();
    surroundings->store = "sqlite:map.db";
    surroundings->directory = folder_;
    surroundings->router = "r1";
    surroundings->map = [this] { return asked_++ < 20 ? old_ : new_; };
    layer_ = std::make_unique<CommandLayer>(surroundings);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<CommandResult> show(command::Show what) {
    return layer_->run(what, {"somebody", Role::kViewer, Face::kRest},
                       {.deadline = Deadline::in(std::chrono::seconds(20))});
  }

  std::string folder_;
  shardmap::MapPtr old_, new_;
  int asked_ = 0;
  std::unique_ptr<CommandLayer> layer_;
};

}  // namespace

TEST_F(JobCommands, WhoeverIsToldThatAJobIsDoneFindsWhatItHasDone) {
  const auto job = show({.what = command::Show::What::kJobs, .name = "7"});
  ASSERT_TRUE(job) << job.error().to_string();
  EXPECT_EQ(job->objects.at(0)["state"], "done");
  EXPECT_EQ(job->epoch, new_->epoch());
  const auto shardlets = show({.what = command::Show::What::kShardlets, .map = "tenants"});
  ASSERT_TRUE(shardlets);
  EXPECT_EQ(shardlets->objects.size(), 2U);
}

TEST_F(JobCommands, AListWithAJobThatIsDoneIsNoOlderThanTheMap) {
  const auto jobs = show({.what = command::Show::What::kJobs});
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  ASSERT_EQ(jobs->objects.size(), 1U);
  EXPECT_EQ(jobs->epoch, new_->epoch());
}

}  // namespace kintsugi::admin
