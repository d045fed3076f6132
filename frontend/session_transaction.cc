// The client's transaction when it may span shards: BEGIN reaches a shard when the shard is first needed, and
// the end reaches all of them.
#include <algorithm>

#include "base/sql_quote.h"
#include "executor/control_round.h"
#include "executor/two_phase.h"
#include "frontend/called_settings.h"
#include "frontend/encodings.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;
using parser::Transaction;

constexpr auto kControlTimeout = 30s;

bool begins_with_word(std::string_view text, std::string_view word) {
  parser::Scanner scanner(text);
  const parser::Token token = scanner.next();
  return parser::is_keyword(text, token, word);
}

// BEGIN READ ONLY and the like. A word too many costs a question.
bool says_only(std::string_view text) {
  parser::Scanner scanner(text);
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) return false;
    if (parser::is_keyword(text, token, "only") || parser::is_keyword(text, token, "transaction_read_only") ||
        parser::is_keyword(text, token, "default_transaction_read_only"))
      return true;
  }
}

// SET TRANSACTION with the modes of a BEGIN; empty: it has none.
std::string set_modes(const parser::TransactionModes& modes) {
  std::string list;
  const auto add = [&](std::string_view mode) { list.append(list.empty() ? "" : ", ").append(mode); };
  switch (modes.isolation) {
    case parser::Isolation::kDefault: break;
    case parser::Isolation::kReadUncommitted: add("ISOLATION LEVEL READ UNCOMMITTED"); break;
    case parser::Isolation::kReadCommitted: add("ISOLATION LEVEL READ COMMITTED"); break;
    case parser::Isolation::kRepeatableRead: add("ISOLATION LEVEL REPEATABLE READ"); break;
    case parser::Isolation::kSerializable: add("ISOLATION LEVEL SERIALIZABLE"); break;
  }
  if (modes.read_only) add(*modes.read_only ? "READ ONLY" : "READ WRITE");
  if (modes.deferrable) add(*modes.deferrable ? "DEFERRABLE" : "NOT DEFERRABLE");
  return list.empty() ? list : "SET TRANSACTION " + list;
}

// PostgreSQL forgets the modes of a transaction that has failed, but not those that another has left it.
constexpr std::string_view kChained = "BEGIN /* and chain */ ISOLATION LEVEL ";

// What opens a transaction with the modes that this one has now.
io::Task<Result<std::string>> begin_like(executor::Backend* part, io::Waiter* waiter) {
  auto asking =
      executor::run_control_query(part,
                                  "SELECT '" + std::string(kChained) +
                                      "' || pg_catalog.current_setting('transaction_isolation') || CASE "
                                      "pg_catalog.current_setting('transaction_read_only') WHEN 'on' THEN ', "
                                      "READ ONLY' ELSE ', READ WRITE' END || "
                                      "CASE pg_catalog.current_setting('transaction_deferrable') WHEN 'on' "
                                      "THEN ', DEFERRABLE' ELSE ', NOT DEFERRABLE' "
                                      "END",
                                  waiter, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  co_return rows->at(0).at(0).value_or("BEGIN");
}

wire::ErrorReport warning(std::string_view sqlstate, std::string message) {
  return {.severity = "WARNING", .sqlstate = std::string(sqlstate), .message = std::move(message)};
}

}  // namespace

// Whether tables may be others under their names from then on, or new ones go elsewhere.
bool Session::changes_names(const KnownStatement& known) {
  const auto* set = known.tree->get<parser::Set>();
  const auto* reset = known.tree->get<parser::Reset>();
  if (set != nullptr && set->form >= parser::Set::Form::kTransaction) return false;
  if (set == nullptr && (reset == nullptr || reset->all)) return true;
  const std::string_view name = set != nullptr ? set->name : reset->name;
  return name == "search_path" || name == "role" || name == "session_authorization" ||
         name == "kintsugi.shard_new_tables";
}

// What a failed transaction still listens to.
bool Session::ends_failure(std::string_view text) {
  return std::ranges::any_of(std::initializer_list<std::string_view>{"rollback", "commit", "end", "abort"},
                             [text](std::string_view word) { return begins_with_word(text, word); });
}

std::size_t Session::begun_places() const {
  return static_cast<std::size_t>(
             std::ranges::count_if(away_, [](const Place& place) { return place.begun; })) +
         (lease_ && begun_ ? 1 : 0);
}

// One shard has all of the transaction and hears the client's own words.
bool Session::transaction_passes(const parser::Statement& statement) {
  const Transaction& transaction = *statement.get<Transaction>();
  if (transaction.kind == Transaction::Kind::kCommitPrepared ||
      transaction.kind == Transaction::Kind::kRollbackPrepared) {
    return !txn_.open;
  }
  if (!lease_ || !begun_ || begun_places() != 1 || txn_.failed || !txn_.open) return false;
  if (!portals_.empty()) return false;      // they end with it
  if (!map_changes_.empty()) return false;  // the map learns of them when it ends
  switch (transaction.kind) {
    case Transaction::Kind::kSavepoint:
    case Transaction::Kind::kRelease:
    case Transaction::Kind::kRollbackTo: note_savepoint(transaction, statement.text()); return true;
    case Transaction::Kind::kBegin: return set_modes(transaction.modes).empty();
    case Transaction::Kind::kCommit:
    case Transaction::Kind::kRollback: return !transaction.chain;
    case Transaction::Kind::kPrepare: return here_ == home();  // where COMMIT PREPARED will look for it
    default: return false;
  }
}

void Session::note_savepoint(const Transaction& transaction, std::string_view text) {
  auto& names = txn_.savepoints;
  const std::string_view name = transaction.savepoint.text;
  if (transaction.kind == Transaction::Kind::kSavepoint) {
    names.emplace_back(name);
    txn_.prelude.emplace_back(text);
    txn_.prelude_at.push_back(txn_.prelude.size());
    changes_at_.resize(names.size() - 1);
    changes_at_.push_back(map_changes_.size());
    return;
  }
  names_known_ = false;  // a SET may have been undone
  for (std::size_t i = names.size(); i-- > 0;) {
    if (names[i] != name) continue;
    const bool back = transaction.kind == Transaction::Kind::kRollbackTo;
    if (back && i < changes_at_.size()) forget_changes(changes_at_[i]);
    // What came behind it has never been: some of it may have failed.
    if (back)
      txn_.prelude.resize(txn_.prelude_at[i]);
    else
      txn_.prelude.emplace_back(text);
    names.resize(back ? i + 1 : i);
    txn_.prelude_at.resize(names.size());
    return;
  }
}

// A setting made inside the transaction has to be made on the shards that join later, too.
void Session::note_prelude(const KnownStatement& known, std::string_view text) {
  if (known.tree->get<parser::Show>() != nullptr) return;
  if (changes_names(known)) names_known_ = false;
  if (!txn_.open) return;
  txn_.prelude.emplace_back(text);
  txn_.sets = true;
}

// SELECT set_config(...) runs on all parts that the transaction has.
Result<planner::Plan> Session::where_it_sets(const KnownStatement& known, planner::Plan plan) const {
  const auto* route = std::get_if<planner::Route>(&plan);
  std::vector<ShardId> parts;
  for (const Place& place : away_) {
    if (place.begun) parts.push_back(place.shard);
  }
  if (lease_ && begun_) parts.push_back(here_);
  if (parts.empty() && route != nullptr) return plan;
  if (parts.size() == 1 && route != nullptr && (route->shard == 0 || route->shard == parts.front()))
    return plan;
  if (route == nullptr || (known.effects & kSetsAlike) == 0) return fail(lacks_settings(home()));
  std::ranges::sort(parts);
  planner::FanOut all;
  all.merge.kind = planner::Merge::Kind::kOne;
  for (const ShardId shard : parts) all.tasks.push_back({shard, ""});
  return planner::Plan(std::move(all));
}

// Shards that join later get it, too. What it is given may be known to PostgreSQL only.
void Session::note_called_settings(const KnownStatement& known, std::string_view text) {
  if ((known.effects & kCallsSetConfig) == 0 || !txn_.open) return;
  names_known_ = false;
  txn_.sets = true;
  note_how_texts_are_read();
  const bool misread = !utf8_ && misread_in(*reported_->find("client_encoding"), text).has_value();
  if (auto block = misread ? std::nullopt : settings_as_block(text))
    txn_.prelude.push_back(*std::move(block));
  else
    txn_.sets_here = true;
}

Error Session::lacks_settings(ShardId shard) const {
  const shardmap::Shard* found = worker_.map()->shard(shard);
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "a setting that set_config() has made in a transaction, on shard " +
                     (found == nullptr ? std::string() : found->name) + ", which it did not run on",
          .hint = "Use SET LOCAL, or set_config() with plain strings or parameters of type text."};
}

// The statement itself, on every shard that takes part.
io::Task<Status> Session::run_on_begun(std::string text) {
  std::vector<executor::ControlOrder> orders;
  for (Place& place : away_) {
    if (place.begun) orders.push_back({place.lease.get(), text});
  }
  auto running = executor::run_on_all(std::move(orders), &waiter_, Deadline::in(kControlTimeout));
  for (executor::ControlAnswer& answer : co_await std::move(running)) {
    if (!answer.rows) co_return fail(std::move(answer.rows).error());
  }
  co_return Status{};
}

io::Task<StatementEnd> Session::run_transaction(KnownRef known) {
  const Transaction& transaction = *known->tree->get<Transaction>();
  const std::string text(known->tree->text());
  const bool open = txn_.open && !txn_.implicit;
  const std::string modes = set_modes(transaction.modes);
  const bool failed = status_everywhere() == wire::TransactionStatus::kFailed;
  Place* part = nullptr;  // of the transaction, when it has to be asked or told something
  if (txn_.open && !failed && (!modes.empty() || transaction.chain)) {
    auto joining = join_any();
    auto joined = co_await std::move(joining);
    if (!joined) co_return StatementEnd::refused(joined.error());
    part = *joined;
    auto opening_it = open_at(part, false);
    if (Status opened = co_await std::move(opening_it); !opened)
      co_return StatementEnd::refused(opened.error());
  }
  switch (transaction.kind) {
    case Transaction::Kind::kBegin: {
      const std::string tag = transaction.start ? "START TRANSACTION" : "BEGIN";
      if (open && failed) co_return StatementEnd::refused(aborted());
      if (!txn_.open) {
        txn_ = {.open = true, .begin = text};
        seen_ = {};
        co_return StatementEnd::complete(tag);
      }
      if (open) {
        wire::append_notice(to_client_.compose(),
                            warning("25001", "there is already a transaction in progress"));
      }
      txn_.implicit = false;
      // To the one that is there its modes are set.
      if (!modes.empty()) {
        auto setting = run_on_begun(modes);
        if (Status done = co_await std::move(setting); !done)
          co_return StatementEnd::refused(std::move(done).error());
        txn_.prelude.push_back(modes);
        txn_.sets = true;
        if (!txn_.queried) txn_.isolation = Isolation::kUnknown;
      }
      co_return StatementEnd::complete(tag);
    }
    case Transaction::Kind::kCommit:
    case Transaction::Kind::kRollback: {
      const bool commit = transaction.kind == Transaction::Kind::kCommit;
      if (!open) {  // one of the router's own making ends too
        if (transaction.chain) {
          co_return StatementEnd::refused({.sqlstate = "25P01",
                                           .message = std::string(commit ? "COMMIT" : "ROLLBACK") +
                                                      " AND CHAIN can only be used in transaction blocks"},
                                          "CheckTransactionBlock");
        }
        wire::append_notice(to_client_.compose(), warning("25P01", "there is no transaction in progress"));
        if (!txn_.open || begun_places() == 0) co_return StatementEnd::complete(commit ? "COMMIT" : "ROLLBACK");
      }
      auto dropping = drop_portals();
      co_await std::move(dropping);
      std::string begin = failed && !txn_.begin.starts_with(kChained) ? "BEGIN" : txn_.begin;
      if (part != nullptr) {
        auto asking = begin_like(part->lease.get(), &waiter_);
        auto like = co_await std::move(asking);
        if (!like) co_return StatementEnd::refused(like.error());
        begin = std::move(*like);
      }
      StatementEnd ended;
      if (commit && !failed) {
        auto committing = commit_everywhere();
        ended = co_await std::move(committing);
      } else {
        auto rolling_back = roll_back_everywhere();
        co_await std::move(rolling_back);
      }
      if (ended.failed) co_return ended;
      seen_ = {};
      if (transaction.chain) txn_ = {.open = true, .begin = begin};
      co_return StatementEnd::complete(commit && !failed ? "COMMIT" : "ROLLBACK");
    }
    case Transaction::Kind::kSavepoint:
    case Transaction::Kind::kRelease:
    case Transaction::Kind::kRollbackTo: {
      const bool is_new = transaction.kind == Transaction::Kind::kSavepoint;
      const char* words = is_new                                            ? "SAVEPOINT"
                          : transaction.kind == Transaction::Kind::kRelease ? "RELEASE SAVEPOINT"
                                                                            : "ROLLBACK TO SAVEPOINT";
      if (!open) {
        co_return StatementEnd::refused(
            {.sqlstate = "25P01", .message = std::string(words) + " can only be used in transaction blocks"},
            "CheckTransactionBlock");
      }
      if (txn_.lost || (txn_.failed && transaction.kind != Transaction::Kind::kRollbackTo)) {
        co_return StatementEnd::refused(aborted());
      }
      if (!is_new && !std::ranges::count(txn_.savepoints, transaction.savepoint.text)) {
        co_return StatementEnd::refused(
            {.sqlstate = "3B001",
             .message = "savepoint \"" + std::string(transaction.savepoint.text) + "\" does not exist"});
      }
      auto running = run_on_begun(text);
      Status done = co_await std::move(running);
      if (!done) co_return StatementEnd::refused(std::move(done).error());
      note_savepoint(transaction, text);
      if (transaction.kind == Transaction::Kind::kRollbackTo) txn_.failed = txn_.let_go = false;
      co_return StatementEnd::complete(is_new                                            ? "SAVEPOINT"
                                       : transaction.kind == Transaction::Kind::kRelease ? "RELEASE"
                                                                                         : "ROLLBACK");
    }
    default:
      co_return StatementEnd::refused(
          {.sqlstate = std::string(sqlstate::kNotSupported),
           .message =
               "PREPARE TRANSACTION is not supported for a transaction on other shards than the home shard",
           .hint =
               "The router commits in two phases by itself. An outside transaction manager has to speak to the "
               "shards directly."});
  }
}

Error Session::aborted() {
  return {.sqlstate = "25P02",
          .message = "current transaction is aborted, commands ignored until end of transaction block"};
}

wire::TransactionStatus Session::status_everywhere() const {
  for (const Place& place : away_) {
    if (place.begun &&
        (place.lease->broken || place.lease->status != wire::TransactionStatus::kInTransaction)) {
      return wire::TransactionStatus::kFailed;
    }
  }
  return status();
}

// What a transaction has locked PostgreSQL lets go of when it fails, and does not wait for the client's
// ROLLBACK. So the parts that have not failed themselves go back to where they would be.
bool Session::has_to_let_go() const {
  if (!txn_.open || txn_.implicit || txn_.let_go) return false;
  const bool failed = txn_.failed || (lease_ && lease_->status == wire::TransactionStatus::kFailed);
  return failed && std::ranges::any_of(away_, [](const Place& place) {
           return place.begun && place.lease->status == wire::TransactionStatus::kInTransaction;
         });
}

io::Task<> Session::let_go() {
  txn_.let_go = true;
  const bool whole = txn_.savepoints.empty();
  std::vector<executor::ControlOrder> orders;
  for (Place& place : away_) {
    if (!place.begun || place.lease->broken || place.lease->status != wire::TransactionStatus::kInTransaction)
      continue;
    orders.push_back(
        {place.lease.get(),
         whole ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT " + quote_identifier(txn_.savepoints.back())});
    if (whole) place.begun = place.wrote = false;
  }
  auto running = executor::run_on_all(std::move(orders), &waiter_, Deadline::in(kControlTimeout));
  (void)co_await std::move(running);
}

// Nothing is in use: all parts of the transaction are away.
io::Task<> Session::roll_back_everywhere() {
  std::vector<executor::Backend*> backends;
  for (Place& place : away_) {
    if (place.begun && !place.lease->broken) backends.push_back(place.lease.get());
  }
  if (!backends.empty()) {
    auto rolling_back =
        executor::roll_back_on_all(std::move(backends), &waiter_, Deadline::in(kControlTimeout));
    co_await std::move(rolling_back);
  }
  forget_changes();
  release_places();
}

// A transaction that may be READ ONLY cannot have its decision written down. What a shard refused, or only
// might have written, is no reason for two phases: the shard says whether it has written.
io::Task<> Session::forget_refused_writes() {
  const bool may_be = says_only(txn_.begin) || std::ranges::any_of(txn_.prelude, says_only) ||
                      settings_->find("default_transaction_read_only") != nullptr;
  if (!may_be ||
      std::ranges::count_if(away_, [](const Place& place) { return place.begun && place.wrote; }) < 2)
    co_return;
  for (Place& place : away_) {
    if (!place.begun || !place.wrote || place.lease->broken) continue;
    auto asking =
        executor::run_control_query(place.lease.get(),
                                    "SELECT pg_catalog.current_setting('transaction_read_only') = 'on' AND "
                                    "pg_catalog.pg_current_xact_id_if_assigned() IS NULL",
                                    &waiter_, Deadline::in(kControlTimeout));
    const auto rows = co_await std::move(asking);
    if (rows && rows->size() == 1 && rows->front().front().value_or("f") == "t") place.wrote = false;
  }
}

// One writer commits as itself; several commit in two phases. Then what its definitions mean for the map.
io::Task<StatementEnd> Session::commit_everywhere() {
  auto forgetting = forget_refused_writes();
  co_await std::move(forgetting);
  std::vector<executor::TransactionBranch> branches;
  bool lost = txn_.lost;
  for (Place& place : away_) {
    if (!place.begun) continue;
    lost |= place.lease->broken;
    branches.push_back({.backend = place.lease.get(),
                        .shard = place.shard,
                        .wrote = place.wrote,
                        .must_decide = (place.pins & executor::kPinTemporary) != 0});
  }
  StatementEnd end;
  std::vector<ShardId> left;
  if (lost) {
    auto rolling_back = roll_back_everywhere();
    co_await std::move(rolling_back);
    co_return StatementEnd::refused(
        {.sqlstate = std::string(sqlstate::kShardUnreachable),
         .message = "the connection to a shard was lost, and the transaction with it",
         .hint = "Nothing of it is committed. Repeat the transaction."});
  }
  if (!branches.empty()) {
    auto entering = enter_commit();
    auto pass = co_await std::move(entering);
    if (!pass) {
      auto rolling_back = roll_back_everywhere();
      co_await std::move(rolling_back);
      co_return StatementEnd::refused(pass.error());
    }
    auto committing =
        executor::commit_on_all(std::move(branches), worker_.map()->store_id(),
                                worker_.shared().several_routers, &waiter_, Deadline::in(kControlTimeout));
    executor::CommitOutcome outcome = co_await std::move(committing);
    to_client_.compose() += outcome.asides;
    end.failed = outcome.kind != executor::CommitOutcome::kCommitted;
    end.error = std::move(outcome.error);
    if (!outcome.unsettled.empty()) left = note_unsettled(outcome.unsettled);
  }
  release_places();
  if (end.failed) {
    forget_changes();
    co_return end;
  }
  if (!left.empty()) {
    auto waiting = wait_until_seen(std::move(left));
    co_await std::move(waiting);
  }
  auto settling = settle_definitions();
  if (Status settled = co_await std::move(settling); !settled) co_return StatementEnd::refused(settled.error());
  co_return end;
}

}  // namespace kintsugi::frontend
