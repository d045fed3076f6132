#include "splitmerge/fence.h"

#include <algorithm>

#include "base/sql_quote.h"
#include "shardmap/lock_attempt.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::attempt_with_locks;
using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;

constexpr std::string_view kUndefinedTable = "42P01";
constexpr std::string_view kUndefinedObject = "42704";

std::string prefix_of(std::uint64_t job) {
  return "kintsugi_fence_" + std::to_string(job);
}

std::string lock_of(const FenceSpec& fence) {
  std::string names;
  for (const MovedTable& table : *fence.tables) names += (names.empty() ? "" : ", ") + table.name;
  return names.empty() ? "" : "LOCK TABLE " + names + " IN SHARE ROW EXCLUSIVE MODE; ";
}

std::string executes(const char* function, const std::vector<std::string>& arguments) {
  std::string list;
  for (const std::string& each : arguments) list += (list.empty() ? "" : ", ") + quote_literal(each);
  return std::string(" EXECUTE FUNCTION kintsugi.") + function + "(" + list + "); ";
}

// Of each row that is written in the range. `when` goes before the range's own condition.
Result<std::string> row_triggers(const FenceSpec& fence, const MovedTable& table, const std::string& when,
                                 const std::string& refuse) {
  KG_TRY(const std::string fresh, inside_of("NEW", table, *fence.mapping, fence.ranges));
  KG_TRY(const std::string old, inside_of("OLD", table, *fence.mapping, fence.ranges));
  const std::string make = "CREATE OR REPLACE TRIGGER " + prefix_of(fence.job);
  return make + "_in BEFORE INSERT OR UPDATE ON " + table.name + " FOR EACH ROW WHEN (" + when + "(" + fresh +
         "))" + refuse + make + "_out BEFORE UPDATE OR DELETE ON " + table.name + " FOR EACH ROW WHEN (" +
         when + "(" + old + "))" + refuse;
}

// They fire for sessions that replicate, too, of which somebody's subscription or a loader may be one.
Result<std::string> triggers(const FenceSpec& fence, const MovedTable& table) {
  const std::string refuse = executes("refuse_moved", {std::to_string(fence.job)});
  std::string not_ours = "pg_catalog.current_setting('kintsugi.cleaner', true) IS DISTINCT FROM ";
  not_ours.append(quote_literal(std::to_string(fence.job))).append(" AND ");
  KG_TRY(const std::string rows, row_triggers(fence, table, not_ours, refuse));
  std::string text = rows + "CREATE OR REPLACE TRIGGER " + prefix_of(fence.job) + "_all BEFORE TRUNCATE ON " +
                     table.name + " FOR EACH STATEMENT" + refuse + "ALTER TABLE " + table.name;
  for (const char* each : {"_in,", "_out,", "_all; "})
    text += " ENABLE ALWAYS TRIGGER " + prefix_of(fence.job) + each;
  return text;
}

}  // namespace

// A map store that was restored from a backup counts its jobs from there again: what stands
// under our number may be of a job that it knows nothing of any more.
Result<bool> fence_stands(PgSession& source, const FenceSpec& fence, Deadline deadline) {
  KG_TRY(const auto rows,
         source.query(
             "SELECT low, high, map = $2 AND shardlet = $3 FROM kintsugi.fence WHERE job = $1 ORDER BY low",
             {SqlValue::text(std::to_string(fence.job)), SqlValue::text(fence.mapping->name()),
              SqlValue::text(fence.shardlet)},
             deadline));
  std::vector<shardmap::KeyRange> there;
  for (const PgRow& row : rows) {
    if (row.at(2) != "t") return false;
    there.push_back({shardmap::bytes_of_bytea(*row[0]), shardmap::bytes_of_bytea(*row[1])});
  }
  std::vector<shardmap::KeyRange> wanted = fence.ranges;
  std::sort(wanted.begin(), wanted.end(),
            [](const shardmap::KeyRange& a, const shardmap::KeyRange& b) { return a.low < b.low; });
  return !there.empty() && there == wanted;
}

Result<bool> raise_fence(PgSession& source, const FenceSpec& fence, std::chrono::milliseconds lock_timeout,
                         Deadline deadline) {
  KG_TRY(const bool stands, fence_stands(source, fence, deadline));
  if (stands) {
    if (!fence.also.empty()) KG_CHECK(source.run(fence.also, {}, deadline));
    return true;
  }
  std::string script = lock_of(fence) +
                       "DELETE FROM kintsugi.fence WHERE job = " + quote_literal(std::to_string(fence.job)) +
                       "; ";
  for (const MovedTable& table : *fence.tables) {
    KG_TRY(const std::string text, triggers(fence, table));
    script += text;
  }
  for (const shardmap::KeyRange& range : fence.ranges) {
    script += "INSERT INTO kintsugi.fence (map, shardlet, job, low, high) VALUES (" +
              quote_literal(fence.mapping->name()) + ", " + quote_literal(fence.shardlet) + ", " +
              quote_literal(std::to_string(fence.job)) + ", " + quote_literal(shardmap::bytea_text(range.low)) +
              ", " + quote_literal(shardmap::bytea_text(range.high)) +
              ") ON CONFLICT (map, low) DO UPDATE SET shardlet = excluded.shardlet, job = excluded.job, high = "
              "excluded.high, since = excluded.since; ";
  }
  script += fence.also;
  return attempt_with_locks(source, script, lock_timeout, deadline);
}

// Through a statement of its own alone: a foreign key that deletes rows here deletes them where they come from,
// too, and must not fail for it.
Result<bool> raise_guard(PgSession& target, const FenceSpec& guard, std::chrono::milliseconds lock_timeout,
                         Deadline deadline) {
  std::string script = lock_of(guard);
  const std::string refuse =
      executes("refuse_arriving", {std::to_string(guard.job), guard.mapping->name(), guard.shardlet});
  for (const MovedTable& table : *guard.tables) {
    KG_TRY(const std::string text,
           row_triggers(guard, table, "pg_catalog.pg_trigger_depth() = 0 AND ", refuse));
    script += text;
  }
  script += "INSERT INTO kintsugi.arrival (job) VALUES (" + quote_literal(std::to_string(guard.job)) +
            ") ON CONFLICT DO NOTHING; ";
  return attempt_with_locks(target, script, lock_timeout, deadline);
}

Result<std::string> opened_by_others(PgSession& source, std::uint64_t job,
                                     const std::vector<MovedTable>& tables, Deadline deadline) {
  // Of the triggers that partitions have from their table, servers before 15 do not keep the ALWAYS.
  std::string names;
  for (const MovedTable& table : tables) names += (names.empty() ? "" : ", ") + quote_literal(table.name);
  if (names.empty()) return std::string();
  KG_TRY(
      const auto rows,
      source.query(
          "SELECT coalesce(string_agg(name, ', '), '') FROM unnest(ARRAY[" + names +
              "]::text[]) name WHERE (SELECT count(*) FILTER (WHERE tgparentid = 0 AND tgenabled = 'A') <> 3 "
              "OR bool_or(tgenabled NOT IN ('A', 'O')) FROM pg_trigger WHERE tgrelid IN (SELECT "
              "to_regclass(name)::oid UNION SELECT relid FROM pg_partition_tree(to_regclass(name))) AND "
              "tgname IN ($1, $2, $3))",
          {SqlValue::text(prefix_of(job) + "_in"), SqlValue::text(prefix_of(job) + "_out"),
           SqlValue::text(prefix_of(job) + "_all")},
          deadline));
  return *rows.at(0).at(0);
}

Status open_guard(PgSession& target, std::uint64_t job, Deadline deadline) {
  // Writers wait for it, and not for the disk: should it be lost, whoever drops the triggers opens it once
  // more.
  const Status opened =
      target.script("BEGIN; SET LOCAL synchronous_commit = off; DELETE FROM kintsugi.arrival WHERE job = " +
                        quote_literal(std::to_string(job)) + "; COMMIT",
                    deadline);
  if (opened || !target.good()) return opened;
  (void)target.run("ROLLBACK", {}, deadline);
  // A shard that is older than guards has none.
  return opened.error().sqlstate == kUndefinedTable ? Status() : opened;
}

std::string passes_fence(std::uint64_t job) {
  return "SET kintsugi.cleaner = " + quote_literal(std::to_string(job));
}

Status settle_fence(PgSession& source, std::uint64_t job, Deadline deadline) {
  return source.run("DELETE FROM kintsugi.fence WHERE job = $1", {SqlValue::text(std::to_string(job))},
                    deadline);
}

namespace {

// Runs `each` of the fence's triggers (format's arguments: trigger, schema, table), a table at a time.
Result<bool> on_triggers(PgSession& source, std::uint64_t job, const std::string& each,
                         const std::string& which, std::chrono::milliseconds lock_timeout, Deadline deadline) {
  KG_TRY(
      const auto rows,
      source.query("SELECT string_agg(format(" + quote_literal(each) +
                       ", t.tgname, n.nspname, c.relname), '') FROM pg_trigger t JOIN pg_class c ON c.oid = "
                       "t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE t.tgparentid = 0 AND NOT "
                       "t.tgisinternal AND t.tgname IN ($1, $2, $3)" +
                       which + " GROUP BY c.oid",
                   {SqlValue::text(prefix_of(job) + "_in"), SqlValue::text(prefix_of(job) + "_out"),
                    SqlValue::text(prefix_of(job) + "_all")},
                   deadline));
  bool all = true;
  for (const PgRow& row : rows) {
    const Result<bool> done = attempt_with_locks(source, *row[0], lock_timeout, deadline);
    // Renamed since it was looked for: the next attempt finds it under its new name.
    const bool elsewhere =
        !done && (done.error().sqlstate == kUndefinedTable || done.error().sqlstate == kUndefinedObject);
    if (!done && !elsewhere) return done;
    all = all && done && *done;
  }
  return all;
}

}  // namespace

Result<bool> open_fence(PgSession& source, std::uint64_t job, std::chrono::milliseconds lock_timeout,
                        Deadline deadline) {
  // The mark first: whoever raises the fence again must not take what is left for the whole.
  KG_CHECK(settle_fence(source, job, deadline));
  return on_triggers(source, job, "ALTER TABLE %2$I.%3$I DISABLE TRIGGER %1$I; ", " AND t.tgenabled <> 'D'",
                     lock_timeout, deadline);
}

Result<bool> drop_fence(PgSession& source, std::uint64_t job, std::chrono::milliseconds lock_timeout,
                        Deadline deadline) {
  KG_CHECK(settle_fence(source, job, deadline));
  return on_triggers(source, job, "DROP TRIGGER %1$I ON %2$I.%3$I; ", "", lock_timeout, deadline);
}

}  // namespace kintsugi::splitmerge
