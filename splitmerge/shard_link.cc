#include "splitmerge/shard_link.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;
using std::chrono::milliseconds;

constexpr milliseconds kLook{20};

// The same text for the same value on every server, and nothing of the application's own between us and the
// rows. PgSession has some of these; raw links have not. What we write goes to the disk bit by bit: a heap of
// it that the kernel writes at once makes everybody's commits wait.
std::string settings(const std::string& name) {
  return "SET application_name = " + quote_literal(name) +
         "; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET quote_all_identifiers = "
         "off; "
         "SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off; "
         "SET default_transaction_deferrable = off; SET idle_session_timeout = 0; SET xmloption = 'content'; "
         "SET lc_monetary = 'C'; SET client_min_messages = warning; SET search_path = pg_catalog; SET "
         "datestyle = 'ISO, YMD'; "
         "SET intervalstyle = 'postgres'; SET timezone = 'UTC'; SET bytea_output = 'hex'; "
         "SET extra_float_digits = 1; SET row_security = on; SET statement_timeout = 0; SET lock_timeout = 0; "
         "SET idle_in_transaction_session_timeout = 0; SET synchronous_commit = on; SET "
         "session_replication_role = replica; SET backend_flush_after = '512kB'";
}

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, Clear>;

std::vector<PgRow> rows_of(const PGresult* result) {
  std::vector<PgRow> rows;
  for (int r = 0; r < PQntuples(result); ++r) {
    PgRow& row = rows.emplace_back();
    for (int c = 0; c < PQnfields(result); ++c) {
      if (PQgetisnull(result, r, c) != 0) {
        row.emplace_back();
      } else {
        row.emplace_back(
            std::string(PQgetvalue(result, r, c), static_cast<std::size_t>(PQgetlength(result, r, c))));
      }
    }
  }
  return rows;
}

}  // namespace

std::string job_name(const std::string& store_id, std::uint64_t id) {
  std::string store;
  for (const char c : store_id) {
    if (store.size() < 8 && ((c >= 'a' && c <= 'f') || (c >= '0' && c <= '9'))) store += c;
  }
  return "kintsugi_" + store + "_" + std::to_string(id);
}

Error of_shard(const shardmap::Shard& shard, Error error) {
  if (error.sqlstate != sqlstate::kConnectionFailure) return error;
  return {std::string(sqlstate::kShardUnreachable), "shard \"" + shard.name + "\" cannot be reached",
          error.message, "", 0};
}

Result<std::unique_ptr<PgSession>> open_session(const shardmap::Shard& shard, const std::string& name,
                                                JobLease& lease, Deadline deadline) {
  auto connected = PgSession::connect(shard.dsn, true, deadline);
  if (!connected) return fail(of_shard(shard, connected.error()));
  auto session = *std::move(connected);
  session->call_it("shard \"" + shard.name + "\"");
  KG_CHECK(session->script(settings(name), deadline));
  KG_CHECK(lease.renew());
  return session;
}

Status end_predecessors(PgSession& session, const std::string& name, Deadline deadline) {
  return session.run(
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = $1 AND datname = "
      "current_database() AND pid <> "
      "pg_backend_pid() AND backend_type IN ('client backend', 'walsender') AND NOT EXISTS (SELECT FROM "
      "pg_replication_slots s WHERE s.active_pid = pid AND s.slot_name = $1)",
      {SqlValue::text(name)}, deadline);
}

Result<RawLink> RawLink::open(const shardmap::Shard& shard, const std::string& name, bool replication,
                              JobLease& lease, Deadline deadline) {
  // The string may be a URI or key words; given as the database's name, libpq expands it.
  const std::string timeout = "10";
  const char* keywords[] = {"dbname", "fallback_application_name", "connect_timeout", "replication", nullptr};
  const char* values[] = {shard.dsn.c_str(), name.c_str(), timeout.c_str(), replication ? "database" : nullptr,
                          nullptr};
  RawLink link(PQconnectdbParams(keywords, values, 1));
  if (link.connection_ == nullptr || PQstatus(link.connection_) != CONNECTION_OK)
    return fail(of_shard(shard, {std::string(sqlstate::kConnectionFailure),
                                 "cannot connect: " + link.error(nullptr).message, "", "", 0}));
  const RawLink::GoOn always = [] { return Status(); };
  KG_CHECK(link.run(settings(name), deadline, always));
  KG_CHECK(lease.renew());
  return link;
}

RawLink::~RawLink() {
  PQfinish(connection_);
}
RawLink::RawLink(RawLink&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
RawLink& RawLink::operator=(RawLink&& other) noexcept {
  std::swap(connection_, other.connection_);
  return *this;
}

Error RawLink::error(const PGresult* result) const {
  const char* state = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const char* detail = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
  const char* hint = result == nullptr ? nullptr : PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
  if (state != nullptr && primary != nullptr)
    return {state, primary, detail == nullptr ? "" : detail, hint == nullptr ? "" : hint, 0};
  std::string text = connection_ == nullptr ? "out of memory" : PQerrorMessage(connection_);
  text = text.substr(0, text.find('\n'));
  return {std::string(sqlstate::kConnectionFailure), "the connection was lost: " + text, "", "", 0};
}

Result<std::vector<PgRow>> RawLink::run(const std::string& sql, Deadline deadline, const GoOn& go_on) {
  if (PQsendQuery(connection_, sql.c_str()) == 0) return fail(error(nullptr));
  std::vector<PgRow> rows;
  std::optional<Error> problem;
  for (;;) {
    while (PQisBusy(connection_) != 0) {
      pollfd fd{PQsocket(connection_), POLLIN, 0};
      (void)poll(&fd, 1, static_cast<int>(kLook.count()));
      if (PQconsumeInput(connection_) == 0) return fail(error(nullptr));
      Status may = go_on();
      if (may && deadline.passed()) may = fail(sqlstate::kQueryCanceled, "a command on a shard took too long");
      if (!may) return fail(may.error());  // the connection is of no use any more; its owner closes it
    }
    const ResultPtr result(PQgetResult(connection_));
    if (!result) break;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_TUPLES_OK) {
      rows = rows_of(result.get());
    } else if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) {
      return rows;
    } else if (status != PGRES_COMMAND_OK && !problem) {
      problem = error(result.get());
    }
  }
  if (problem) return fail(*problem);
  return rows;
}

}  // namespace kintsugi::splitmerge
