// Runs a plan on the connections of its shards, as part of an errand.
#include <algorithm>

#include "executor/moved.h"
#include "frontend/made_types.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

bool says_moved(const executor::FanStep& step) {
  if (step.sqlstate != executor::kMovedState || step.error.size() < wire::kHeaderBytes) return false;
  const auto report = wire::read_error(std::string_view(step.error).substr(wire::kHeaderBytes));
  return report && executor::is_moved(report->sqlstate, report->message);
}

// What PostgreSQL calls a definition that no transaction block may have.
std::string what_runs_alone(std::string_view text) {
  parser::Scanner scanner(text);
  const parser::Token first = scanner.next();
  std::string word(first.of(text));
  for (char& c : word) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  if (word == "CREATE" || word == "DROP") return word + " INDEX CONCURRENTLY";
  if (word == "REINDEX") return "REINDEX CONCURRENTLY";
  if (word == "ALTER") return "ALTER TABLE ... DETACH CONCURRENTLY";
  if (word == "ANALYZE" || word == "ANALYSE") return "ANALYZE of all tables over several shards";
  return word;
}

// CREATE TABLE ... SHARD BY, REPLICATED or by kintsugi.shard_new_tables is a change of the map, for those for
// whom ALTER TABLE ... SHARD BY is one. A table that is renamed keeps its place.
std::optional<Error> may_not_place(const planner::Ddl& ddl, std::string_view text, const admin::Actor& who) {
  parser::Scanner scanner(text);
  if (ddl.record.empty() || who.role == admin::Role::kAdmin ||
      !parser::is_keyword(text, scanner.next(), "create"))
    return std::nullopt;
  return Error{
      .sqlstate = std::string(sqlstate::kInsufficientPrivilege),
      .message = "permission denied: CREATE TABLE of a sharded or replicated table needs the role admin",
      .hint = "\"" + who.name + "\" has the role " + std::string(admin::name_of(who.role)) + "."};
}

}  // namespace

// Several shards that may write, outside a transaction, are one of the router's own: all or nothing.
io::Task<StatementEnd> Session::run_plan(Run run) {
  StatementEnd end;
  if (Status spelt = spell_made_types(&run.plan, &run, *worker_.routing().catalog, standard_strings()); !spelt)
    co_return StatementEnd::refused(spelt.error());
  plan_begins();
  std::vector<ShardId> begun;  // before it
  for (const Place& place : away_) {
    if (place.begun) begun.push_back(place.shard);
  }
  const auto* some = std::get_if<planner::FanOut>(&run.plan);
  const auto* load = std::get_if<planner::CopyIn>(&run.plan);
  const bool pours =
      std::holds_alternative<planner::Pour>(run.plan) || std::holds_alternative<planner::ReadFirst>(run.plan);
  const bool spans = std::holds_alternative<planner::Ddl>(run.plan) || pours ||
                     (some != nullptr && some->tasks.size() > 1) ||
                     (load != nullptr && (load->shards.size() > 1 || !load->stage.empty()));
  const bool writes = planner::writes(run.plan);
  const auto* one = std::get_if<planner::Route>(&run.plan);
  const bool on_map = run.on_map;
  // Those who do more than one thing after another are not stopped in their midst.
  run.on_map = on_map && !std::holds_alternative<planner::Ddl>(run.plan) && !pours &&
               !std::holds_alternative<planner::Gather>(run.plan);
  checks_ = on_map && careful() && (one == nullptr || one->shard != 0) &&
            !std::holds_alternative<planner::Ddl>(run.plan);
  const bool own_transaction = !txn_.open && ((spans && writes) || checks_);
  // What only reads is asked with the rows, in one snapshot: then they may be told as they come.
  const bool one_snapshot = own_transaction && checks_ && !writes;
  if (own_transaction) {
    txn_ = {.open = true,
            .implicit = true,
            .begin = one_snapshot ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "BEGIN",
            .queried = true};
  }
  // A definition needs no snapshot, and some may have none.
  if (own_transaction && spans && writes && !std::holds_alternative<planner::Ddl>(run.plan) &&
      worker_.map()->shards().size() > 1) {
    auto taking = take_one_snapshot();
    co_await std::move(taking);
    if (backend_error_) {
      end = StatementEnd::refused(*std::exchange(backend_error_, std::nullopt));
      txn_.failed = true;
      auto ending = end_implicit();
      (void)co_await std::move(ending);
      checks_ = false;
      plan_ends();
      co_return end;
    }
  }
  if (auto* route = std::get_if<planner::Route>(&run.plan)) {
    auto running = run_route(*route, &run);
    end = co_await std::move(running);
  } else if (auto* fan_out = std::get_if<planner::FanOut>(&run.plan)) {
    auto running = run_fan_out(*fan_out, &run);
    end = co_await std::move(running);
  } else if (auto* ddl = std::get_if<planner::Ddl>(&run.plan)) {
    auto running = run_ddl(*ddl, &run);
    end = co_await std::move(running);
  } else if (auto* gather = std::get_if<planner::Gather>(&run.plan)) {
    auto running = run_gather(*gather, &run);
    end = co_await std::move(running);
  } else if (auto* pour = std::get_if<planner::Pour>(&run.plan)) {
    auto running = run_pour(std::move(*pour), &run);
    end = co_await std::move(running);
  } else if (auto* first = std::get_if<planner::ReadFirst>(&run.plan)) {
    auto running = run_read_first(std::move(*first), &run);
    end = co_await std::move(running);
  } else if (auto* copy_in = std::get_if<planner::CopyIn>(&run.plan)) {
    auto running = run_copy_in(*copy_in, &run);
    end = co_await std::move(running);
    end.moved = false;  // the client's data is gone
  } else if (auto* copy_out = std::get_if<planner::CopyOut>(&run.plan)) {
    auto running = run_copy_out(*copy_out, &run);
    end = co_await std::move(running);
  }
  const bool done = !txn_.open && writes;  // and committed
  if (on_map && !end.failed && !one_snapshot && !done && lease_has_run_out()) {
    auto asking = shards_moved_on(writes);
    if (std::optional<Error> why = co_await std::move(asking)) {
      const bool told = end.told;
      end = StatementEnd::refused(*why);
      end.moved = !told && why->sqlstate == executor::kMovedState && load == nullptr;
    }
  }
  checks_ = false;
  if (end.failed) ++measured_.failed;
  if (!end.failed) deadlocked_ = false;  // it was too late for that
  plan_ends();
  if (!own_transaction) {
    if (end.moved) {
      auto taking_back = undo_refused(&run, begun, &end);
      co_await std::move(taking_back);
    }
    co_return end;
  }
  if (end.failed) txn_.failed = true;
  auto ending = end_implicit();
  StatementEnd ended = co_await std::move(ending);
  if (ended.failed && !end.failed) end = std::move(ended);
  end.again = end.failed && deadlocked_ && !end.told && some != nullptr;
  co_return end;
}

// The fence has refused a statement of a transaction. Where all its parts have begun with this very statement,
// it has never been; otherwise the transaction has failed.
io::Task<> Session::undo_refused(const Run* run, std::vector<ShardId> begun, StatementEnd* end) {
  if (!txn_.open || end->unsent) co_return;
  std::vector<ShardId> used;
  if (const auto* route = std::get_if<planner::Route>(&run->plan); route != nullptr && route->shard != 0) {
    used.push_back(route->shard);
  } else if (const auto* fan_out = std::get_if<planner::FanOut>(&run->plan); fan_out != nullptr) {
    for (const planner::ShardTask& task : fan_out->tasks) used.push_back(task.shard);
  } else {
    used = begun;
  }
  end->moved = std::ranges::none_of(used, [&](ShardId shard) { return std::ranges::count(begun, shard) > 0; });
  if (!end->moved) co_return;
  auto taking_back = take_back(
      [begun](const Place& place) { return place.begun && std::ranges::count(begun, place.shard) == 0; });
  co_await std::move(taking_back);
}

io::Task<StatementEnd> Session::end_implicit() {
  StatementEnd ended;
  if (txn_.failed || status_everywhere() == wire::TransactionStatus::kFailed) {
    auto rolling_back = roll_back_everywhere();
    co_await std::move(rolling_back);
  } else {
    auto committing = commit_everywhere();
    ended = co_await std::move(committing);
  }
  co_return ended;
}

io::Task<StatementEnd> Session::run_route(planner::Route route, Run* run) {
  planner::FanOut one;
  one.writes = route.writes;
  ShardId shard = route.shard;
  if (shard == 0) {
    auto joining = join_any();
    auto place = co_await std::move(joining);
    if (!place) co_return StatementEnd::refused(place.error());
    shard = (*place)->shard;
  }
  one.tasks.push_back({shard, std::move(route.text)});
  auto running = run_fan_out(std::move(one), run);
  StatementEnd end = co_await std::move(running);
  co_return end;
}

io::Task<StatementEnd> Session::run_fan_out(planner::FanOut fan_out, Run* run) {
  if (run->pouring != nullptr) {
    auto pouring = pour_rows(std::move(fan_out), run);
    StatementEnd end = co_await std::move(pouring);
    co_return end;
  }
  std::unique_ptr<executor::Fan> fan;
  auto beginning = begin_fan(std::move(fan_out), run, 0, &fan);
  auto step = co_await std::move(beginning);
  if (!step) {
    StatementEnd end = StatementEnd::refused(step.error());
    end.unsent = end.moved = run->on_map && executor::is_moved(step.error().sqlstate, step.error().message);
    co_return end;
  }
  co_return end_of(*step);
}

// All but the branches and their merge.
executor::FanRequest Session::fan_request(Run* run) {
  executor::FanRequest request;
  request.parameter_types = run->types;
  request.bind = run->bind;
  request.describe =
      run->describe ? executor::FanRequest::Describe::kQuery : executor::FanRequest::Describe::kNo;
  request.slow_client_timeout = worker_.shared().config.server.slow_client_timeout;
  request.suspendable = run->suspendable;
  request.client = run->rows_to != nullptr ? run->rows_to : &to_client_;
  request.client_stream = run->rows_to != nullptr ? nullptr : &client_;
  request.most_kept = run->most_kept;
  request.waiter = &waiter_;
  request.still_wanted = [this] { return still_wanted(); };
  request.cancel = [this](executor::Backend& backend) { cancel_at(backend); };
  request.max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  return request;
}

// Connections for all of them, in the order of the shards: sessions that need the same ones do not wait for
// each other in a circle.
io::Task<Result<std::unique_ptr<executor::Fan>>> Session::fan_for(planner::FanOut fan_out, Run* run,
                                                                  int attempt) {
  std::vector<ShardId> shards;
  for (const planner::ShardTask& task : fan_out.tasks) shards.push_back(task.shard);
  std::ranges::sort(shards);
  for (const ShardId shard : shards) {
    auto joining = join(shard);
    auto joined = co_await std::move(joining);
    if (!joined) co_return fail(std::move(joined).error());
    if ((*joined)->lease->broken) co_return fail(lost_part(**joined));
  }
  std::optional<executor::FanLook> looking;
  if (shards.size() > 1 && !fan_out.writes) {
    auto waiting = look(shards, attempt);
    auto looked = co_await std::move(waiting);
    if (!looked) co_return fail(std::move(looked).error());
    looking = std::move(*looked);
  }
  if (run->on_map && (worker_.map()->epoch() != planned_epoch_ || (!checks_ && careful()))) {
    // The connections were long in coming.
    co_return fail(std::string(executor::kMovedState), std::string(executor::kMovedMessage));
  }
  executor::FanRequest request = fan_request(run);
  request.look = std::move(looking);
  for (planner::ShardTask& task : fan_out.tasks) {
    KG_CO_TRY(Place * place, place_at(task.shard));
    request.branches.push_back({.backend = place->lease.get(),
                                .text = task.text.empty() ? run->text : std::move(task.text),
                                .before = opening(*place, fan_out.writes)});
  }
  if (run->effects != 0) {
    look_at_ = shards.front();
    look_effects_ |= run->effects;
  }
  if (fan_out.writes && shards.size() > 1 && !std::holds_alternative<planner::Ddl>(run->plan) &&
      (fan_out.merge.kind == planner::Merge::Kind::kOne || worker_.shared().in_turn())) {
    // The home shard, where SELECT ... FOR UPDATE of a copy locks; or the first.
    const auto first = std::ranges::min_element(
        fan_out.tasks, {},
        [home = home()](const planner::ShardTask& task) { return std::pair(task.shard != home, task.shard); });
    request.lead = static_cast<std::size_t>(first - fan_out.tasks.begin());
  }
  request.merge = std::move(fan_out.merge);
  co_return std::make_unique<executor::Fan>(std::move(request));
}

Error Session::lost_part(const Place& place) {
  txn_.lost = true;
  return {.sqlstate = std::string(sqlstate::kShardUnreachable),
          .message = "the connection to shard " + place.lease->shard + " is lost, and the transaction with it",
          .hint = "Roll back and repeat the transaction."};
}

StatementEnd Session::end_of(executor::FanStep& step) {
  StatementEnd end;
  for (Place& place : away_) {
    // BEGIN itself may have failed.
    if (place.begun && !place.lease->broken && place.lease->status == wire::TransactionStatus::kIdle)
      place.begun = false;
    if (place.begun && place.lease->broken) txn_.lost = true;
  }
  if (step.kind == executor::FanStep::kFailed) {
    end.failed = true;
    end.told = step.told;
    end.moved = !step.told && says_moved(step);
    end.error = std::move(step.error);
    return end;
  }
  end.suspended = step.kind == executor::FanStep::kSuspended;
  end.told = step.told;
  end.cut = step.cut;
  end.tag = std::move(step.tag);
  if (end.tag.empty() && !end.suspended) wire::append_empty(to_client_.compose(), wire::server::kEmptyQuery);
  if (executor::is_ddl(end.tag)) executor::bump_schema_generation();
  return end;
}

// What cannot be undone is at least said.
void Session::note_half_done(const std::string& done, const std::string& failed) {
  wire::append_notice(
      to_client_.compose(),
      {.severity = "WARNING",
       .sqlstate = "01000",
       .message = "the statement has been executed on " + done + " and has failed on " + failed,
       .hint = "Remove the cause and repeat it with IF NOT EXISTS or IF EXISTS. After CREATE INDEX "
               "CONCURRENTLY first DROP INDEX CONCURRENTLY IF EXISTS what it has left: an index that "
               "is not valid counts as one that exists."});
}

// Definitions. Inside the transaction of the caller, so that all shards have it or none; then the map and the
// catalogue learn of it.
io::Task<StatementEnd> Session::run_ddl(planner::Ddl ddl, Run* run) {
  planner::FanOut all;
  all.tasks = std::move(ddl.tasks);
  all.merge.kind = planner::Merge::Kind::kOne;
  all.writes = true;
  StatementEnd end;
  if (auto denied = may_not_place(ddl, run->text, actor())) co_return StatementEnd::refused(*denied);
  if (ddl.in_transaction) {
    auto running = run_fan_out(std::move(all), run);
    end = co_await std::move(running);
  } else {
    if (txn_.open && !txn_.implicit) {
      co_return StatementEnd::refused(
          {.sqlstate = "25001",
           .message = what_runs_alone(run->text) + " cannot run inside a transaction block"});
    }
    txn_ = {};
    std::string done;
    for (planner::ShardTask& task : all.tasks) {
      const shardmap::Shard* shard = worker_.map()->shard(task.shard);
      const std::string name = shard == nullptr ? std::to_string(task.shard) : shard->name;
      planner::FanOut one;
      one.writes = true;
      one.tasks.push_back(std::move(task));
      auto running = run_fan_out(std::move(one), run);
      end = co_await std::move(running);
      if (end.failed) {
        if (!done.empty()) note_half_done(done, name);
        break;
      }
      done += (done.empty() ? "" : ", ") + name;
    }
  }
  if (end.failed) co_return end;
  catalog_is_old_ = true;
  note_definition(ddl, run->text);
  co_return end;
}

}  // namespace kintsugi::frontend
