#include "splitmerge/follow.h"

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;

// What it is called now; empty: it is gone.
Result<std::string> name_of(PgSession& source, const PriorIdentity& identity, Deadline deadline) {
  if (identity.number.empty()) return identity.relation;
  KG_TRY(const auto rows, source.query("SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN "
                                       "pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::text::oid",
                                       {SqlValue::text(identity.number)}, deadline));
  return rows.empty() ? std::string() : *rows[0][0];
}

Result<bool> alter_identity(PgSession& source, const PriorIdentity& identity, const std::string& clause,
                            std::chrono::milliseconds lock_timeout, Deadline deadline) {
  KG_TRY(const std::string relation, name_of(source, identity, deadline));
  if (relation.empty()) return true;
  const Status done =
      source.script("BEGIN; SET LOCAL lock_timeout = " + std::to_string(lock_timeout.count()) +
                        "; ALTER TABLE " + relation + " REPLICA IDENTITY " + clause + "; COMMIT",
                    deadline);
  if (done) return true;
  if (source.good()) (void)source.run("ROLLBACK", {}, deadline);
  if (done.error().sqlstate == "55P03") return false;
  if (done.error().sqlstate == "42P01") return true;  // the table is gone, and with it the question
  return fail(done.error());
}

}  // namespace

std::vector<PriorIdentity> identities_to_change(const std::vector<MovedTable>& tables) {
  std::vector<PriorIdentity> identities;
  for (const MovedTable& table : tables) {
    for (const auto* relations : {&table.leaves, &table.parents}) {
      for (const Leaf& relation : *relations) {
        if (!relation.identified)
          identities.push_back({relation.name, relation.identity_clause, relation.number});
      }
    }
  }
  return identities;
}

Result<bool> set_identities_full(PgSession& source, const std::vector<PriorIdentity>& identities,
                                 std::chrono::milliseconds lock_timeout, Deadline deadline) {
  bool all = true;
  for (const PriorIdentity& each : identities) {
    KG_TRY(const bool done, alter_identity(source, each, "FULL", lock_timeout, deadline));
    all = all && done;
  }
  return all;
}

Result<bool> restore_identities(PgSession& source, const std::vector<PriorIdentity>& identities,
                                std::chrono::milliseconds lock_timeout, Deadline deadline) {
  bool all = true;
  for (const PriorIdentity& each : identities) {
    KG_TRY(const bool done, alter_identity(source, each, each.clause, lock_timeout, deadline));
    all = all && done;
  }
  return all;
}

Status make_publication(PgSession& source, const std::string& name, std::uint64_t job,
                        const std::vector<MovedTable>& tables, Deadline deadline) {
  KG_CHECK(drop_publication(source, name, deadline));
  std::string list = " FOR TABLE kintsugi.marker WHERE (job = " + quote_literal(std::to_string(job)) + ")";
  for (const MovedTable& table : tables) list += ", " + table.name + " WHERE (" + table.inside + ")";
  return source.run("CREATE PUBLICATION " + quote_identifier(name) + list +
                        " WITH (publish = 'insert, update, delete', publish_via_partition_root = true)",
                    {}, deadline);
}

Status drop_publication(PgSession& source, const std::string& name, Deadline deadline) {
  return source.run("DROP PUBLICATION IF EXISTS " + quote_identifier(name), {}, deadline);
}

Result<SlotSnapshot> make_slot(const shardmap::Shard& source, const std::string& name, JobLease& lease,
                               const RawLink::GoOn& go_on, Deadline deadline) {
  KG_TRY(RawLink link, RawLink::open(source, name, true, lease, deadline));
  KG_TRY(const auto rows,
         link.run("CREATE_REPLICATION_SLOT " + quote_identifier(name) + " LOGICAL pgoutput (SNAPSHOT 'export')",
                  deadline, go_on));
  return SlotSnapshot{std::move(link), rows.at(0).at(2).value_or("")};
}

std::string check_slot_of(const std::string& name) {
  return name + "_rows";
}

Status copy_slot(PgSession& source, const std::string& name, const std::string& copy, Deadline deadline) {
  return source.run("SELECT pg_copy_logical_replication_slot($1, $2)",
                    {SqlValue::text(name), SqlValue::text(copy)}, deadline);
}

Status end_reader(PgSession& source, const std::string& slot, Deadline deadline) {
  return source.run(
      "SELECT pg_terminate_backend(active_pid, 10000) FROM pg_replication_slots WHERE slot_name = $1 "
      "AND active_pid IS NOT NULL",
      {SqlValue::text(slot)}, deadline);
}

Status drop_slot(PgSession& source, const std::string& name, Deadline deadline) {
  KG_CHECK(end_reader(source, name, deadline));
  return source.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1",
                    {SqlValue::text(name)}, deadline);
}

Status make_subscription(PgSession& target, const std::string& name, const std::string& source_dsn,
                         Deadline deadline) {
  KG_CHECK(drop_subscription(target, name, deadline));
  return target.run("CREATE SUBSCRIPTION " + quote_identifier(name) + " CONNECTION " +
                        quote_literal(source_dsn) + " PUBLICATION " + quote_identifier(name) +
                        " WITH (copy_data = false, create_slot = false, slot_name = " + quote_literal(name) +
                        ", synchronous_commit = off)",
                    {}, deadline);
}

Status drop_subscription(PgSession& target, const std::string& name, Deadline deadline) {
  KG_TRY(const auto there,
         target.query("SELECT FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid WHERE "
                      "s.subname = $1 AND d.datname = current_database()",
                      {SqlValue::text(name)}, deadline));
  if (there.empty()) return {};
  const std::string alter = "ALTER SUBSCRIPTION " + quote_identifier(name);
  KG_CHECK(target.run(alter + " DISABLE", {}, deadline));
  KG_CHECK(target.run(alter + " SET (slot_name = NONE)", {}, deadline));
  return target.run("DROP SUBSCRIPTION IF EXISTS " + quote_identifier(name), {}, deadline);
}

Result<std::string> lost_of(PgSession& source, PgSession& target, const Following& following,
                            Deadline deadline) {
  const std::string of_source = "of shard \"" + following.source + "\"";
  for (const std::string& slot : {following.name, check_slot_of(following.name)}) {
    KG_TRY(const auto rows, source.query("SELECT wal_status, current_setting('max_slot_wal_keep_size') FROM "
                                         "pg_replication_slots WHERE slot_name = $1",
                                         {SqlValue::text(slot)}, deadline));
    if (rows.empty()) return "replication slot " + slot + " " + of_source + " is gone";
    if (rows[0][0] == "lost") {
      return "the log that replication slot " + slot + " " + of_source +
             " needs is gone (max_slot_wal_keep_size is " + rows[0][1].value_or("?") + ")";
    }
  }
  KG_TRY(const auto publication, source.query("SELECT FROM pg_publication WHERE pubname = $1",
                                              {SqlValue::text(following.name)}, deadline));
  if (publication.empty()) return "publication " + following.name + " " + of_source + " is gone";
  KG_TRY(const auto subscription,
         target.query("SELECT s.subenabled, s.subconninfo FROM pg_subscription s JOIN pg_database d ON d.oid = "
                      "s.subdbid WHERE s.subname = $1 AND d.datname = current_database()",
                      {SqlValue::text(following.name)}, deadline));
  const std::string of_target = "subscription " + following.name + " of shard \"" + following.target + "\"";
  if (subscription.empty()) return of_target + " is gone";
  if (subscription[0][0] != "t") return of_target + " is disabled";
  if (subscription[0][1] != following.source_dsn)
    return "shard \"" + following.source + "\" has another address than when it was followed";
  return std::string();
}

std::string mark_statement(std::uint64_t job, const std::string& mark) {
  return "INSERT INTO kintsugi.marker (job, mark) VALUES (" + quote_literal(std::to_string(job)) + ", " +
         quote_literal(mark) + ")";
}

Result<bool> has_arrived(PgSession& target, std::uint64_t job, const std::string& mark, Deadline deadline) {
  KG_TRY(const auto rows,
         target.query("SELECT FROM kintsugi.marker WHERE job = " + quote_literal(std::to_string(job)) +
                          " AND mark = " + quote_literal(mark),
                      {}, deadline));
  return !rows.empty();
}

Status drop_marks(PgSession& shard, std::uint64_t job, Deadline deadline) {
  return shard.run("DELETE FROM kintsugi.marker WHERE job = " + quote_literal(std::to_string(job)), {},
                   deadline);
}

Status flush(PgSession& target, Deadline deadline) {
  return target.script(
      "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'kintsugi', ''); "
      "COMMIT",
      deadline);
}

Result<std::vector<SequenceValue>> sequences_of(PgSession& source, const std::vector<MovedTable>& tables,
                                                Deadline deadline) {
  std::string question;
  for (const MovedTable& table : tables) {
    for (const std::string& sequence : table.sequences) {
      question += (question.empty() ? "" : " UNION ALL ") + ("SELECT " + quote_literal(sequence)) +
                  ", last_value FROM " + sequence + " WHERE is_called";
    }
  }
  std::vector<SequenceValue> values;
  if (question.empty()) return values;
  KG_TRY(const auto rows, source.query(question, {}, deadline));
  for (const PgRow& row : rows) values.push_back({*row.at(0), *row.at(1)});
  return values;
}

Status carry_sequences(PgSession& target, const std::vector<SequenceValue>& values, Deadline deadline) {
  std::string script;
  for (const auto& [sequence, last] : values) {
    // Where it counts apart from other shards it goes on doing so: to the next value of its own.
    script += "SELECT setval(q.seqrelid, CASE WHEN abs(q.seqincrement) = 1 THEN " + last + " ELSE " + last +
              " + mod(mod(q.seqstart - " + last +
              ", q.seqincrement) + q.seqincrement, q.seqincrement) END) FROM " + sequence +
              " s JOIN pg_sequence q ON q.seqrelid = " + quote_literal(sequence) +
              "::regclass WHERE NOT s.is_called OR CASE WHEN q.seqincrement > 0 THEN s.last_value < " + last +
              " ELSE s.last_value > " + last + " END; ";
  }
  return script.empty() ? Status() : target.script(script, deadline);
}

}  // namespace kintsugi::splitmerge
