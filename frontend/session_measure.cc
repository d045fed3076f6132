// How long the client's statements take, and what of it is worth a line in the log. The clock is the loop's:
// read once for all that one wait has brought, from the first byte of a statement to the end of its answer.
#include "base/log.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using admin::StatementTier;

std::uint64_t microseconds(Deadline::Clock::duration time) {
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  return us > 0 ? static_cast<std::uint64_t>(us) : 0;
}

std::string milliseconds_text(std::uint64_t us) {
  return std::to_string(us / 1000) + "." + std::to_string(us % 1000 / 100);
}

StatementTier statement_tier(const planner::Plan& plan) {
  if (std::holds_alternative<planner::CopyIn>(plan) || std::holds_alternative<planner::CopyOut>(plan))
    return StatementTier::kCopy;
  if (std::holds_alternative<planner::Ddl>(plan)) return StatementTier::kDefinition;
  switch (planner::tier_of(plan)) {
    case planner::Tier::kRoute: return StatementTier::kRoute;
    case planner::Tier::kFanOut: return StatementTier::kFanOut;
    case planner::Tier::kFinish: return StatementTier::kFinish;
    case planner::Tier::kGather: return StatementTier::kGather;
  }
  return StatementTier::kRoute;
}

std::vector<ShardId> shards_of(const planner::Plan& plan) {
  std::vector<ShardId> shards;
  const auto add = [&shards](const std::vector<planner::ShardTask>& tasks) {
    for (const planner::ShardTask& task : tasks) shards.push_back(task.shard);
  };
  if (const auto* route = std::get_if<planner::Route>(&plan)) shards.push_back(route->shard);
  if (const auto* fan_out = std::get_if<planner::FanOut>(&plan)) add(fan_out->tasks);
  if (const auto* copy = std::get_if<planner::CopyOut>(&plan)) add(copy->tasks);
  if (const auto* ddl = std::get_if<planner::Ddl>(&plan)) add(ddl->tasks);
  if (const auto* copy = std::get_if<planner::CopyIn>(&plan)) shards = copy->shards;
  if (const auto* gather = std::get_if<planner::Gather>(&plan)) {
    for (const planner::GatheredRelation& relation : gather->relations) add(relation.tasks);
    shards.push_back(gather->finisher);
  }
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  return shards;
}

}  // namespace

// A statement whose bytes have gone to one shard.
void Session::measure_route(const KnownRef& known, const planner::Route& route) {
  measured_.tier = StatementTier::kRoute;
  measured_.known = known;
  if (!route.shardlet.empty()) worker_.load().touch(route.shardlet);
}

// One that the router runs.
void Session::measure_plan(const KnownRef& known, const planner::Plan& plan) {
  measured_.tier = statement_tier(plan);
  measured_.known = known;
  measured_.shards = shards_of(plan);
  if (const auto* route = std::get_if<planner::Route>(&plan); route != nullptr && !route->shardlet.empty())
    worker_.load().touch(route->shardlet);
}

// Everything of it has been answered.
void Session::statement_ended() {
  const auto now = waiter_.loop().now();
  const std::uint64_t us = microseconds(now - measured_.arrived);
  worker_.load().count(measured_.tier, measured_.statements, std::min(measured_.failed, measured_.statements),
                       us);
  const auto limit = worker_.shared().config.limits.slow_statement;
  if (limit.count() > 0 && us >= static_cast<std::uint64_t>(limit.count()) * 1000) note_slow(us);
  measured_.arrived = now;
  measured_.statements = measured_.failed = 0;
  measured_.tier = routes() ? StatementTier::kSession : StatementTier::kRoute;
  measured_.known.reset();
  if (!measured_.shards.empty()) measured_.shards.clear();
  measured_.waited = measured_.held = {};
}

void Session::note_slow(std::uint64_t us) {
  admin::SlowStatement slow;
  slow.at_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  slow.user = user_.user;
  slow.tier = measured_.tier;
  if (measured_.known != nullptr && measured_.known->tree != nullptr)
    slow.text = without_literals(measured_.known->tree->text());
  else if (!measured_.text.empty())
    slow.text = without_literals(measured_.text);
  else
    slow.text = "(not read by the router)";
  if (measured_.statements > 1) slow.text += " (the last of " + std::to_string(measured_.statements) + ")";
  std::vector<ShardId> shards = measured_.shards;
  if (shards.empty()) shards.push_back(here_);
  std::string named;
  for (const ShardId id : shards) {
    const shardmap::Shard* shard = worker_.map()->shard(id);
    if (shard == nullptr) continue;
    slow.shards.push_back(shard->name);
    named += (named.empty() ? "" : ",") + shard->name;
  }
  slow.failed = measured_.failed > 0;
  slow.total_us = us;
  slow.waited_us = microseconds(measured_.waited);
  slow.held_us = microseconds(measured_.held);
  log::warning("slow statement", {{"user", slow.user},
                                  {"tier", admin::name_of(slow.tier)},
                                  {"shards", named},
                                  {"ms", milliseconds_text(us)},
                                  {"waited_ms", milliseconds_text(slow.waited_us)},
                                  {"held_ms", milliseconds_text(slow.held_us)},
                                  {"failed", slow.failed ? "yes" : "no"},
                                  {"statement", slow.text}});
  worker_.load().slow(std::move(slow));
}

}  // namespace kintsugi::frontend
