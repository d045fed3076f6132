#include "splitmerge/fence.h"

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;

constexpr std::string_view kLockNotAvailable = "55P03";
constexpr std::string_view kDeadlock = "40P01";

std::string prefix_of(std::uint64_t job) {
  return "kintsugi_fence_" + std::to_string(job);
}

std::string begin(std::chrono::milliseconds lock_timeout) {
  return "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = " +
         std::to_string(lock_timeout.count()) + "; ";
}

// Sent as one text: no round trip while writers wait.
Result<bool> attempt(PgSession& source, const std::string& script, Deadline deadline) {
  const Status done = source.script(script, deadline);
  if (done) return true;
  if (source.good()) (void)source.run("ROLLBACK", {}, deadline);
  if (done.error().sqlstate == kLockNotAvailable || done.error().sqlstate == kDeadlock) return false;
  return fail(done.error());
}

Result<std::string> triggers(const FenceSpec& fence, const MovedTable& table) {
  KG_TRY(const std::string fresh, inside_of("NEW", table, *fence.mapping, fence.ranges));
  KG_TRY(const std::string old, inside_of("OLD", table, *fence.mapping, fence.ranges));
  const std::string prefix = prefix_of(fence.job);
  const std::string refuse =
      " EXECUTE FUNCTION kintsugi.refuse_moved(" + quote_literal(std::to_string(fence.job)) + "); ";
  return "CREATE OR REPLACE TRIGGER " + prefix + "_in BEFORE INSERT OR UPDATE ON " + table.name +
         " FOR EACH ROW WHEN (" + fresh + ")" + refuse + "CREATE OR REPLACE TRIGGER " + prefix +
         "_out BEFORE UPDATE OR DELETE ON " + table.name + " FOR EACH ROW WHEN (" + old + ")" + refuse +
         "CREATE OR REPLACE TRIGGER " + prefix + "_all BEFORE TRUNCATE ON " + table.name +
         " FOR EACH STATEMENT" + refuse;
}

}  // namespace

Result<bool> raise_fence(PgSession& source, const FenceSpec& fence, std::chrono::milliseconds lock_timeout,
                         Deadline deadline) {
  KG_TRY(const auto there, source.query("SELECT EXISTS (SELECT FROM kintsugi.fence WHERE job = $1)",
                                        {SqlValue::text(std::to_string(fence.job))}, deadline));
  if (there[0][0] == "t") {
    if (!fence.also.empty()) KG_CHECK(source.run(fence.also, {}, deadline));
    return true;
  }
  std::string script = begin(lock_timeout);
  std::string names;
  for (const MovedTable& table : *fence.tables) names += (names.empty() ? "" : ", ") + table.name;
  if (!names.empty()) script += "LOCK TABLE " + names + " IN SHARE ROW EXCLUSIVE MODE; ";
  for (const MovedTable& table : *fence.tables) {
    KG_TRY(const std::string text, triggers(fence, table));
    script += text;
  }
  for (const shardmap::KeyRange& range : fence.ranges) {
    script += "INSERT INTO kintsugi.fence (map, shardlet, job, low, high) VALUES (" +
              quote_literal(fence.mapping->name()) + ", " + quote_literal(fence.shardlet) + ", " +
              quote_literal(std::to_string(fence.job)) + ", " + quote_literal(shardmap::bytea_text(range.low)) +
              ", " + quote_literal(shardmap::bytea_text(range.high)) + "); ";
  }
  if (!fence.also.empty()) script += fence.also + "; ";
  return attempt(source, script + "COMMIT", deadline);
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
    KG_TRY(const bool done, attempt(source, begin(lock_timeout) + *row[0] + "COMMIT", deadline));
    all = all && done;
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
  return on_triggers(source, job, "DROP TRIGGER IF EXISTS %1$I ON %2$I.%3$I; ", "", lock_timeout, deadline);
}

}  // namespace kintsugi::splitmerge
