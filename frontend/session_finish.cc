// Tier 3, when the partial rows are few: they come here, and go on as array parameters of the statement that
// finishes them. One round trip more than a fan-out; no temporary table, no transaction, nothing to clean up.
#include <unordered_map>

#include "executor/array_parameters.h"
#include "frontend/session.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kControlTimeout = 30s;
constexpr std::size_t kFewBytes = 256 * 1024;  // of rows that go on as parameters
constexpr std::size_t kMostParameters = 65'535;

// What gave too many rows gives them again as a rule: so many times it is not tried.
constexpr int kNotTried = 15;
constexpr std::size_t kMostRemembered = 4096;

class LargeOnes {
 public:
  // Whether it was large a short while ago.
  bool skip(std::string_view text) {
    const auto at = left_.find(std::hash<std::string_view>()(text));
    if (at == left_.end()) return false;
    if (--at->second <= 0) left_.erase(at);
    return true;
  }
  void note(std::string_view text) {
    if (left_.size() >= kMostRemembered) left_.clear();
    left_[std::hash<std::string_view>()(text)] = kNotTried;
  }

 private:
  std::unordered_map<std::size_t, int> left_;
};

LargeOnes& large_ones() {
  static thread_local LargeOnes ones;
  return ones;
}

}  // namespace

bool Session::may_be_small(const planner::Gather& gather) {
  return gather.tier == planner::Tier::kFinish && gather.cursor.empty() && !gather.copy_out && !gather.writes &&
         gather.relations.size() == 1 && !gather.relations.front().tasks.empty() &&
         !large_ones().skip(gather.relations.front().tasks.front().text);
}

// Nothing: the rows are many, or of types that have no arrays; what was read of them is forgotten.
io::Task<std::optional<StatementEnd>> Session::finish_small(const planner::Gather* gather, Run* run) {
  const planner::GatheredRelation& relation = gather->relations.front();
  const std::string& like = relation.tasks.front().text;
  executor::Outbox kept;
  Run partial{.types = run->types, .bind = run->bind, .rows_to = &kept};
  partial.bind.result_formats.clear();
  for (std::size_t i = 0; i < relation.columns.size(); ++i)
    partial.bind.result_formats.push_back(i < relation.oids.size() && executor::is_portable(relation.oids[i]));
  partial.most_kept = kFewBytes;
  planner::FanOut parts;
  parts.tasks = relation.tasks;
  std::unique_ptr<executor::Fan> fan;
  auto beginning = begin_fan(std::move(parts), &partial, 0, &fan);
  auto step = co_await std::move(beginning);
  if (!step) co_return StatementEnd::refused(step.error());
  if (step->kind == executor::FanStep::kFailed) co_return end_of(*step);
  if (step->cut) {
    large_ones().note(like);
    co_return std::nullopt;
  }
  const ShardId finisher = relation.tasks.front().shard;
  auto described = columns_of_parts(fan->description(), finisher);
  auto columns = co_await std::move(described);
  if (!columns) co_return StatementEnd::refused(columns.error());
  if (columns->size() != relation.columns.size() || run->types.size() + columns->size() > kMostParameters) {
    large_ones().note(like);
    co_return std::nullopt;
  }
  std::string others;
  auto arrays = executor::arrays_of(kept.compose(), *columns, others);
  if (!arrays) co_return StatementEnd::refused(arrays.error());
  to_client_.compose() += others;
  Run last = *run;
  planner::FanOut finish;
  finish.tasks.push_back({finisher, executor::relation_of_arrays(relation.temporary, relation.columns, like,
                                                                 *columns, run->types.size() + 1) +
                                        gather->text});
  for (std::size_t i = 0; i < columns->size(); ++i) {
    last.types.push_back(executor::parameter_type((*columns)[i]));
    last.bind.values.push_back({.binary = true, .bytes = (*arrays)[i]});
  }
  auto finishing = run_fan_out(std::move(finish), &last);
  StatementEnd end = co_await std::move(finishing);
  run->rows_to = last.rows_to;
  co_return end;
}

// What the arrays are to be; none when one of the types has no array that gives its values back.
io::Task<Result<std::vector<executor::ArrayColumn>>> Session::columns_of_parts(std::string description,
                                                                               ShardId shard) {
  std::vector<executor::ArrayColumn> columns;
  KG_CO_TRY(const auto described, wire::read_row_description(description));
  std::string unknown;
  for (const wire::Column& each : described) {
    columns.push_back(executor::array_column(each));
    if (!executor::has_known_modifier(columns.back())) co_return std::vector<executor::ArrayColumn>();
    if (columns.back().array == 0) unknown += (unknown.empty() ? "" : ", ") + std::to_string(each.type_oid);
  }
  if (unknown.empty()) co_return columns;
  KG_CO_TRY(Place * place, place_at(shard));
  auto asking =
      executor::run_control_query(place->lease.get(),
                                  "SELECT oid, pg_catalog.format_type(oid, -1) FROM pg_catalog.pg_type WHERE "
                                  "typarray <> 0 AND typtype IN ('b', 'e', 'r') AND "
                                  "typcategory <> 'A' AND typdelim = ',' AND oid IN (" +
                                      unknown + ")",
                                  &waiter_, Deadline::in(kControlTimeout));
  auto rows = co_await std::move(asking);
  if (!rows) co_return fail(std::move(rows).error());
  for (executor::ArrayColumn& column : columns) {
    for (const auto& row : *rows)
      if (row.at(0) == std::to_string(column.type)) column.name = row.at(1).value_or("");
    if (column.name.empty()) co_return std::vector<executor::ArrayColumn>();
  }
  co_return columns;
}

}  // namespace kintsugi::frontend
