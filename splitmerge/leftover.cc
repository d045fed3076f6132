#include "splitmerge/leftover.h"

#include "base/sql_quote.h"
#include "splitmerge/fence.h"
#include "splitmerge/follow.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgSession;
using std::chrono::milliseconds;

constexpr milliseconds kShardDeadline{15000};

Deadline soon() {
  return Deadline::in(kShardDeadline);
}

// Whether a transaction that has one of the tables has been open for `age`; prepared ones have no age.
Result<bool> held_for_long(PgSession& shard, const std::string& tables, milliseconds age) {
  KG_TRY(
      const auto rows,
      shard.query(
          "SELECT EXISTS (SELECT FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.granted "
          "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.relation "
          "IN (" +
              tables +
              ") AND (l.pid IS NULL OR (l.pid <> pg_backend_pid() AND a.xact_start < "
              "clock_timestamp() - interval '" +
              std::to_string(age.count()) + " ms')))",
          {}, soon()));
  return rows.at(0).at(0) == "t";
}

}  // namespace

Result<bool> remove_leftover(const Leftover& leftover, const shardmap::Shard& shard, const std::string& name,
                             JobLease& lease, milliseconds patience) {
  KG_TRY(const auto session, open_session(shard, name, lease, soon()));
  bool done = true;
  if (leftover.triggers) {
    const std::string tables = "SELECT tgrelid FROM pg_trigger WHERE tgname LIKE " +
                               quote_literal("kintsugi#_fence#_" + std::to_string(lease.id()) + "#_%") +
                               " ESCAPE '#'";
    KG_TRY(const bool held, held_for_long(*session, tables, patience));
    if (held) {
      done = false;
    } else {
      KG_TRY(done, drop_fence(*session, lease.id(), patience, soon()));
    }
  }
  for (const PriorIdentity& identity : leftover.identities) {
    const std::string relation =
        identity.number.empty() ? "to_regclass(" + quote_literal(identity.relation) + ")" : identity.number;
    KG_TRY(const bool held, held_for_long(*session, relation, patience));
    if (held) {
      done = false;
      continue;
    }
    KG_TRY(const bool restored, restore_identities(*session, {identity}, patience, soon()));
    done = done && restored;
  }
  return done;
}

}  // namespace kintsugi::splitmerge
