#include "executor/gather.h"

#include <charconv>

#include "base/invariant.h"
#include "base/sql_quote.h"
#include "executor/abandon.h"
#include "executor/branch.h"
#include "executor/control_round.h"
#include "executor/copy_format.h"
#include "executor/exact_text.h"
#include "executor/fan.h"
#include "executor/row_merge.h"

namespace kintsugi::executor {
namespace {

using planner::GatheredRelation;

constexpr std::size_t kFinisherBudget = 128 * 1024;  // bytes for it that the socket has not taken
constexpr std::uint64_t kManyRows = 5'000;           // worth an ANALYZE
// So many values go into the text of a statement; among more rows than that it is not worth looking for them.
constexpr std::uint64_t kMostKeys = 30'000, kManyForKeys = 200'000;
constexpr std::size_t kMostKeyBytes = 1 << 20;

// Of "INSERT 0 17".
std::uint64_t rows_in(std::string_view tag) {
  std::uint64_t rows = 0;
  const std::size_t blank = tag.rfind(' ');
  if (blank != std::string_view::npos) std::from_chars(tag.data() + blank + 1, tag.data() + tag.size(), rows);
  return rows;
}

// The type of a column whose binary form is the same everywhere; nothing for others.
std::optional<std::uint32_t> portable_column(const GatheredRelation& relation, std::size_t column) {
  if (!relation.types.empty()) return portable_type(relation.types[column]);
  if (column < relation.oids.size() &&
      (array_of_portable(relation.oids[column]) != 0 || needs_exact_text(relation.oids[column])))
    return relation.oids[column];
  return std::nullopt;
}

bool is_portable(const GatheredRelation& relation) {
  for (std::size_t i = 0; i < relation.columns.size(); ++i) {
    if (!portable_column(relation, i)) return false;
  }
  return true;
}

std::string columns_of(const GatheredRelation& relation) {
  std::string list;
  for (const std::string& column : relation.columns)
    list += (list.empty() ? "" : ", ") + quote_identifier(column);
  return list;
}

std::string table_of(const GatheredRelation& relation) {
  return "pg_temp." + quote_identifier(relation.temporary);
}

// One relation's rows on their way from its sources to the finisher.
class Stream {
 public:
  Stream(const GatherRequest& request, const GatherRequest::Relation& what, GatherResult* result)
      : request_(request), what_(what), result_(result), binary_(is_portable(what.relation)) {}

  // The sources begin: what they give waits in the sockets.
  void start();
  // After start(), the finisher's COPY having been sent. True: all of it has gone to the finisher, and CopyDone
  // after it. False: the sources are given up, the error is in the result unless it is the finisher's own, and
  // CopyFail is sent.
  io::Task<bool> run();
  io::Task<void> give_up();  // instead of run()
  [[nodiscard]] bool has_sources() const;
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

 private:
  bool describe();
  bool move_rows();
  bool note_failures();
  void fail_with(const Error& error);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] Outbox& out() const { return request_.finisher->out; }

  const GatherRequest& request_;
  const GatherRequest::Relation& what_;
  GatherResult* result_;
  bool binary_;
  std::vector<std::uint32_t> exact_;  // of text: the columns' types where those have an exact text, else 0
  Branches branches_;
  std::vector<bool> described_;
  bool failed_ = false;
  std::uint64_t rows_ = 0;
};

bool Stream::has_sources() const {
  for (const Backend* source : what_.sources) {
    if (source != request_.finisher) return true;
  }
  return false;
}

void Stream::fail_with(const Error& error) {
  if (std::exchange(failed_, true) || !result_->error.empty()) return;
  result_->sqlstate = error.sqlstate;
  wire::append_error(result_->error, "ERROR", error);
}

std::string bind_tail_of(const GatherRequest& request, std::vector<std::int16_t> formats) {
  wire::BindValues bind;
  bind.values = request.parameters;
  bind.result_formats = std::move(formats);
  std::string message;
  wire::append_bind(message, "", "", bind);
  return message.substr(wire::kHeaderBytes + 2);
}

std::string type_oids_of(const GatherRequest& request) {
  std::string raw(4 * request.parameter_types.size(), '\0');
  for (std::size_t i = 0; i < request.parameter_types.size(); ++i)
    wire::store_u32(raw.data() + 4 * i, request.parameter_types[i]);
  return raw;
}

void Stream::start() {
  std::vector<std::int16_t> formats(binary_ ? 1 : what_.relation.columns.size(), 1);
  for (std::size_t i = 0; !binary_ && i < formats.size(); ++i) {
    const std::uint32_t type = portable_column(what_.relation, i).value_or(0);
    exact_.push_back(needs_exact_text(type) ? type : 0);
    formats[i] = exact_.back() != 0 ? 1 : 0;
  }
  const std::string oids = type_oids_of(request_), tail = bind_tail_of(request_, std::move(formats));
  for (std::size_t i = 0; i < what_.sources.size(); ++i) {
    if (what_.sources[i] == request_.finisher) continue;
    auto branch = std::make_unique<Branch>(what_.sources[i], request_.max_message);
    branch->start({.text = what_.relation.tasks[i].text, .type_oids = oids, .bind_tail = tail});
    branch->backend().stream.set_target(request_.waiter);
    branch->flush();
    branches_.push_back(std::move(branch));
  }
  described_.resize(branches_.size());
}

io::Task<void> Stream::give_up() {
  auto abandoning = abandon(&branches_, request_.cancel, request_.waiter);
  co_await std::move(abandoning);
}

// A plan that is wrong about a type would have bytes read as what they are not.
bool Stream::describe() {
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    const Branch& branch = *branches_[i];
    if (described_[i] || !branch.described()) continue;
    described_[i] = true;
    const auto columns = wire::read_row_description(branch.description());
    bool right = columns.has_value() && columns->size() == what_.relation.columns.size();
    for (std::size_t c = 0; right && c < columns->size(); ++c)
      if (binary_ || exact_[c] != 0) right = portable_column(what_.relation, c) == (*columns)[c].type_oid;
    if (right) continue;
    fail_with(Error{.sqlstate = "55000",
                    .message = "shard " + branch.shard() + " gives other columns of " + what_.relation.of +
                               " than are to be gathered",
                    .hint = "Bring the table on all shards to the same definition."});
    return false;
  }
  return true;
}

// True when rows have gone.
bool Stream::move_rows() {
  bool moved = false;
  for (auto& branch : branches_) {
    if (out().kept_bytes() >= kFinisherBudget) break;
    std::uint64_t rows = UINT64_MAX, size = 0;
    if (binary_) {
      const std::string_view run = branch->run_of_rows(rows, wire::client::kCopyData);
      size = run.size();
      if (rows > 0) out().pass(run);
      request_.finisher->out.flush(request_.finisher->stream);
      if (rows > 0) branch->drop(size);
    } else {
      for (rows = 0; out().kept_bytes() < kFinisherBudget; ++rows) {
        const auto row = branch->row();
        if (!row) break;
        size += row->size();
        if (Status line = append_copy_line(row->body, exact_, out().compose()); !line) {
          fail_with(line.error());
          return false;
        }
        branch->drop_row();
      }
    }
    rows_ += rows;
    result_->rows += rows;
    result_->bytes += size;
    moved = moved || rows > 0;
    if (result_->bytes > request_.most_bytes) {
      fail_with(Error{.sqlstate = std::string(sqlstate::kLimitReached),
                      .message = "the statement would gather more than " + std::to_string(request_.most_bytes) +
                                 " bytes on one shard: it was reading " + what_.relation.of,
                      .hint = "Restrict the rows of that table, join it on its sharding key, or raise "
                              "limits.gather_bytes."});
      return false;
    }
  }
  return moved;
}

bool Stream::ended() const {
  for (const auto& branch : branches_) {
    if (!branch->settled()) return false;
  }
  return true;
}

bool Stream::note_failures() {
  for (const auto& branch : branches_) {
    if (failed_ || !branch->failed()) continue;
    failed_ = true;
    result_->error = branch->error();
    result_->sqlstate = branch->error_sqlstate();
  }
  return failed_;
}

io::Task<bool> Stream::run() {
  Backend& finisher = *request_.finisher;
  if (binary_) wire::append_copy_data(out().compose(), kBinaryCopyHeader);
  bool finisher_spoke = false;
  while (!failed_ && !ended()) {
    bool moved = false;
    for (auto& branch : branches_) {
      branch->flush();
      if (branch->backend().stream.readable()) moved |= branch->read(kBranchBudget);
      (void)branch->take_asides();
    }
    if (note_failures() || !describe()) break;
    moved |= move_rows();
    if (note_failures()) break;  // what stood behind the last rows
    const bool was_full = finisher.out.kept_bytes() >= kFinisherBudget;
    const io::IoResult flushed = finisher.out.flush(finisher.stream);
    moved |= was_full && finisher.out.kept_bytes() < kFinisherBudget;
    // While it takes rows it has nothing to say but CopyInResponse: a word more is an error.
    finisher_spoke = flushed.kind == io::IoResult::kClosed || flushed.kind == io::IoResult::kError;
    if (finisher.stream.readable() && !finisher_spoke) {
      const io::IoResult got = finisher.read_more_to_carry(4096);
      finisher_spoke = got.kind == io::IoResult::kClosed || got.kind == io::IoResult::kError ||
                       holds_an_error(finisher.carry);
    }
    if (finisher_spoke) break;
    if (request_.still_wanted) {
      if (Status wanted = request_.still_wanted(); !wanted) fail_with(wanted.error());
    }
    if (failed_) break;
    if (moved) continue;
    for (auto& branch : branches_)
      branch->backend().stream.want(branch->wants_to_read(kBranchBudget), branch->sending());
    finisher.stream.want(true, !finisher.out.empty());
    if (!co_await request_.waiter->wait(request_.deadline)) {
      fail_with(Error{.sqlstate = std::string(sqlstate::kQueryCanceled),
                      .message = "canceling statement due to statement timeout"});
    }
  }
  const bool whole = !failed_ && !finisher_spoke;
  if (whole) {
    for (auto& branch : branches_) branch->leave();
    if (binary_) wire::append_copy_data(finisher.out.compose(), kBinaryCopyTrailer);
    wire::append_copy_done(finisher.out.compose());
  } else {
    auto abandoning = abandon(&branches_, request_.cancel, request_.waiter);
    co_await std::move(abandoning);
    wire::append_copy_fail(finisher.out.compose(), "the rows could not be gathered");
  }
  co_return whole;
}

}  // namespace

// Makes the table, and takes the data when some come from elsewhere.
std::string Gathering::opening(const GatherRequest::Relation& what, bool has_sources) const {
  const GatheredRelation& relation = what.relation;
  std::string sql;
  if (!relation.types.empty()) {
    std::string columns;
    for (std::size_t i = 0; i < relation.columns.size(); ++i)
      columns += (i > 0 ? ", " : "") + quote_identifier(relation.columns[i]) + " " + relation.types[i];
    for (const std::string& column : relation.primary_key)
      columns += (&column == relation.primary_key.data() ? ", PRIMARY KEY (" : ", ") + quote_identifier(column);
    if (!relation.primary_key.empty()) columns += ")";
    sql += "CREATE TEMP TABLE " + quote_identifier(relation.temporary) + " (" + columns + ") ON COMMIT DROP; ";
  }
  if (!has_sources) return sql;
  const std::string copy = "COPY " + table_of(relation) + " (" + columns_of(relation) + ") FROM STDIN";
  if (is_portable(relation)) return sql + copy + " (FORMAT binary); ";
  // Else the NULL of an array's text would be a word.
  return sql +
         "SELECT pg_catalog.set_config('kintsugi.array_nulls', pg_catalog.current_setting('array_nulls'), "
         "true), "
         "pg_catalog.set_config('array_nulls', 'on', true); " +
         copy +
         "; SELECT pg_catalog.set_config('array_nulls', pg_catalog.current_setting('kintsugi.array_nulls'), "
         "true); ";
}

std::string Gathering::insert_of(const GatheredRelation& relation, const std::string& select) const {
  return "INSERT INTO " + table_of(relation) + " (" + columns_of(relation) + ") " + select;
}

// With the client's parameters. False: the error is in the result.
io::Task<bool> Gathering::run_here(std::string text, GatherResult* result, std::uint64_t* rows) {
  FanRequest local;
  local.branches.push_back({request_.finisher, std::move(text), {}});
  local.parameter_types = request_.parameter_types;
  local.bind.values = request_.parameters;
  Outbox nobody;
  local.client = &nobody;
  local.waiter = request_.waiter;
  local.deadline = request_.deadline;
  local.still_wanted = request_.still_wanted;
  local.cancel = request_.cancel;
  Fan fan(std::move(local));
  auto running = fan.advance();
  FanStep step = co_await std::move(running);
  if (step.kind != FanStep::kFailed) {
    if (rows != nullptr) *rows += rows_in(step.tag);
    co_return true;
  }
  result->error = std::move(step.error);
  result->sqlstate = std::move(step.sqlstate);
  co_return false;
}

// The rows of a relation that can be used are those with a value that is there already: said to the shards when
// the values are few.
io::Task<bool> Gathering::put_keys(GatherRequest::Relation* what, GatherResult* result) {
  for (const planner::KeyFilter& key : what->relation.keys) {
    std::string condition;
    if (rows_of_[key.of] <= kManyForKeys) {
      // Text, so that it goes into the statement as one literal.
      const std::string column = quote_identifier(key.values);
      auto asking = run_control_query(
          request_.finisher,
          "SELECT CASE WHEN count(*) <= " + std::to_string(kMostKeys) +
              " THEN coalesce(pg_catalog.array_agg(v), '{}')::pg_catalog.text END FROM (SELECT DISTINCT " +
              column + " AS v FROM pg_temp." + quote_identifier(key.of) + " WHERE " + column +
              " IS NOT NULL LIMIT " + std::to_string(kMostKeys + 1) + ") AS values",
          request_.waiter, request_.deadline);
      const auto rows = co_await std::move(asking);
      if (!rows) {
        result->sqlstate = rows.error().sqlstate;
        wire::append_error(result->error, "ERROR", rows.error());
        co_return false;
      }
      const auto& values = rows->at(0).at(0);
      if (values && values->size() <= kMostKeyBytes)
        condition = " AND " + key.column + " = ANY (" + quote_literal(*values) + "::" + key.type + "[])";
    }
    for (planner::ShardTask& task : what->relation.tasks) {
      const std::size_t at = task.text.rfind(key.mark);  // behind whatever the client wrote
      if (at != std::string::npos) task.text.replace(at, key.mark.size(), condition);
    }
  }
  co_return true;
}

// The first task on the finisher itself; SIZE_MAX: none.
std::size_t Gathering::first_here(const GatherRequest::Relation& what) const {
  for (std::size_t i = 0; i < what.sources.size(); ++i)
    if (what.sources[i] == request_.finisher) return i;
  return SIZE_MAX;
}

// One relation's rows: those of other shards, and those that are on the finisher.
io::Task<bool> Gathering::fill_one(GatherRequest::Relation* what, GatherResult* result) {
  Backend& finisher = *request_.finisher;
  const GatheredRelation& relation = what->relation;
  auto putting = put_keys(what, result);
  if (!co_await std::move(putting)) co_return false;
  Stream stream(request_, *what, result);
  stream.start();
  const std::size_t here = first_here(*what);
  std::uint64_t rows = 0;
  if (relation.types.empty()) {
    // PostgreSQL knows best which types, modifiers and collations the columns of a query have. CREATE TABLE AS
    // may use parallel workers, as INSERT ... SELECT may not.
    const bool has_rows = here < relation.tasks.size();
    auto making = run_here("CREATE TEMP TABLE " + quote_identifier(relation.temporary) + " (" +
                               columns_of(relation) + ") ON COMMIT DROP AS " +
                               relation.tasks[has_rows ? here : 0].text + (has_rows ? "" : "\nWITH NO DATA"),
                           result, &rows);
    if (!co_await std::move(making)) {
      auto giving_up = stream.give_up();
      co_await std::move(giving_up);
      co_return false;
    }
  }
  const std::string sql = opening(*what, stream.has_sources());
  if (!sql.empty()) {
    wire::append_query(finisher.out.compose(), sql);
    (void)finisher.out.flush(finisher.stream);
    bool good = true;
    if (stream.has_sources()) {
      auto streaming = stream.run();
      good = co_await std::move(streaming);
    }
    const Deadline deadline = good ? request_.deadline : Deadline::in(std::chrono::seconds(10));
    auto flushing = flush_out(&finisher, request_.waiter, deadline);
    (void)co_await std::move(flushing);
    std::string frame;
    auto answering = read_control_answer(&finisher, request_.waiter, deadline, {.error_frame = &frame});
    const auto answer = co_await std::move(answering);
    if (!answer && result->error.empty()) {
      result->sqlstate = answer.error().sqlstate;
      if (frame.empty()) {
        wire::append_error(result->error, "ERROR", answer.error());
      } else {
        wire::append_error_with_context(result->error,
                                        {frame[0], std::string_view(frame).substr(wire::kHeaderBytes)},
                                        "shard " + finisher.shard);
      }
    }
    if (!answer || !good) co_return false;
  }
  rows += stream.rows();
  for (std::size_t i = here; i < what->sources.size() && !relation.types.empty(); ++i) {
    if (what->sources[i] != &finisher) continue;
    auto inserting = run_here(insert_of(relation, relation.tasks[i].text), result, &rows);
    if (!co_await std::move(inserting)) co_return false;
  }
  rows_of_[relation.temporary] = rows;
  co_return true;
}

// What the final statement's plan would suffer without. A small sample tells what matters: how many rows, how
// many values.
std::string Gathering::analysing() const {
  std::string sql;
  for (const auto& each : request_.relations) {
    const auto rows = rows_of_.find(each.relation.temporary);
    if (rows == rows_of_.end() || rows->second < kManyRows) continue;
    if (!each.relation.indexed.empty()) {
      std::string columns;
      for (const std::string& column : each.relation.indexed)
        columns += (columns.empty() ? "" : ", ") + quote_identifier(column);
      sql += "CREATE INDEX ON " + table_of(each.relation) + " (" + columns + "); ";
    }
    sql += "ANALYZE " + table_of(each.relation) + "; ";
  }
  if (sql.empty()) return sql;
  return "SELECT pg_catalog.set_config('kintsugi.target', "
         "pg_catalog.current_setting('default_statistics_target'), "
         "true), pg_catalog.set_config('default_statistics_target', '10', true); " +
         sql +
         "SELECT pg_catalog.set_config('default_statistics_target', "
         "pg_catalog.current_setting('kintsugi.target'), "
         "true)";
}

io::Task<GatherResult> Gathering::fill() {
  GatherResult result;
  Backend& finisher = *request_.finisher;
  INVARIANT(finisher.status != wire::TransactionStatus::kIdle, "what is gathered lives in a transaction");
  finisher.has_temporaries = true;
  finisher.stream.set_target(request_.waiter);
  for (auto& each : request_.relations) {
    auto filling = fill_one(&each, &result);
    if (!co_await std::move(filling)) co_return result;
  }
  if (const std::string sql = analysing(); !sql.empty()) {
    auto running = run_control_query(&finisher, sql, request_.waiter, request_.deadline);
    const auto analysed = co_await std::move(running);
    if (!analysed) {
      result.sqlstate = analysed.error().sqlstate;
      wire::append_error(result.error, "ERROR", analysed.error());
      co_return result;
    }
  }
  result.ok = true;
  co_return result;
}

io::Task<void> Gathering::drop() {
  Backend& finisher = *request_.finisher;
  if (finisher.broken || finisher.status != wire::TransactionStatus::kInTransaction) co_return;
  std::string tables;
  for (const auto& each : request_.relations) tables += (tables.empty() ? "" : ", ") + table_of(each.relation);
  auto dropping =
      run_control_query(&finisher, "DROP TABLE IF EXISTS " + tables, request_.waiter, request_.deadline);
  (void)co_await std::move(dropping);
}

}  // namespace kintsugi::executor
