#include "splitmerge/key_check.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgRow;
using shardmap::PgSession;
using shardmap::SqlValue;

constexpr std::size_t kKeysShown = 5;

// "(5,x)", as PostgreSQL shows a row, so far as it needs no quotes.
std::string shown(const RowKey& key) {
  std::string text = "(";
  for (const std::string& value : key) text += (text.size() > 1 ? "," : "") + value;
  return text + ")";
}

std::string where_of(const RowSum& source, const RowSum& target) {
  if (target.rows == 0) return " on the source only";
  if (source.rows == 0) return " on the target only";
  if (source.rows == target.rows) return " not the same on both";
  return " " + std::to_string(source.rows) + " times on the source, " + std::to_string(target.rows) +
         " times on the target";
}

// The keys come as one array for each column, and each as it is looked up by the table's own index.
std::string question(const MovedTable& table) {
  const LookupKey& key = table.row_key;
  std::string arrays;
  std::string columns;
  std::string values;
  std::string matches;
  std::string joins;
  for (std::size_t i = 0; i < key.names.size(); ++i) {
    const std::string n = std::to_string(i + 1);
    const std::string value = "kintsugi_key.v" + n + "::" + key.types[i];
    const char* comma = i == 0 ? "" : ", ";
    arrays += comma + ("$" + n + "::text[]");
    columns += comma + ("v" + n);
    values += comma + value;
    const std::string match = key.names[i] + " " + key.operators[i] + " " + value;
    matches += (i == 0 ? "" : " AND ") + match;
    joins += (i == 0 ? "" : " AND ") + ("its." + match);
  }
  const std::string keys = "unnest(" + arrays + ") WITH ORDINALITY AS kintsugi_key (" + columns + ", nth)";
  if (key.unique) {
    return "SELECT kintsugi_key.nth, 1, its.sum FROM " + keys + " CROSS JOIN LATERAL (SELECT " +
           table.checksum + " AS sum FROM " + table.name + " WHERE " + matches + " AND (" + table.inside +
           ") OFFSET 0) its";
  }
  return "SELECT kintsugi_key.nth, count(*), sum(its.sum) FROM " + keys + " JOIN (SELECT " +
         list_of(key.names) + ", " + table.checksum + " AS sum FROM " + table.name + " WHERE (" + table.inside +
         ") AND (" + list_of(key.names) + ") IN (SELECT " + values + " FROM " + keys + ")) its ON " + joins +
         " GROUP BY kintsugi_key.nth";
}

}  // namespace

Result<std::vector<RowSum>> sums_of_keys(PgSession& session, const MovedTable& table, const RowKeys& keys,
                                         Deadline deadline) {
  std::vector<RowSum> sums(keys.size());
  if (keys.empty()) return sums;
  std::vector<std::vector<std::string>> columns(table.row_key.names.size());
  for (const RowKey& key : keys) {
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push_back(key[i]);
  }
  std::vector<SqlValue> values;
  for (const auto& column : columns) values.push_back(SqlValue::text(array_of(column)));
  KG_TRY(const auto rows, session.query(question(table), values, deadline));
  for (const PgRow& row : rows) {
    RowSum& sum = sums.at(std::stoul(*row.at(0)) - 1);
    sum.rows += std::stoull(*row[1]);
    sum.sum += row[2].value_or("");
  }
  return sums;
}

Result<std::vector<std::vector<RowSum>>> sums_of_keys(PgSession& session, const std::vector<MovedTable>& tables,
                                                      const std::vector<RowKeys>& keys, Deadline deadline) {
  std::vector<std::vector<RowSum>> sums;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    KG_TRY(auto some, sums_of_keys(session, tables[i], keys[i], deadline));
    sums.push_back(std::move(some));
  }
  return sums;
}

Status compare_keys(const std::vector<MovedTable>& tables, const std::vector<RowKeys>& keys,
                    const std::vector<std::vector<RowSum>>& source,
                    const std::vector<std::vector<RowSum>>& target) {
  std::string names;
  std::string detail;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::size_t differing = 0;
    std::string text;
    std::size_t at = 0;
    for (const RowKey& key : keys[i]) {
      const RowSum& here = source[i][at];
      const RowSum& there = target[i][at++];
      if (here == there || ++differing > kKeysShown) continue;
      text += (text.empty() ? "" : ", ") + ("key " + shown(key)) + where_of(here, there);
    }
    if (differing == 0) continue;
    const std::string name = tables[i].table.display();
    names += (names.empty() ? "" : ", ") + name;
    detail += (detail.empty() ? "" : "\n") + name + ": of " + std::to_string(keys[i].size()) +
              " keys that were changed since the copy, " + std::to_string(differing) + " differ; " + text;
  }
  if (names.empty()) return {};
  return fail(Error{kRowsDiffer, "the rows of the shardlet differ between source and target: table " + names,
                    detail, "", 0});
}

}  // namespace kintsugi::splitmerge
