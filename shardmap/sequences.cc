#include "shardmap/sequences.h"

#include <algorithm>

#include "base/sql_quote.h"

namespace kintsugi::shardmap {
namespace {

// The sequences that belong to a table's columns, serial or identity.
std::string sequences_of(const std::string& table, const std::string& columns) {
  return "SELECT " + columns +
         " FROM pg_depend d JOIN pg_sequence q ON q.seqrelid = d.objid JOIN pg_class s ON s.oid = d.objid JOIN "
         "pg_namespace n ON n.oid = s.relnamespace WHERE d.classid = 'pg_class'::regclass AND d.refclassid = "
         "'pg_class'::regclass AND d.deptype IN ('a', 'i') AND d.refobjid = " +
         quote_literal(table) + "::regclass ORDER BY 1";
}

}  // namespace

std::uint32_t sequence_step(bool bigint) {
  return bigint ? 4096 : 128;
}
std::uint32_t sequence_start(ShardId shard, std::uint32_t step) {
  return shard % step == 0 ? step : static_cast<std::uint32_t>(shard % step);
}

Result<std::int64_t> last_of_sequences(PgSession& shard, const std::string& table, Deadline deadline) {
  KG_TRY(const auto rows,
         shard.query(sequences_of(table, "coalesce(pg_sequence_last_value(d.objid), 0)"), {}, deadline));
  std::int64_t last = 0;
  for (const PgRow& row : rows) last = std::max<std::int64_t>(last, std::stoll(row[0].value_or("0")));
  return last;
}

Status count_apart(PgSession& session, ShardId shard, const std::string& table, std::int64_t above,
                   Deadline deadline) {
  KG_TRY(const auto sequences,
         session.query(sequences_of(table,
                                    "format('%I.%I', n.nspname, s.relname), q.seqtypid = 'bigint'::regtype, "
                                    "q.seqincrement, q.seqstart"),
                       {}, deadline));
  for (const PgRow& row : sequences) {
    const std::string& name = *row[0];
    const std::uint32_t step = sequence_step(*row[1] == "t");
    const std::uint32_t start = sequence_start(shard, step);
    const std::int64_t increment = std::stoll(*row[2]);
    if (increment != 1 && increment != step) continue;
    if (increment == step && std::stoll(*row[3]) % step == start % step) continue;
    // Nobody takes a value between the look at it and the new one: ALTER SEQUENCE holds its lock until the end.
    const auto change = [&]() -> Status {
      KG_CHECK(session.run("ALTER SEQUENCE " + name + " INCREMENT BY " + std::to_string(step) + " START WITH " +
                               std::to_string(start),
                           {}, deadline));
      KG_TRY(const auto given,
             session.query("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM " + name, {}, deadline));
      const std::int64_t last = std::max<std::int64_t>(above, std::stoll(*given.at(0).at(0)));
      const std::int64_t next = last < start ? start : start + ((last - start) / step + 1) * step;
      return session.run("ALTER SEQUENCE " + name + " RESTART WITH " + std::to_string(next), {}, deadline);
    };
    Status changed = session.transaction(change, deadline);
    if (!changed) return changed;
  }
  return {};
}

}  // namespace kintsugi::shardmap
