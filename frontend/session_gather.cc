// Tiers 3 and 4: rows of several shards come together in temporary tables on one, and the rest of the statement
// runs there.
#include <algorithm>

#include "base/sql_quote.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;

// The router's own transaction: whatever default_transaction_read_only says, there are temporary tables to be
// made.
constexpr std::string_view kBegin = "BEGIN READ WRITE";
// The same when it only reads, and several times: with one snapshot.
constexpr std::string_view kBeginToRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE";

// How a transaction beside a READ ONLY one begins: with its snapshot, where it has one for all its statements.
io::Task<Result<std::string>> begin_beside(executor::Backend* read_only, io::Waiter* waiter) {
  auto asking = executor::run_control_query(
      read_only,
      "SELECT CASE pg_catalog.current_setting('transaction_isolation') WHEN 'repeatable read' THEN "
      "pg_catalog.pg_export_snapshot() END",
      waiter, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  const std::string snapshot = rows->size() == 1 && !rows->front().empty() ? rows->front()[0].value_or("") : "";
  if (snapshot.empty()) co_return std::string(kBegin);
  co_return std::string(kBeginToRead) + "; SET TRANSACTION SNAPSHOT " + quote_literal(snapshot);
}

}  // namespace

// The transaction is opened on a shard before anything else of it runs there.
io::Task<Status> Session::open_at(Place* place, bool writes) {
  std::string sql;
  for (const std::string& statement : opening(*place, writes)) sql.append(statement).append(";\n");
  if (sql.empty()) co_return Status{};
  auto running = executor::run_control_query(place->lease.get(), sql, &waiter_, Deadline::in(kControlTimeout));
  auto done = co_await std::move(running);
  if (done) co_return Status{};
  place->begun = place->lease->status != wire::TransactionStatus::kIdle;
  co_return fail(std::move(done).error());
}

io::Task<StatementEnd> Session::run_gather(planner::Gather gather, Run* run) {
  const bool own_transaction = !txn_.open;
  if (own_transaction && !gather.cursor.empty() && !gather.hold) {
    co_return StatementEnd::refused(
        {.sqlstate = "25P01", .message = "DECLARE CURSOR can only be used in transaction blocks"});
  }
  if (may_be_small(gather)) {
    auto finishing = finish_small(&gather, run);
    std::optional<StatementEnd> end = co_await std::move(finishing);
    if (end) co_return std::move(*end);
  }
  if (own_transaction) {
    txn_.isolation = Isolation::kUnknown;
    auto asking = isolation();
    auto level = co_await std::move(asking);
    if (!level) co_return StatementEnd::refused(level.error());
    // Who has asked for more by default has it.
    const bool reads = !gather.writes && *level != Isolation::kSerializable;
    txn_ = {
        .open = true, .implicit = true, .begin = std::string(reads ? kBeginToRead : kBegin), .queried = true};
    txn_.isolation = *level;
    if (gather.writes && keeps_one_snapshot(*level)) {
      auto taking = take_one_snapshot();
      co_await std::move(taking);
      if (backend_error_) {
        StatementEnd end = StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
        txn_.failed = true;
        auto ending = end_implicit();
        (void)co_await std::move(ending);
        co_return end;
      }
    }
  }
  auto running = gather_and_finish(std::move(gather), run);
  StatementEnd end = co_await std::move(running);
  if (!own_transaction) co_return end;
  if (end.failed) txn_.failed = true;
  auto ending = end_implicit();
  StatementEnd ended = co_await std::move(ending);
  if (ended.failed && !end.failed) end = std::move(ended);
  co_return end;
}

executor::GatherRequest Session::gather_request(const planner::Gather& gather, executor::Backend* finisher,
                                                Run* run) {
  executor::GatherRequest request;
  for (const planner::GatheredRelation& relation : gather.relations) {
    executor::GatherRequest::Relation& wanted = request.relations.emplace_back();
    for (const planner::ShardTask& task : relation.tasks) {
      auto place = place_at(task.shard);
      wanted.sources.push_back((*place)->lease.get());
    }
    wanted.relation = relation;
  }
  request.finisher = finisher;
  request.parameter_types = run->types;
  request.parameters = run->bind.values;
  request.most_bytes = static_cast<std::uint64_t>(worker_.shared().config.limits.gather_bytes);
  request.waiter = &waiter_;
  request.still_wanted = [this] { return still_wanted(); };
  request.cancel = [this](executor::Backend& backend) { cancel_at(backend); };
  request.max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  return request;
}

// Whether the client's transaction may not make the temporary tables. What it then cannot have is an error.
io::Task<Result<bool>> Session::begun_read_only(const planner::Gather& gather) {
  auto place = place_at(gather.finisher);
  auto asking = executor::run_control_query((*place)->lease.get(),
                                            "SELECT pg_catalog.current_setting('transaction_read_only'), "
                                            "pg_catalog.current_setting('transaction_isolation')",
                                            &waiter_, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  if (rows->size() != 1 || rows->front().size() != 2 || rows->front()[0].value_or("") != "on") co_return false;
  if (!gather.cursor.empty()) {
    co_return fail(sqlstate::kNotSupported, "a cursor over several shards in a READ ONLY transaction",
                   "Leave READ ONLY out, or send the query itself.");
  }
  // What the final statement reads beside the gathered rows it has to read by the transaction's own snapshot,
  // and PostgreSQL hands that on (finish_aside()) from a whole transaction, without its watch over serializable
  // ones.
  const Isolation level = isolation_named(rows->front()[1].value_or(""));
  if (gather.tier == planner::Tier::kGather && level == Isolation::kSerializable) {
    co_return fail(
        sqlstate::kNotSupported,
        "bringing rows of several shards together in a SERIALIZABLE READ ONLY transaction",
        "Leave READ ONLY out, use REPEATABLE READ, or say with = which sharding key the statement is "
        "for.");
  }
  if (gather.tier == planner::Tier::kGather && level == Isolation::kOneSnapshot && !txn_.savepoints.empty()) {
    co_return fail(sqlstate::kNotSupported,
                   "bringing rows of several shards together behind a savepoint of a REPEATABLE READ READ ONLY "
                   "transaction",
                   "Send it before the savepoint, release the savepoint first, or leave READ ONLY out.");
  }
  co_return true;
}

// A READ ONLY transaction cannot make temporary tables. It has written nothing that the final statement would
// have to see, so that runs beside it, on another connection; the rows are read by the transaction's own.
io::Task<StatementEnd> Session::finish_aside(planner::Gather gather, Run* run) {
  auto pool = pool_of(gather.finisher);
  if (!pool) co_return StatementEnd::refused(pool.error());
  auto acquiring = acquire(*pool, {});
  auto acquired = co_await std::move(acquiring);
  if (!acquired) co_return StatementEnd::refused(acquired.error());
  executor::BackendLease lease = std::move(*acquired);
  executor::BackendPool* of = *pool;
  std::string begin(kBegin);
  if (gather.tier == planner::Tier::kGather) {
    auto choosing = begin_beside((*place_at(gather.finisher))->lease.get(), &waiter_);
    auto chosen = co_await std::move(choosing);
    if (!chosen) co_return StatementEnd::refused(chosen.error());
    begin = std::move(*chosen);
  }
  auto beginning = executor::run_control_query(lease.get(), begin, &waiter_, Deadline::in(kControlTimeout));
  if (auto begun = co_await std::move(beginning); !begun) {
    lease->broken = true;
    co_return StatementEnd::refused(begun.error());
  }
  const auto cancel = [this, of, aside = lease.get()](executor::Backend& backend) {
    if (&backend == aside)
      worker_.send_cancel(*of, backend, key_);
    else
      cancel_at(backend);
  };
  const std::string text = std::move(gather.text);
  executor::GatherRequest gathered = gather_request(gather, lease.get(), run);
  gathered.cancel = cancel;
  std::optional<executor::Gathering> gathering;
  auto filling = fill_at_one_moment(&gather, std::move(gathered), &gathering);
  executor::GatherResult filled = co_await std::move(filling);
  StatementEnd end;
  if (!filled.ok) {
    end = {.failed = true, .error = std::move(filled.error)};
  } else if (gather.copy_out) {
    executor::CopyOutRequest request = copy_out_request();
    request.branches.push_back({.backend = lease.get(), .text = text, .before = {"SET TRANSACTION READ ONLY"}});
    request.cancel = cancel;
    auto copying = executor::copy_out(std::move(request));
    executor::FanStep step = co_await std::move(copying);
    end = end_of(step);
  } else {
    executor::FanRequest request = fan_request(run);
    request.branches.push_back({.backend = lease.get(), .text = text, .before = {"SET TRANSACTION READ ONLY"}});
    request.cancel = cancel;
    executor::Fan fan(std::move(request));
    auto advancing = fan.advance(0);
    executor::FanStep step = co_await std::move(advancing);
    end = end_of(step);
  }
  if (!lease->broken) {
    auto ending = executor::run_control_query(lease.get(), "ROLLBACK", &waiter_, Deadline::in(kControlTimeout));
    if (auto ended = co_await std::move(ending); !ended) lease->broken = true;
    lease->has_temporaries = false;
  }
  lease->stream.set_target(nullptr);
  co_return end;
}

io::Task<StatementEnd> Session::gather_and_finish(planner::Gather gather, Run* run) {
  std::vector<ShardId> shards{gather.finisher};
  for (const planner::GatheredRelation& relation : gather.relations) {
    for (const planner::ShardTask& task : relation.tasks) shards.push_back(task.shard);
  }
  std::ranges::sort(shards);
  shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
  for (const ShardId shard : shards) {
    auto joining = join(shard);
    auto joined = co_await std::move(joining);
    if (!joined) co_return StatementEnd::refused(joined.error());
    if ((*joined)->lease->broken) co_return StatementEnd::refused(lost_part(**joined));
  }
  const bool one_snapshot = txn_.implicit && txn_.begin == kBeginToRead;
  const bool own = one_snapshot || (txn_.implicit && txn_.begin == kBegin);
  if (one_snapshot && shards.size() > 1) {
    auto opening = open_at_one_moment(shards);
    if (Status done = co_await std::move(opening); !done) co_return StatementEnd::refused(done.error());
  }
  for (const ShardId shard : shards) {
    auto opened = open_at(*place_at(shard), gather.writes && shard == gather.finisher);
    if (Status done = co_await std::move(opened); !done) co_return StatementEnd::refused(done.error());
  }
  if (!own) {
    auto asking = begun_read_only(gather);
    Result<bool> read_only = co_await std::move(asking);
    if (!read_only) co_return StatementEnd::refused(read_only.error());
    if (*read_only) {
      auto finishing = finish_aside(std::move(gather), run);
      StatementEnd end = co_await std::move(finishing);
      if (end.failed) txn_.failed = true;
      co_return end;
    }
  }
  if (!gather.cursor.empty() && cursors_.contains(gather.cursor)) {
    // One of that name had its tables here, and is closed, or this is a mistake.
    std::string tables;
    for (const planner::GatheredRelation& relation : gather.relations)
      tables += (tables.empty() ? "" : ", ") + quote_identifier(relation.temporary);
    auto place = place_at(gather.finisher);
    auto dropping = executor::run_control_query((*place)->lease.get(), "DROP TABLE IF EXISTS " + tables,
                                                &waiter_, Deadline::in(kControlTimeout));
    if (auto dropped = co_await std::move(dropping); !dropped) {
      Error error = std::move(dropped).error();
      if (error.sqlstate == "55006")
        error = {.sqlstate = "42P03", .message = "cursor \"" + gather.cursor + "\" already exists"};
      co_return StatementEnd::refused(error);
    }
  }
  auto finisher = place_at(gather.finisher);
  std::optional<executor::Gathering> gathering;
  executor::GatherRequest request = gather_request(gather, (*finisher)->lease.get(), run);
  executor::GatherResult filled;
  if (one_snapshot) {
    gathering.emplace(std::move(request));
    auto filling = gathering->fill();
    filled = co_await std::move(filling);
  } else {
    auto filling = fill_at_one_moment(&gather, std::move(request), &gathering);
    filled = co_await std::move(filling);
  }
  if (!filled.ok) co_return StatementEnd{.failed = true, .error = std::move(filled.error)};
  planner::FanOut last;
  const ShardId finisher_shard = gather.finisher;
  last.tasks.push_back({gather.finisher, std::move(gather.text)});
  last.writes = gather.writes;
  const std::string cursor = std::move(gather.cursor);
  StatementEnd end;
  if (gather.copy_out) {
    auto copying = run_copy_out({.tasks = std::move(last.tasks)}, run);
    end = co_await std::move(copying);
  } else {
    auto finishing = run_fan_out(std::move(last), run);
    end = co_await std::move(finishing);
  }
  if (!end.failed && !cursor.empty()) {
    cursors_[cursor] = finisher_shard;
  } else if (!end.failed) {
    auto dropping = gathering->drop();
    co_await std::move(dropping);
  }
  co_return end;
}

}  // namespace kintsugi::frontend
