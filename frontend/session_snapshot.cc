// A transaction that keeps one snapshot: REPEATABLE READ or SERIALIZABLE.
//
// Its first query takes the snapshot of all that it will see, wherever that lies: so the transaction is opened
// on all shards before that query runs, at one moment (session_look.cc). A shard that is away then keeps nobody
// from the others; it cannot join later.
//
// Rows that change hands meanwhile: on the shard where a shardlet has arrived since the snapshots lack rows, or
// show half of those that a move was copying; on the one that it has left they still show what is another's
// now. So a statement is planned under the newest map, and is refused with 40001 when its rows lay elsewhere
// under any map that the transaction has planned with before.
//
// Which isolation a transaction has that has not said it only PostgreSQL knows (settings of roles and databases
// count): it is asked when it matters.
#include <algorithm>

#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "planner/same_places.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 10s;
constexpr auto kDefaultKnown = 1s;  // ALTER ROLE ... SET, a reload of the configuration
constexpr std::size_t kMostMaps = 64;

bool away(const Error& error) {
  return error.sqlstate.starts_with("08") || error.sqlstate == sqlstate::kShardUnreachable ||
         error.sqlstate == sqlstate::kCannotConnectNow;
}

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
  if (plan && (known.effects & kCallsSetConfig) != 0 && txn_.open)
    plan = where_it_sets(known, std::move(*plan));
  if (plan && !std::holds_alternative<planner::Hold>(*plan) && takes_the_snapshot(known)) {
    txn_.due = true;
    return planner::Plan(planner::Hold{});
  }
  if (seen_.before.empty()) return plan;
  if (!txn_.open && planned_epoch_ == 0) {  // they were another transaction's
    seen_ = {};
    return plan;
  }
  if (!plan || std::holds_alternative<planner::Hold>(*plan) || txn_.isolation == Isolation::kEachItsOwn) {
    return plan;
  }
  if (!seen_.forgot &&
      !saw_other_places(*known.analysis, {&normal, begin, parameters, false, false, !utf8_}, *plan))
    return plan;
  if (txn_.isolation == Isolation::kUnknown) {
    seen_.ask = true;
    return planner::Plan(planner::Hold{});
  }
  return fail(Error{.sqlstate = std::string(sqlstate::kSerializationFailure),
                    .message =
                        "could not serialize access: rows that the statement is about have changed shards "
                        "since the transaction's snapshot",
                    .hint = "Retry the transaction."});
}

// What its own words and the session's settings say; kUnknown when they do not.
Isolation Session::isolation_told() {
  std::optional<Isolation> said = isolation_said(txn_.begin);
  for (const std::string& statement : txn_.prelude) {
    if (const auto later = isolation_said(statement)) said = later;
  }
  if (said) return *said;
  for (const executor::SettingsRef& settings : {settings_, startup_}) {
    if (const std::string* value = settings->find("default_transaction_isolation"))
      return isolation_named(*value);
  }
  // What a login is known to have is of those who came without options of their own.
  if (startup_->find("options") != nullptr)
    return default_isolation_until_.passed() ? Isolation::kUnknown : default_isolation_;
  if (home() == 0) return Isolation::kUnknown;
  const auto pool = pool_of(home());
  const auto known = pool ? (*pool)->slots()->default_isolation() : std::nullopt;
  return known ? isolation_named(*known) : Isolation::kUnknown;
}

// Whether this is a block's first query, and may have to see what the later ones will see on other shards.
bool Session::takes_the_snapshot(const KnownStatement& known) {
  if (!txn_.open || txn_.queried || worker_.map()->shards().size() < 2) return false;
  if (known.tree->get<parser::LockTable>() != nullptr) return false;  // it is there to come before
  const Isolation told = isolation_told();
  if (told == Isolation::kEachItsOwn) {
    txn_.isolation = told;
    txn_.queried = true;
  }
  return !txn_.queried;
}

// In errands: all parts of the transaction are put away.

io::Task<Result<Isolation>> Session::isolation() {
  if (txn_.isolation == Isolation::kUnknown) txn_.isolation = isolation_told();
  if (txn_.isolation != Isolation::kUnknown) co_return txn_.isolation;
  auto joining = join_any();
  auto place = co_await std::move(joining);
  for (const shardmap::Shard* shard : worker_.map()->shards()) {  // the home shard is away: any other knows
    if (place) break;
    auto joining_it = join(shard->id);
    place = co_await std::move(joining_it);
  }
  if (!place) co_return fail(std::move(place).error());
  const bool begun = (*place)->begun;
  auto asking = executor::run_control_query(
      (*place)->lease.get(), begun ? "SHOW transaction_isolation" : "SHOW default_transaction_isolation",
      &waiter_, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  const std::string name = rows->at(0).at(0).value_or("");
  if (!begun && startup_->find("options") != nullptr) {
    default_isolation_ = isolation_named(name);
    default_isolation_until_ = Deadline::in(kDefaultKnown);
  } else if (!begun) {
    if (const auto pool = pool_of(home())) (*pool)->slots()->note_default_isolation(name);
  }
  co_return txn_.isolation = isolation_named(name);
}

// Before a block's first query.
io::Task<> Session::take_one_snapshot() {
  txn_.due = false;
  auto asking = isolation();
  auto level = co_await std::move(asking);
  Status done;
  if (!level) {
    done = fail(std::move(level).error());
  } else if (keeps_one_snapshot(*level)) {
    auto opening_all = open_everywhere();
    done = co_await std::move(opening_all);
  }
  if (done)
    txn_.queried = true;
  else
    backend_error_ = std::move(done).error();
}

io::Task<Status> Session::open_everywhere() {
  std::vector<ShardId> shards;
  for (const shardmap::Shard* shard : worker_.map()->shards()) {
    auto joining = join(shard->id);
    auto joined = co_await std::move(joining);
    if (joined && !(*joined)->lease->broken) {
      shards.push_back(shard->id);
    } else if (joined) {
      co_return fail(lost_part(**joined));
    } else if (!away(joined.error()) && shard->state != shardmap::ShardState::kPreparing) {
      co_return fail(std::move(joined).error());
    }
  }
  auto opening_all = open_at_one_moment(std::move(shards));
  Status opened = co_await std::move(opening_all);
  txn_.whole = opened.has_value();
  co_return opened;
}

Error Session::joins_too_late(ShardId shard) const {
  const shardmap::Shard* found = worker_.map()->shard(shard);
  return {
      .sqlstate = std::string(sqlstate::kSerializationFailure),
      .message = "could not serialize access: shard " + (found == nullptr ? "" : found->name) +
                 " is not part of the transaction's snapshot",
      .detail = "It could not be reached, or was not there yet, when the first query of the transaction ran.",
      .hint = "Retry the transaction. SHOW SHARDS says whether the shard answers."};
}

io::Task<> Session::ask_isolation() {
  seen_.ask = false;
  const bool begun =
      std::ranges::any_of(away_, [](const Place& place) { return place.begun && !place.lease->broken; });
  if (!begun) {  // nothing has a snapshot yet
    seen_ = {};
    co_return;
  }
  auto asking = isolation();
  auto level = co_await std::move(asking);
  if (!level) backend_error_ = level.error();
}

}  // namespace kintsugi::frontend
