// What ends for the whole session: CLOSE ALL, DISCARD, UNLISTEN and pg_advisory_unlock_all() reach every
// connection that is kept for the client, which may be let go then.
#include "frontend/session.h"
#include "frontend/statement_effects.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;

}  // namespace

// What the other connections of the session are told when the statement has run on one; empty: nothing.
std::string_view Session::ends_for_all(const KnownStatement& known) {
  if (known.tree == nullptr) return {};
  if (known.kind == StatementKind::kCursor) {
    const auto* close = known.tree->get<parser::CloseCursor>();
    return close != nullptr && close->all ? "CLOSE ALL" : "";
  }
  if (known.kind == StatementKind::kSession) {
    const auto* discard = known.tree->get<parser::Discard>();
    if (discard == nullptr) return {};
    switch (discard->kind) {
      case parser::Discard::Kind::kAll: return "DISCARD ALL";
      case parser::Discard::Kind::kPlans: return "DISCARD PLANS";
      case parser::Discard::Kind::kSequences: return "DISCARD SEQUENCES";
      case parser::Discard::Kind::kTemp: return "DISCARD TEMP";
    }
  }
  if (known.kind != StatementKind::kPlanned) return {};
  const auto* notify = known.tree->get<parser::Notify>();
  if (notify != nullptr && notify->kind == parser::Notify::Kind::kUnlisten) return known.tree->text();
  // Not EXPLAIN of it, nor where there may be no row for which it runs.
  const auto* query = known.tree->get<parser::Query>();
  const parser::Select* select = query == nullptr ? nullptr : query->simple();
  const bool unlocks = (known.effects & kUnlocksAll) != 0 && select != nullptr && select->from.empty() &&
                       select->where == nullptr;
  return unlocks ? "SELECT pg_catalog.pg_advisory_unlock_all()" : "";
}

// Whether one connection is not all that it concerns.
bool Session::ends_elsewhere(const KnownStatement& known) const {
  return !away_.empty() && !ends_for_all(known).empty();
}

// It has run on one of the connections. All of them are away.
io::Task<> Session::end_elsewhere(KnownRef known, StatementEnd* end) {
  if (end->failed || end->suspended) co_return;
  const std::string sql(ends_for_all(*known));
  if (sql.empty()) co_return;
  const bool listens = known->tree->get<parser::Notify>() != nullptr;
  const bool discards = sql == "DISCARD ALL";
  if (discards || sql == "CLOSE ALL") cursors_.clear();
  if (discards) {
    statements_.clear();
    unnamed_.valid = false;
  }
  for (Place& place : away_) {
    if (place.lease->broken) continue;  // what was there is gone
    if (listens && txn_.open) {         // that would come back with a ROLLBACK
      auto opening_it = open_at(&place, false);
      if (Status opened = co_await std::move(opening_it); !opened) {
        *end = StatementEnd::refused(opened.error());
        co_return;
      }
    }
    std::string notifications;
    auto running = executor::run_control_query(place.lease.get(), sql, &waiter_, Deadline::in(kControlTimeout),
                                               &notifications);
    auto done = co_await std::move(running);
    to_client_.compose() += notifications;
    if (!done && !place.lease->broken) {
      *end = StatementEnd::refused(done.error());
      co_return;
    }
    if (discards) {
      place.lease->prepared.clear();
      place.lease->unnamed_owner = executor::Backend::kUnknownOwner;
    }
  }
}

// Outside a transaction: what still ties the client to its connections where something may have ended. The one
// that is looked at next tells the session what its settings are.
io::Task<> Session::look_at_ended() {
  if ((look_effects_ & kMayUnpin) == 0) co_return;
  for (Place& place : away_) {
    if (place.shard == look_at_ || place.pins == 0 || place.lease->broken) continue;
    std::string notifications;
    auto asking = executor::run_control_query(
        place.lease.get(), executor::session_state_sql(place.pool->slots()->login()->role, custom_settings_),
        &waiter_, Deadline::in(kControlTimeout), &notifications);
    const auto rows = co_await std::move(asking);
    to_client_.compose() += notifications;
    if (!rows) continue;  // it is kept, and the next occasion is another try
    executor::SessionState state = executor::read_session_state(*rows);
    constexpr unsigned kForGood = executor::kPinOther | executor::kPinMode;
    place.pins = (place.pins & kForGood) | state.pins;
    place.lease->applied = state.settings;
  }
}

}  // namespace kintsugi::frontend
