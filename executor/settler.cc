#include "executor/settler.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/sql_quote.h"
#include "executor/two_phase.h"
#include "shardmap/failpoint.h"
#include "shardmap/local_map.h"
#include "shardmap/pg_session.h"

namespace kintsugi::executor {
namespace {

using namespace std::chrono_literals;
using shardmap::PgSession;
using shardmap::Shard;
using shardmap::ShardId;
using shardmap::ShardMap;
using shardmap::SqlValue;

constexpr std::string_view kLockNotAvailable = "55P03";
constexpr auto kLeastAge = 2s;
// Somebody waits for what is in doubt: soon, so often, and commits that go on are not expected to take longer.
constexpr auto kSoon = 300ms;
constexpr int kSoonRounds = 10;
constexpr auto kRoundTime = 30s;
constexpr int kMostForgotten = 10'000;  // rows a shard and round

std::string prefix_of(const ShardMap& map) {
  return "kintsugi:" + map.store_id() + ":";
}

}  // namespace

struct SettleRound::Prepared {
  ShardId shard = 0;
  std::string gid, owner;
  TransactionName name;
  bool young = false;
};

struct SettleRound::Decision {
  ShardId shard = 0;
  std::string gid, participants;
};

SettleRound::SettleRound() = default;
SettleRound::~SettleRound() = default;

Result<PgSession*> SettleRound::session_of(const Shard& shard, Deadline deadline) {
  // A program before this one has left its schema: statements over several shards wait for this round, and
  // want what this program's has.
  return sessions_.at(shard, deadline, [deadline](PgSession& session) {
    return shardmap::upgrade_local_map(session, deadline.sooner(Deadline::in(5s)));
  });
}

Result<std::vector<SettleRound::Decision>> SettleRound::decisions_on(const Shard& shard, Deadline deadline) {
  KG_TRY(PgSession* const session, session_of(shard, deadline));
  KG_TRY(const auto rows, session->query("SELECT gid, participants FROM kintsugi.txn_decision LIMIT " +
                                             std::to_string(kMostForgotten),
                                         {}, deadline));
  std::vector<Decision> decisions;
  for (const auto& row : rows) decisions.push_back({shard.id, row[0].value_or(""), row[1].value_or("")});
  return decisions;
}

Status SettleRound::list_prepared(const ShardMap& map, const Shard& shard, std::chrono::milliseconds least_age,
                                  std::vector<Prepared>& into, Deadline deadline) {
  KG_TRY(PgSession* const session, session_of(shard, deadline));
  KG_TRY(const auto rows,
         session->query("SELECT gid, owner, prepared > now() - $2::text::interval FROM pg_prepared_xacts "
                        "WHERE database = current_database() AND starts_with(gid, $1)",
                        {SqlValue::text(prefix_of(map)),
                         SqlValue::text(std::to_string(least_age.count()) + " milliseconds")},
                        deadline));
  for (const auto& row : rows) {
    auto name = TransactionName::parse(row[0].value_or(""));
    if (name) into.push_back({shard.id, *row[0], *row[1], *std::move(name), row[2] == "t"});
  }
  return {};
}

// The deciding transaction has made its row before anything was prepared. So one of three holds: the row is
// there, and it is committed; or that transaction is open, and whoever makes the same row has to wait for it;
// or it is gone for good, and the row can be made. Trying to make it tells which, and nothing needs to stay of
// that.
Result<SettleRound::Verdict> SettleRound::verdict_of(const ShardMap& map, const Prepared& prepared,
                                                     Deadline deadline) {
  const Shard* shard = map.shard(prepared.name.decider);
  if (shard == nullptr) {
    return fail("55000", "the transaction " + prepared.gid + " was decided on a shard that is no longer there",
                "Look at it, and end it by COMMIT PREPARED or ROLLBACK PREPARED.");
  }
  const SqlValue gid = SqlValue::text(prepared.name.to_string());
  KG_TRY(PgSession* const session, session_of(*shard, deadline));
  bool made = false;
  std::optional<std::string> owner;
  Status tried = session->transaction(
      [&]() -> Status {
        KG_CHECK(session->run("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", {}, deadline));
        KG_CHECK(session->run("SET LOCAL lock_timeout = '200ms'", {}, deadline));
        KG_TRY(const auto rows, session->query("INSERT INTO kintsugi.txn_decision (gid) VALUES ($1) "
                                               "ON CONFLICT DO NOTHING RETURNING gid",
                                               {gid}, deadline));
        made = !rows.empty();
        if (!made) {
          KG_TRY(const auto found,
                 session->query("SELECT owner FROM kintsugi.txn_decision WHERE gid = $1", {gid}, deadline));
          if (!found.empty()) owner = found[0][0];
        }
        return fail("KG000", "looked, and leaves no trace");
      },
      deadline);
  if (tried.error().sqlstate == kLockNotAvailable) return Verdict::kAlive;
  if (tried.error().sqlstate != "KG000") return fail(std::move(tried).error());
  if (made) return Verdict::kRollBack;
  if (owner != prepared.owner) {
    return fail(sqlstate::kInsufficientPrivilege,
                "the decision of transaction " + prepared.gid + " is not its owner's: it is left alone",
                "Look at it, and end it by COMMIT PREPARED or ROLLBACK PREPARED.");
  }
  return Verdict::kCommit;
}

Result<bool> SettleRound::settle(const ShardMap& map, const Prepared& prepared, Verdict verdict,
                                 Deadline deadline) {
  KG_TRY(PgSession* const session, session_of(*map.shard(prepared.shard), deadline));
  const std::string verb = verdict == Verdict::kCommit ? "COMMIT" : "ROLLBACK";
  shardmap::failpoint("settle.known");
  Status done = session->script(verb + " PREPARED " + quote_literal(prepared.gid), deadline);
  if (!done && done.error().sqlstate == "55000") return false;
  if (!done && done.error().sqlstate != sqlstate::kUndefinedObject) return fail(std::move(done).error());
  return true;  // or somebody else was faster
}

// A decision has done its work when none of its participants holds the transaction prepared. `prepared` was
// read after `decisions`, and every participant has answered: what was not prepared then never will be again.
Status SettleRound::forget(const ShardMap& map, const std::vector<Decision>& decisions,
                           const std::vector<Prepared>& prepared, const std::vector<ShardId>& answered,
                           SettleReport& report, Deadline deadline) {
  std::set<std::string> needed;
  for (const Prepared& each : prepared) needed.insert(each.name.to_string());
  std::map<ShardId, std::string> by_shard;
  std::map<ShardId, int> counts;
  for (const Decision& decision : decisions) {
    if (needed.contains(decision.gid)) continue;
    bool all = true;
    std::string_view rest = decision.participants;
    while (all && !rest.empty()) {
      const std::string_view id = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), id.size() + 1));
      all = std::any_of(answered.begin(), answered.end(),
                        [id](ShardId each) { return std::to_string(each) == id; });
    }
    if (!all) continue;
    std::string& list = by_shard[decision.shard];
    list += (list.empty() ? "" : ", ") + quote_literal(decision.gid);
    ++counts[decision.shard];
  }
  for (const auto& [shard, list] : by_shard) {
    KG_TRY(PgSession* const session, session_of(*map.shard(shard), deadline));
    KG_CHECK(session->script("DELETE FROM kintsugi.txn_decision WHERE gid IN (" + list + ")", deadline));
    report.forgotten += counts[shard];
  }
  return {};
}

SettleReport SettleRound::run(const ShardMap& map, std::chrono::milliseconds least_age, Deadline deadline) {
  SettleReport report;
  const auto note = [&report](const Status& status) {
    if (!status) report.errors.push_back(status.error());
    return status.has_value();
  };
  sessions_.keep_those_of(map);
  std::vector<Decision> decisions;
  std::vector<Prepared> prepared;
  std::vector<ShardId> answered;
  std::set<ShardId> away;
  for (const Shard* shard : map.shards()) {
    auto found = decisions_on(*shard, deadline);
    if (found) {
      decisions.insert(decisions.end(), found->begin(), found->end());
    } else {
      away.insert(shard->id);
      report.errors.push_back(found.error());
    }
  }
  for (const Shard* shard : map.shards()) {
    if (away.contains(shard->id)) continue;
    if (note(list_prepared(map, *shard, least_age, prepared, deadline))) answered.push_back(shard->id);
  }
  std::map<std::string, Result<Verdict>> verdicts;
  std::set<ShardId> left;
  for (const Prepared& each : prepared) {
    if (each.young) {
      ++report.young;
      left.insert(each.shard);
      continue;
    }
    const std::string gid = each.name.to_string();
    auto known = verdicts.find(gid);
    if (known == verdicts.end()) known = verdicts.emplace(gid, verdict_of(map, each, deadline)).first;
    const Result<Verdict>& verdict = known->second;
    bool over = false;
    if (!verdict) {
      report.errors.push_back(verdict.error());
    } else if (*verdict == Verdict::kAlive) {
      ++report.alive;
    } else if (const Result<bool> settled = settle(map, each, *verdict, deadline); !settled) {
      report.errors.push_back(settled.error());
    } else {
      over = *settled;
      ++(*verdict == Verdict::kCommit ? report.committed : report.rolled_back);
    }
    if (!over) left.insert(each.shard);
  }
  for (const ShardId shard : answered) {
    if (!left.contains(shard)) report.clean.push_back(shard);
  }
  (void)note(forget(map, decisions, prepared, answered, report, deadline));
  return report;
}

Settler::Settler(std::function<shardmap::MapPtr()> map, std::shared_ptr<Moments> moments,
                 std::chrono::milliseconds interval)
    : map_(std::move(map)), moments_(std::move(moments)), interval_(interval) {}

Settler::~Settler() {
  stop();
}

void Settler::start() {
  thread_ = std::thread([this] { loop(); });
}

void Settler::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  condition_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Settler::wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  condition_.notify_all();
}

void Settler::loop() {
  SettleRound round;
  std::string last_error;
  int soon = 0;  // rounds in short distances
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      const bool hurry = soon > 0 && moments_->any_doubt();
      condition_.wait_for(lock, hurry ? kSoon : interval_, [this] { return woken_ || stopping_; });
      if (stopping_) return;
      soon = woken_ ? kSoonRounds : std::max(0, soon - 1);
      woken_ = false;
    }
    const shardmap::MapPtr map = map_();
    if (map == nullptr || map->shards().size() < 2) {
      if (map != nullptr) {
        for (const Shard* shard : map->shards()) moments_->clear(shard->id, moments_->doubts());
      }
      continue;
    }
    const std::uint64_t doubts = moments_->doubts();
    const SettleReport report = round.run(*map, soon > 0 ? kSoon : kLeastAge, Deadline::in(kRoundTime));
    for (const ShardId shard : report.clean) moments_->clear(shard, doubts);
    if (report.committed + report.rolled_back > 0) {
      log::info("transactions that were left prepared are settled",
                {{"committed", report.committed}, {"rolled_back", report.rolled_back}});
    }
    // The same trouble round after round is told once.
    const std::string error = report.errors.empty() ? "" : report.errors.front().to_string();
    if (!error.empty() && error != last_error) {
      log::warning("transactions over several shards cannot all be settled now",
                   {{"error", error}, {"errors", report.errors.size()}});
    }
    last_error = error;
  }
}

}  // namespace kintsugi::executor
