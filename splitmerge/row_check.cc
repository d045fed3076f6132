#include "splitmerge/row_check.h"

#include <algorithm>
#include <future>
#include <map>

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;

constexpr int kBuckets = 1024;
constexpr std::size_t kRowsShown = 5;

std::string bucket_of(const MovedTable& table) {
  return "(" + table.checksum + " & " + std::to_string(kBuckets - 1) + ")";
}

using Buckets = std::map<std::string, std::string>;  // number to sum

Result<Buckets> buckets_of(PgSession& session, const MovedTable& table, Deadline deadline) {
  KG_TRY(const auto rows, session.query("SELECT " + bucket_of(table) + ", sum(" + table.checksum +
                                            ")::text || '/' || "
                                            "count(*) FROM " +
                                            table.name + " WHERE " + table.inside + " GROUP BY 1",
                                        {}, deadline));
  Buckets buckets;
  for (const PgRow& row : rows) buckets[*row[0]] = *row[1];
  return buckets;
}

// Key and checksum of the rows of one bucket, sorted.
Result<std::vector<std::string>> rows_of(PgSession& session, const MovedTable& table, const std::string& bucket,
                                         Deadline deadline) {
  KG_TRY(const auto rows,
         session.query("SELECT ROW(" + list_of(table.key.empty() ? table.columns : table.key) +
                           ")::text || ' #' || " + table.checksum + " FROM " + table.name + " WHERE " +
                           table.inside + " AND " + bucket_of(table) + " = " + bucket,
                       {}, deadline));
  std::vector<std::string> out;
  for (const PgRow& row : rows) out.push_back(*row[0]);
  std::sort(out.begin(), out.end());
  return out;
}

// "key (5) on the source only, ..."
Result<std::string> differing_rows(PgSession& source, PgSession& target, const MovedTable& table,
                                   Deadline deadline) {
  KG_TRY(const Buckets here, buckets_of(source, table, deadline));
  KG_TRY(const Buckets there, buckets_of(target, table, deadline));
  std::string text;
  std::size_t shown = 0;
  const auto show = [&](const std::vector<std::string>& rows, const char* where) {
    for (const std::string& row : rows) {
      if (shown++ >= kRowsShown) return;
      text +=
          (text.empty() ? "" : ", ") + ("key " + row.substr(0, row.rfind(" #"))) + " on the " + where + " only";
    }
  };
  Buckets all = here;
  all.insert(there.begin(), there.end());
  for (const auto& [bucket, sum] : all) {
    const auto a = here.find(bucket);
    const auto b = there.find(bucket);
    if (a != here.end() && b != there.end() && a->second == b->second) continue;
    KG_TRY(const auto mine, rows_of(source, table, bucket, deadline));
    KG_TRY(const auto theirs, rows_of(target, table, bucket, deadline));
    std::vector<std::string> only;
    std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(only));
    show(only, "source");
    only.clear();
    std::set_difference(theirs.begin(), theirs.end(), mine.begin(), mine.end(), std::back_inserter(only));
    show(only, "target");
    if (shown >= kRowsShown) break;
  }
  return text;
}

}  // namespace

Result<std::vector<RowSum>> sums_of(PgSession& session, const std::vector<MovedTable>& tables,
                                    Deadline deadline) {
  std::vector<RowSum> sums;
  for (const MovedTable& table : tables) {
    KG_TRY(const auto rows, session.query("SELECT count(*), coalesce(sum(" + table.checksum + "), 0) FROM " +
                                              table.name + " WHERE " + table.inside,
                                          {}, deadline));
    sums.push_back({std::stoull(*rows.at(0).at(0)), *rows[0][1]});
  }
  return sums;
}

Result<BothSums> sums_of_both(PgSession& source, PgSession& target, const std::vector<MovedTable>& tables,
                              Deadline deadline) {
  auto there = std::async(std::launch::async, [&] { return sums_of(target, tables, deadline); });
  auto here = sums_of(source, tables, deadline);
  auto other = there.get();
  if (!here) return fail(here.error());
  if (!other) return fail(other.error());
  return BothSums{*std::move(here), *std::move(other)};
}

Status compare_sums(const std::vector<MovedTable>& tables, const BothSums& sums, PgSession& source,
                    PgSession& target, Deadline deadline) {
  std::string detail;
  std::string names;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (sums.source[i] == sums.target[i]) continue;
    const std::string name = tables[i].table.display();
    const auto rows = differing_rows(source, target, tables[i], deadline);
    names += (names.empty() ? "" : ", ") + name;
    detail += (detail.empty() ? "" : "\n") + name + ": " + std::to_string(sums.source[i].rows) +
              " rows on the source, " + std::to_string(sums.target[i].rows) + " on the target; " +
              (rows ? *rows : rows.error().message);
  }
  if (names.empty()) return {};
  return fail(Error{kRowsDiffer, "the rows of the shardlet differ between source and target: table " + names,
                    detail, "", 0});
}

}  // namespace kintsugi::splitmerge
