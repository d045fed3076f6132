// Jobs as JSON: what the API takes and gives, and what is kept.
#include "splitmerge/job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "splitmerge/job_record.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::BoundColumn;

JobRequest must(std::string_view json) {
  auto request = job_request_from_json(json);
  EXPECT_TRUE(request) << json << ": " << (request ? "" : request.error().to_string());
  return request ? *request : JobRequest{};
}

}  // namespace

TEST(Job, TheBodiesOfTheContractAreRead) {
  const JobRequest split =
      must(R"({"type": "split", "shardlet": "a", "at": [500], "into": ["l", "r"], "move": "r", "to": "s2"})");
  EXPECT_EQ(split.type, JobType::kSplit);
  EXPECT_EQ(split.shardlets, std::vector<std::string>{"a"});
  EXPECT_EQ(split.at, shardmap::Bound{BoundColumn::value("500")});
  EXPECT_EQ(split.into, (std::vector<std::string>{"l", "r"}));
  EXPECT_EQ(split.move, "r");
  EXPECT_EQ(split.to, "s2");
  const JobRequest move =
      must(R"({"type": "move", "shardlet": "a", "to": "s2", "mode": "offline", "max_rate": "50MB/s"})");
  EXPECT_EQ(move.mode, MoveMode::kOffline);
  EXPECT_EQ(move.max_rate, 50U << 20);
  EXPECT_EQ(target_of(move), "a to s2");
  const JobRequest merge = must(R"({"type": "merge", "shardlets": ["a", "b"], "into": "c"})");
  EXPECT_EQ(merge.into, std::vector<std::string>{"c"});
  EXPECT_EQ(must(R"({"type": "split", "shardlet": "a", "at": ["500", {"bound": "MINVALUE"}]})").at->size(), 2U);
  EXPECT_EQ(must(R"({"type": "drain", "shard": "s1"})").shard, "s1");
  EXPECT_EQ(target_of(must(R"({"type": "rebalance"})")), "all maps");
}

TEST(Job, ARateIsBytesASecondAndFitsIn64Bits) {
  EXPECT_EQ(rate_named("50MB/s"), 50U << 20);
  EXPECT_EQ(rate_named("64kB"), 64U << 10);
  EXPECT_EQ(rate_named("10000000000"), 10000000000U);
  EXPECT_EQ(rate_named("17179869183GB/s"), 17179869183U << 30);
  for (const char* not_one : {"17179869184GB/s", "18014398509481984kB", "99999999999999999999", "-1", "1.5MB",
                              "MB", "", "5 MB", "5mb/s"})
    EXPECT_FALSE(rate_named(not_one)) << not_one;
}

TEST(Job, WhatIsNotOfTheTypeIsRefusedByName) {
  for (const auto& [json, says] : std::vector<std::pair<std::string, std::string>>{
           {R"({"type": "move", "shardlet": "a"})", "\"to\""},
           {R"({"type": "move", "shardlet": "a", "to": "s", "at": [1]})", "\"at\""},
           {R"({"type": "fly"})", "fly"},
           {R"({"type": "split", "shardlet": "a", "at": 5})", "\"at\""},
           {R"({"type": "move", "shardlet": "a", "to": "s", "max_rate": "fast"})", "\"max_rate\""},
           {R"({"type": "move", "shardlet": "a", "to": "s", "max_rate": "99999999999999GB/s"})",
            "\"max_rate\""},
           {R"([])", "not an object"},
           {R"({"type)", "JSON"}}) {
    const auto request = job_request_from_json(json);
    ASSERT_FALSE(request) << json;
    EXPECT_EQ(request.error().sqlstate, "22023");
    EXPECT_NE(request.error().message.find(says), std::string::npos) << request.error().message;
  }
}

TEST(Job, ARecordIsReadAsItWasWritten) {
  JobRecord record;
  record.info.id = 17;
  record.info.request = must(
      R"({"type": "split", "shardlet": "a", "at": ["x'\\", {"bound": "MAXVALUE"}], "into": ["l", "r"], "to": "s2"})");
  record.info.state = JobState::kCatchingUp;
  record.info.progress = {5, 6, 7, 1.5};
  record.info.error = Error{"08006", "gone", "detail", "hint", 0};
  record.info.started = utc_now();
  record.info.history = {{"t", "queued"}, {"u", "preparing"}};
  record.info.canceling = true;
  record.info.parent = 3;
  record.info.children = {4, 5};
  record.info.router = "r1";
  record.owner = "somebody";
  record.beat = 9;
  record.undoing = record.canceled = record.split_made = true;
  record.map = "m";
  record.work.shardlet = "r";
  record.work.source = 1;
  record.work.target = 2;
  record.work.ranges = {{std::string("\x00\xff", 2), std::string("\x01", 1)}};
  record.work.tables = {{"public", "T\"", shardmap::TableKind::kSharded, "m", {"k 1", "k2"}}};
  record.work.prior = shardmap::ShardletState::kReadOnly;
  record.work.identities = {{"public.t", "USING INDEX x", "16385"}};
  record.work.here = {{record.work.tables[0], "16386"}};
  record.work.there = {{record.work.tables[0], "16387"}};
  record.work.hidden = record.work.arrived = record.work.fenced = true;
  record.work.published = record.work.verified = true;
  record.work.version = "1";
  record.work.version_there = "2";
  record.work.committed_at = "2026-11-18";
  const auto read = record_of(body_of(record));
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, record);
  EXPECT_FALSE(record_of("{}"));
  EXPECT_FALSE(record_of(body_of(record).substr(0, 100)));
}

TEST(Job, TheApiSaysWhatTheContractPromises) {
  JobInfo job;
  job.id = 17;
  job.request = must(R"({"type": "move", "shardlet": "a", "to": "s2"})");
  job.state = JobState::kFailed;
  job.error = Error{"55000", "no", "", "", 0};
  const auto json = nlohmann::json::parse(to_json(job));
  EXPECT_EQ(json["id"], 17);
  EXPECT_EQ(json["type"], "move");
  EXPECT_EQ(json["shardlet"], "a");
  EXPECT_EQ(json["state"], "failed");
  EXPECT_EQ(json["error"]["sqlstate"], "55000");
  for (const char* member : {"rows", "bytes", "total", "eta_s"}) EXPECT_TRUE(json["progress"].contains(member));
  EXPECT_TRUE(json["started"].is_null());
  EXPECT_TRUE(json["ended"].is_null());
}

}  // namespace kintsugi::splitmerge
