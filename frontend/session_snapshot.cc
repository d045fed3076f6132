// A transaction that keeps one snapshot, REPEATABLE READ or SERIALIZABLE, and rows that change hands meanwhile.
// Its snapshots on the shards are as old as its first statements there: on the shard where a shardlet has
// arrived since they lack rows, or show half of those that a move was copying; on the one that it has left they
// still show what is another's now. So a statement is planned under the newest map, and is refused with 40001
// when its rows lay elsewhere under any map that the transaction has planned with before.
//
// Which isolation a transaction has only PostgreSQL knows (settings of roles and databases count): it is asked
// once, when it matters.
#include <algorithm>

#include "frontend/session.h"
#include "planner/same_places.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 10s;
constexpr std::size_t kMostMaps = 64;

}  // namespace

// The worker takes another map than `before`.
void Session::note_map(const shardmap::MapPtr& before) {
  if (!seen_.used || before == worker_.map()) return;
  seen_.used = false;
  if (!txn_.open && planned_epoch_ == 0) return;
  if (seen_.before.size() < kMostMaps)
    seen_.before.push_back(before);
  else
    seen_.forgot = true;
}

bool Session::saw_other_places(const planner::Analysis& analysis, const planner::Values& values,
                               const planner::Plan& plan) const {
  const shardmap::ShardMap& now = *worker_.map();
  return std::ranges::any_of(seen_.before, [&](const shardmap::MapPtr& then) {
    return !planner::same_places(analysis, values, plan, *then, now);
  });
}

Result<planner::Plan> Session::plan_of(const KnownStatement& known, const parser::Normaliser& normal,
                                       std::uint32_t begin, std::span<const planner::Parameter> parameters) {
  auto plan = plan_on_map(known, normal, begin, parameters);
  if (seen_.before.empty()) return plan;
  if (!txn_.open && planned_epoch_ == 0) {  // they were another transaction's
    seen_ = {};
    return plan;
  }
  if (!plan || std::holds_alternative<planner::Hold>(*plan) ||
      seen_.isolation == SeenMaps::Isolation::kEachItsOwn) {
    return plan;
  }
  if (!seen_.forgot &&
      !saw_other_places(*known.analysis, {&normal, begin, parameters, false, false, !utf8_}, *plan))
    return plan;
  if (seen_.isolation == SeenMaps::Isolation::kUnknown) {
    seen_.ask = true;
    return planner::Plan(planner::Hold{});
  }
  return fail(Error{.sqlstate = std::string(sqlstate::kSerializationFailure),
                    .message =
                        "could not serialize access: rows that the statement is about have changed shards "
                        "since the transaction's snapshot",
                    .hint = "Retry the transaction."});
}

// In an errand: all parts of the transaction are put away.
io::Task<> Session::ask_isolation() {
  seen_.ask = false;
  const auto part =
      std::ranges::find_if(away_, [](const Place& place) { return place.begun && !place.lease->broken; });
  if (part == away_.end()) {  // nothing has a snapshot yet
    seen_ = {};
    co_return;
  }
  auto asking = executor::run_control_query(part->lease.get(),
                                            "SELECT pg_catalog.current_setting('transaction_isolation')",
                                            &waiter_, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) {
    backend_error_ = rows.error();
    co_return;
  }
  const bool each = rows->size() == 1 && rows->front().size() == 1 &&
                    (rows->front()[0] == "read committed" || rows->front()[0] == "read uncommitted");
  seen_.isolation = each ? SeenMaps::Isolation::kEachItsOwn : SeenMaps::Isolation::kOneSnapshot;
}

}  // namespace kintsugi::frontend
