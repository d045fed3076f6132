#include "splitmerge/disk_space.h"

#include <algorithm>

#include "base/sql_quote.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgSession;
using shardmap::SqlValue;

// The rows are written to the table and to the log.
constexpr double kWithLog = 2;

// A leaf's bytes with indexes and large values, and the share of them that moves.
Result<double> bytes_of(PgSession& source, const MovedTable& table, Deadline deadline) {
  double rows = 0, moving = 0, bytes = 0;
  for (const Leaf& leaf : table.leaves) {
    KG_TRY(const auto size, source.query("SELECT pg_total_relation_size($1::text::regclass)",
                                         {SqlValue::text(leaf.name)}, deadline));
    bytes += std::stod(*size.at(0).at(0));
  }
  for (const bool some : {false, true}) {
    KG_TRY(const auto plan,
           source.query("EXPLAIN SELECT FROM " + table.name + (some ? " WHERE " + table.inside : std::string()),
                        {}, deadline));
    const std::string& line = *plan.at(0).at(0);
    const auto at = line.find("rows=");
    (some ? moving : rows) = at == std::string::npos ? 0 : std::atof(line.c_str() + at + 5);
  }
  return rows < 1 ? bytes : bytes * std::min(1.0, moving / rows);
}

// One line of `df -P -B1`: "device blocks used available capacity mount".
std::optional<std::uint64_t> available_in(const std::string& line) {
  std::size_t at = 0;
  for (int field = 0; field < 4; ++field) {
    at = line.find_first_not_of(' ', at);
    if (at == std::string::npos) return std::nullopt;
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (field == 3) {
      const std::string word = line.substr(at, end - at);
      if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
      return std::stoull(word);
    }
    at = end;
  }
  return std::nullopt;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Result<std::optional<std::uint64_t>> free_at(PgSession& target, const std::string& path, Deadline deadline) {
  std::optional<std::uint64_t> free;
  const Status asked = target.transaction(
      [&]() -> Status {
        KG_CHECK(target.run("CREATE TEMP TABLE kintsugi_disk (line text) ON COMMIT DROP", {}, deadline));
        KG_CHECK(target.run("COPY pg_temp.kintsugi_disk FROM PROGRAM " +
                                quote_literal("df -P -B1 " + shell_quoted(path)) + " (DELIMITER E'\\x01')",
                            {}, deadline));
        KG_TRY(const auto lines, target.query("SELECT line FROM pg_temp.kintsugi_disk", {}, deadline));
        for (const auto& line : lines) {
          if (const auto some = available_in(*line.at(0))) free = some;
        }
        return {};
      },
      deadline);
  if (!asked) return fail(asked.error());
  return free;
}

}  // namespace

Result<DiskSpace> look_at_disk(PgSession& source, PgSession& target, const std::vector<MovedTable>& tables,
                               Deadline deadline) {
  DiskSpace space;
  double bytes = 0;
  for (const MovedTable& table : tables) {
    KG_TRY(const double some, bytes_of(source, table, deadline));
    bytes += some;
  }
  space.needed = static_cast<std::uint64_t>(bytes * kWithLog);
  KG_TRY(const auto may,
         target.query("SELECT pg_has_role(current_user, 'pg_execute_server_program', 'USAGE') AND "
                      "pg_has_role(current_user, 'pg_read_all_settings', 'USAGE')",
                      {}, deadline));
  if (may.at(0).at(0) != "t") {
    space.unknown = "the role on the target may not ask (pg_execute_server_program, pg_read_all_settings)";
    return space;
  }
  std::string names;
  for (const MovedTable& table : tables) {
    for (const Leaf& leaf : table.leaves) names += (names.empty() ? "" : ", ") + quote_literal(leaf.name);
  }
  // A table that is not there yet comes to the database's own tablespace.
  KG_TRY(const auto places,
         target.query(
             "SELECT DISTINCT coalesce(nullif(pg_tablespace_location(coalesce(nullif(c.reltablespace, 0), "
             "d.dattablespace)), ''), current_setting('data_directory')) FROM pg_database d LEFT JOIN "
             "pg_class c ON c.oid = ANY (ARRAY(SELECT to_regclass(n) FROM unnest(ARRAY[" +
                 names + "]::text[]) n)::oid[]) WHERE d.datname = current_database()",
             {}, deadline));
  for (const auto& place : places) {
    const auto free = free_at(target, *place.at(0), deadline);
    if (!free && free.error().sqlstate == "53100") {
      // Not even the answer to this question has room.
      space.free = 0;
      space.where = *place.at(0);
      continue;
    }
    if (!free) {
      space.unknown = free.error().message;
      if (!target.good()) return fail(free.error());
      continue;
    }
    if (*free && (!space.free || **free < *space.free)) {
      space.free = *free;
      space.where = *place.at(0);
    }
  }
  return space;
}

}  // namespace kintsugi::splitmerge
