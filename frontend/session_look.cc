// A statement over several shards is to see every transaction over several shards entirely or not at all, as
// one PostgreSQL would have it (executor/moments.h). While no such transaction is about, a fan-out runs as it
// is, and is run again when one has come into its way. Otherwise its shards take their snapshots first (Bind
// does), with all commits at a distance, and execute then.
//
// Who keeps one snapshot for a whole transaction looks alone: two of them would else see what happened on one
// shard and on another in different orders (docs/decisions/0053-serializable.md).
#include <algorithm>

#include "executor/control_round.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;
// How long commits wait for a look. When they have gone on it is done again, with more patience.
constexpr auto kFirstPatience = 100ms;
constexpr int kMostDoublings = 8;  // 25 s
constexpr auto kOvertakeEvery = 20ms;
constexpr auto kSettleAfter = 500ms;  // that a commit takes so long is not expected

std::chrono::milliseconds patience(int attempt) {
  return kFirstPatience * (1 << std::min(attempt, kMostDoublings));
}

Error unsettled() {
  return {.sqlstate = std::string(sqlstate::kShardUnreachable),
          .message = "a transaction over several shards was cut off, and is not settled on all of them yet",
          .detail = "What it has done may be seen on one shard and not on another.",
          .hint = "Repeat the statement. The log says which shard cannot be reached or settled."};
}

Error others_hold_on() {
  return {
      .sqlstate = std::string(sqlstate::kShardUnreachable),
      .message = "waited too long for transactions of other routers over the same shards",
      .detail = "One of them was cut off and is not settled on all shards yet, or they leave no moment free.",
      .hint =
          "Repeat the statement. SHOW SHARDS says which shard does not answer, and pg_prepared_xacts on "
          "each what is not settled."};
}

Error waited_too_long() {
  return {.sqlstate = std::string(sqlstate::kLimitReached),
          .message = "waited too long for other transactions over the same shards",
          .hint = "Look for a shard that does not answer (SHOW SHARDS), or raise limits.hold_timeout."};
}

}  // namespace

io::Task<Status> Session::wait_inside(executor::Moments::Pass* pass, std::vector<ShardId> shards) {
  const executor::Moments& moments = *worker_.shared().moments;
  const Deadline deadline = hold_deadline();
  if (moments.in_doubt(shards) && worker_.services().settle) worker_.services().settle();
  while (!pass->inside()) {
    KG_CO_CHECK(still_wanted());
    if (deadline.passed()) co_return fail(moments.in_doubt(shards) ? unsettled() : waited_too_long());
    // Another that is to be alone may be stuck.
    if (!co_await waiter_.wait(deadline.sooner(Deadline::in(kSettleAfter))))
      worker_.shared().moments->overtake();
  }
  co_return Status{};
}

// Commits through other routers.
io::Task<Status> Session::wait_for_others(executor::Lookout::Watch* watch) {
  const Deadline deadline = hold_deadline();
  while (!watch->held()) {
    KG_CO_CHECK(still_wanted());
    if (watch->refused()) co_return fail(*watch->refused());
    if (deadline.passed()) co_return fail(others_hold_on());
    if (co_await waiter_.wait(deadline.sooner(Deadline::in(kSettleAfter)))) continue;
    if (worker_.services().settle) worker_.services().settle();
  }
  co_return Status{};
}

// While it lasts, no transaction becomes visible on some of its shards and not on others.
struct Session::Moment {
  executor::Moments::Pass pass;                     // this router's commits
  std::optional<executor::Lookout::Watch> lookout;  // and others', where there may be any

  // Ends it. Whether it has lasted until now; nothing while that is not known.
  std::optional<bool> end() {
    if (lookout && pass.inside()) {
      lookout->let_go();
      const std::optional<bool> was_held = lookout->was_held();
      if (!was_held) return std::nullopt;
      if (!*was_held) pass.leave();
    }
    const bool lasted = pass.inside();
    lookout.reset();
    pass.leave();
    return lasted;
  }
};

io::Task<Result<std::shared_ptr<Session::Moment>>> Session::begin_moment(std::vector<ShardId> shards,
                                                                         std::chrono::milliseconds patience,
                                                                         bool alone) {
  std::ranges::sort(shards);
  auto moment = std::make_shared<Moment>();
  moment->pass = worker_.shared().moments->look(shards, &waiter_, patience, alone);
  auto waiting = wait_inside(&moment->pass, shards);
  if (Status inside = co_await std::move(waiting); !inside) co_return fail(std::move(inside).error());
  if (!worker_.shared().several_routers) co_return moment;
  executor::Lookout::Logins logins;
  for (const ShardId shard : shards) {
    KG_CO_TRY(executor::BackendPool * pool, pool_of(shard));
    logins.push_back(pool->slots()->login());
  }
  moment->lookout = worker_.lookout().watch(std::move(logins), &waiter_, patience, alone);
  auto holding = wait_for_others(&*moment->lookout);
  if (Status held = co_await std::move(holding); !held) co_return fail(std::move(held).error());
  co_return moment;
}

io::Task<bool> Session::end_moment(Moment* moment) {
  std::optional<bool> lasted = moment->end();
  while (!lasted) {
    (void)co_await waiter_.wait(Deadline::in(kControlTimeout));
    lasted = moment->end();
  }
  co_return *lasted;
}

// A statement that is a transaction of its own.
io::Task<Result<bool>> Session::looks_alone() {
  if (txn_.open) co_return false;
  txn_.isolation = Isolation::kUnknown;
  auto asking = isolation();
  auto level = co_await std::move(asking);
  if (!level) co_return fail(std::move(level).error());
  co_return keeps_one_snapshot(*level);
}

// The connections are there. `attempt` counts from 0.
io::Task<Result<executor::FanLook>> Session::look(std::vector<ShardId> shards, int attempt) {
  executor::Moments& moments = *worker_.shared().moments;
  auto asking = looks_alone();
  KG_CO_TRY(const bool alone, co_await std::move(asking));
  if (attempt == 0 && !alone && !worker_.shared().several_routers) {
    if (const auto since = moments.quiet(shards))
      co_return executor::FanLook{.one_moment = [&moments, since] { return moments.undisturbed(*since); }};
  }
  auto beginning = begin_moment(std::move(shards), patience(attempt), alone);
  auto begun = co_await std::move(beginning);
  if (!begun) co_return fail(std::move(begun).error());
  co_return executor::FanLook{.one_moment = [moment = std::move(*begun)] { return moment->end(); },
                              .in_steps = true};
}

// The first step of a fan-out; in `fan` what has rows left.
io::Task<Result<executor::FanStep>> Session::begin_fan(planner::FanOut fan_out, Run* run,
                                                       std::uint64_t max_rows,
                                                       std::unique_ptr<executor::Fan>* fan) {
  const bool looks = fan_out.tasks.size() > 1 && !fan_out.writes;
  for (int attempt = 0;; ++attempt) {
    // Only who may have to begin again keeps the texts.
    auto preparing = fan_for(looks ? fan_out : std::move(fan_out), run, attempt);
    auto made = co_await std::move(preparing);
    if (!made) co_return fail(std::move(made).error());
    *fan = std::move(*made);
    auto advancing = (*fan)->advance(max_rows);
    executor::FanStep step = co_await std::move(advancing);
    if (!step.torn) co_return step;
    fan->reset();
    KG_CO_CHECK(still_wanted());
  }
}

// Serializable, on several shards: where PostgreSQL sees only a part it is shown what may be in the others.
io::Task<Status> Session::read_witness(std::vector<Place*> places) {
  std::vector<executor::ControlOrder> orders;
  for (Place* place : places) orders.push_back({place->lease.get(), std::string(executor::kReadWitness)});
  auto reading = executor::run_on_all(std::move(orders), &waiter_, Deadline::in(kControlTimeout));
  for (executor::ControlAnswer& answer : co_await std::move(reading)) {
    if (!answer.rows) co_return fail(std::move(answer.rows).error());
  }
  co_return Status{};
}

// What reads several shards by more than one statement: the transaction is opened on all of them, with the
// snapshots of one moment.
io::Task<Status> Session::open_at_one_moment(std::vector<ShardId> shards) {
  const bool begins = std::ranges::none_of(away_, [](const Place& place) { return place.begun; });
  for (const Deadline deadline = hold_deadline();;) {
    auto opening_all = open_in_a_moment(shards);
    KG_CO_TRY(const bool lasted, co_await std::move(opening_all));
    if (lasted) co_return Status{};
    // This router was frozen, or a shard slow. Nothing has been read yet.
    if (deadline.passed()) co_return fail(waited_too_long());
    if (!begins) {
      co_return fail(Error{.sqlstate = std::string(sqlstate::kSerializationFailure),
                           .message = "could not serialize access: the shards' snapshots are not of one moment",
                           .hint = "Retry the transaction."});
    }
    auto taking_back = take_back([](const Place& place) { return place.begun; });
    co_await std::move(taking_back);
  }
}

// False: the moment was over before all had their snapshots.
io::Task<Result<bool>> Session::open_in_a_moment(std::vector<ShardId> shards) {
  auto beginning = begin_moment(shards, patience(kMostDoublings), keeps_one_snapshot(txn_.isolation));
  auto begun = co_await std::move(beginning);
  if (!begun) co_return fail(std::move(begun).error());
  const bool serializable = txn_.isolation == Isolation::kSerializable;
  std::string take = "SELECT pg_catalog.current_setting('transaction_read_only')";
  // Who waits for a moment at which nothing can go wrong would wait on each shard for another one.
  const bool deferrable = says_deferrable(txn_.begin) || std::ranges::any_of(txn_.prelude, says_deferrable);
  if (deferrable && txn_.savepoints.empty()) take.insert(0, "SET TRANSACTION NOT DEFERRABLE;\n");
  std::vector<executor::ControlOrder> orders;
  std::vector<Place*> places;
  executor::Witness::Logins logins;
  for (const ShardId shard : shards) {
    KG_CO_TRY(Place * place, place_at(shard));
    std::string sql;
    for (const std::string& statement : opening(*place, false)) sql.append(statement).append(";\n");
    orders.push_back({place->lease.get(), sql + take});
    places.push_back(place);
    logins.push_back(place->pool->slots()->login());
  }
  auto running = executor::run_on_all(std::move(orders), &waiter_, Deadline::in(kControlTimeout));
  const std::vector<executor::ControlAnswer> answers = co_await std::move(running);
  Status opened;
  bool writes = false;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    places[i]->begun = !places[i]->lease->broken && places[i]->lease->status != wire::TransactionStatus::kIdle;
    if (!answers[i].rows && opened) opened = fail(answers[i].rows.error());
    writes |= answers[i].rows && answers[i].rows->back()[0] == "off";
  }
  const bool witnessed = opened && serializable && writes && places.size() > 1;
  if (witnessed) {
    auto witnessing = worker_.witness().commit_on(std::move(logins), &waiter_, Deadline::in(kControlTimeout));
    opened = co_await std::move(witnessing);
  }
  auto ending = end_moment(begun->get());
  const bool lasted = co_await std::move(ending);
  if (opened && lasted && witnessed) {
    auto reading = read_witness(std::move(places));
    opened = co_await std::move(reading);
  }
  KG_CO_CHECK(opened);
  co_return lasted;
}

// Rows that are read by more than one statement, in a transaction of which each sees what is new: commits keep
// their distance until all have been read, or it is done again.
io::Task<executor::GatherResult> Session::fill_at_one_moment(const planner::Gather* gather,
                                                             executor::GatherRequest request,
                                                             std::optional<executor::Gathering>* gathering) {
  std::vector<ShardId> shards;
  for (const planner::GatheredRelation& relation : gather->relations) {
    for (const planner::ShardTask& task : relation.tasks) shards.push_back(task.shard);
  }
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (int attempt = 0;; ++attempt) {
    std::shared_ptr<Moment> moment;
    if (shards.size() > 1) {
      const bool alone = txn_.implicit && keeps_one_snapshot(txn_.isolation);
      auto beginning = begin_moment(shards, patience(attempt), alone);
      auto begun = co_await std::move(beginning);
      if (!begun) {
        executor::GatherResult failed{.sqlstate = begun.error().sqlstate};
        wire::append_error(failed.error, "ERROR", begun.error());
        co_return failed;
      }
      moment = std::move(*begun);
    }
    gathering->emplace(request);
    auto filling = (*gathering)->fill();
    executor::GatherResult filled = co_await std::move(filling);
    if (!filled.ok || moment == nullptr) co_return filled;
    auto ending = end_moment(moment.get());
    if (co_await std::move(ending)) co_return filled;
    auto dropping = (*gathering)->drop();
    co_await std::move(dropping);
  }
}

// Before several shards commit what they have written: nobody is taking snapshots on two of them.
io::Task<Result<executor::Moments::Pass>> Session::enter_commit() {
  std::vector<ShardId> writers;
  for (const Place& place : away_) {
    if (place.begun && place.wrote) writers.push_back(place.shard);
  }
  if (writers.size() < 2) co_return executor::Moments::Pass();
  executor::Moments& moments = *worker_.shared().moments;
  auto pass = moments.commit(writers, &waiter_);
  const Deadline deadline = Deadline::in(kControlTimeout);
  while (!pass.inside()) {
    if (deadline.passed()) co_return fail(waited_too_long());
    if (!co_await waiter_.wait(deadline.sooner(Deadline::in(kOvertakeEvery)))) moments.overtake();
  }
  co_return pass;
}

// Prepared transactions have been left on these: nobody looks at them before a Settler has been there.
std::vector<ShardId> Session::note_unsettled(const std::vector<std::string>& shards) {
  std::vector<ShardId> left;
  for (const Place& place : away_) {
    if (std::ranges::find(shards, place.lease->shard) != shards.end()) left.push_back(place.shard);
  }
  worker_.shared().moments->doubt(left);
  if (worker_.services().settle) worker_.services().settle();
  return left;
}

// It is committed, and cannot be seen on these before a Settler has been there. Whoever reads after the answer,
// through whichever router, is to see it.
io::Task<> Session::wait_until_seen(std::vector<ShardId> left) {
  const executor::Moments::Pass pass = worker_.shared().moments->look(left, &waiter_, kFirstPatience);
  const Deadline deadline = hold_deadline();
  while (!pass.inside()) {
    if (deadline.passed() || !still_wanted()) {
      wire::append_notice(to_client_.compose(),
                          {.severity = "WARNING",
                           .sqlstate = "01000",
                           .message = "the transaction is committed, and not to be seen on all shards yet",
                           .detail = "The connection to a shard was lost after the decision.",
                           .hint = "It will be seen there soon after the shard answers again (SHOW SHARDS)."});
      co_return;
    }
    (void)co_await waiter_.wait(deadline);
  }
}

}  // namespace kintsugi::frontend
