#include "splitmerge/preconditions.h"

#include <algorithm>

#include "splitmerge/disk_space.h"
#include "splitmerge/shardlet_edits.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgSession;
using shardmap::Shard;
using shardmap::ShardMap;
using shardmap::SqlValue;

constexpr std::size_t kDifferencesShown = 5;
constexpr std::uint64_t kDiskReserve = 64UL << 20;

Result<std::unique_ptr<PgSession>> look_at(const Shard& shard, Deadline deadline) {
  auto session = PgSession::connect(shard.dsn, true, deadline);
  if (!session) {
    return fail(Error{std::string(sqlstate::kShardUnreachable),
                      "shard \"" + shard.name + "\" cannot be reached", session.error().message, "", 0});
  }
  KG_CHECK((*session)->script("SET client_min_messages = warning; SET search_path = pg_catalog", deadline));
  return session;
}

// Lines that only one of the two has.
void compare_shapes(const MovedTable& table, const std::vector<std::string>& source,
                    const std::vector<std::string>& target, std::vector<std::string>& reasons) {
  if (target.empty()) return;
  std::vector<std::string> differences;
  std::set_difference(source.begin(), source.end(), target.begin(), target.end(),
                      std::back_inserter(differences));
  for (std::string& line : differences) line += " (on the source only)";
  const auto both = static_cast<std::ptrdiff_t>(differences.size());
  std::set_difference(target.begin(), target.end(), source.begin(), source.end(),
                      std::back_inserter(differences));
  for (auto line = differences.begin() + both; line != differences.end(); ++line)
    *line += " (on the target only)";
  for (std::size_t i = 0; i < differences.size() && i < kDifferencesShown; ++i)
    reasons.push_back("table " + table.table.display() + " differs: " + differences[i]);
}

Status check_servers(PgSession& source, PgSession& target, std::vector<std::string>& reasons,
                     Deadline deadline) {
  KG_TRY(const auto here,
         source.query(
             "SELECT current_setting('wal_level'), current_setting('max_replication_slots')::int - (SELECT "
             "count(*) FROM pg_replication_slots), current_setting('max_wal_senders')::int - (SELECT count(*) "
             "FROM pg_stat_replication), current_setting('server_version_num')::int >= 150000",
             {}, deadline));
  if (here[0][0] != "logical") {
    reasons.push_back("wal_level of the source is " + *here[0][0] +
                      ", not logical (mode = offline moves without it, while writes wait)");
  }
  if (std::stol(*here[0][1]) < 2)
    reasons.emplace_back("the source has no free replication slot for each of two (max_replication_slots)");
  if (std::stol(*here[0][2]) < 2)
    reasons.emplace_back("the source has no free WAL sender for each of two (max_wal_senders)");
  if (here[0][3] != "t") reasons.emplace_back("the source is older than PostgreSQL 15");
  KG_TRY(const auto there,
         target.query(
             "SELECT current_setting('max_logical_replication_workers')::int - (SELECT count(*) FROM "
             "pg_stat_subscription WHERE pid IS NOT NULL), current_setting('max_replication_slots')::int - "
             "(SELECT count(*) FROM pg_replication_origin), (SELECT rolsuper FROM pg_roles WHERE rolname = "
             "current_user)",
             {}, deadline));
  if (std::stol(*there[0][0]) < 1)
    reasons.emplace_back("the target has no free worker for a subscription (max_logical_replication_workers)");
  if (std::stol(*there[0][1]) < 1)
    reasons.emplace_back("the target has no free place for an origin (max_replication_slots)");
  if (there[0][2] != "t") reasons.emplace_back("the role on the target is no superuser and cannot subscribe");
  return {};
}

// The same bytes are other characters in another encoding, and the keys of a map are UTF-8.
Status check_encoding(PgSession& shard, const char* which, std::vector<std::string>& reasons,
                      Deadline deadline) {
  KG_TRY(const auto rows, shard.query("SELECT getdatabaseencoding()", {}, deadline));
  const std::string& encoding = *rows.at(0).at(0);
  if (encoding == "UTF8") return {};
  reasons.push_back(std::string("the database of the ") + which + " has the encoding " + encoding +
                    "; a shard must have UTF8");
  return {};
}

Status check_one_move(const ShardMap& map, const std::string& shardlet_name, const std::string& to,
                      MoveMode mode, std::vector<std::string>& reasons, Deadline deadline) {
  const auto shardlet = map.shardlet(shardlet_name);
  const Shard* target_shard = map.shard_named(to);
  if (!shardlet || target_shard == nullptr || shardlet->shard == target_shard->id) return {};
  std::vector<shardmap::Table> tables;
  for (const shardmap::Table* table : map.tables_of(shardlet->map)) tables.push_back(*table);
  KG_TRY(const auto source, look_at(*map.shard(shardlet->shard), deadline));
  KG_TRY(const auto target, look_at(*target_shard, deadline));
  KG_TRY(const auto moved,
         describe(*source, *map.mapping(shardlet->map), tables, ranges_of(*shardlet), deadline));
  KG_TRY(const auto found, reasons_against(*source, *target, moved, mode, false, deadline));
  reasons.insert(reasons.end(), found.begin(), found.end());
  return {};
}

}  // namespace

Result<std::vector<std::string>> reasons_against(PgSession& source, PgSession& target,
                                                 const std::vector<MovedTable>& tables, MoveMode mode,
                                                 bool rows_expected, Deadline deadline) {
  std::vector<std::string> reasons;
  if (mode == MoveMode::kOnline) KG_CHECK(check_servers(source, target, reasons, deadline));
  KG_CHECK(check_encoding(source, "source", reasons, deadline));
  KG_CHECK(check_encoding(target, "target", reasons, deadline));
  for (const MovedTable& table : tables) {
    KG_TRY(const auto here, shape_of(source, table.name, deadline));
    KG_TRY(const auto there, shape_of(target, table.name, deadline));
    compare_shapes(table, here, there, reasons);
    for (const Leaf& leaf : table.leaves) {
      if (mode == MoveMode::kOnline && !leaf.can_be_full) {
        reasons.push_back("table " + leaf.name +
                          " has no primary key and a column whose type has no equality: its "
                          "rows cannot be followed");
      }
    }
    for (const auto* relations : {&table.parents, &table.leaves}) {
      for (const Leaf& relation : *relations) {
        if (!relation.not_moved.empty()) reasons.push_back("table " + relation.name + " " + relation.not_moved);
        if (mode == MoveMode::kOnline && !relation.not_followed.empty())
          reasons.push_back("table " + relation.name + " " + relation.not_followed +
                            ": its changes cannot be followed (mode = offline moves it)");
      }
    }
    if (there.empty() || rows_expected) continue;
    KG_TRY(const auto rows,
           target.query("SELECT EXISTS (SELECT FROM " + table.name + " WHERE " + table.inside + ")", {},
                        deadline));
    if (rows[0][0] == "t") {
      reasons.push_back("table " + table.table.display() + " on the target has rows of the shardlet already");
    }
  }
  KG_TRY(const DiskSpace disk, look_at_disk(source, target, tables, deadline));
  if (disk.free && *disk.free < disk.needed + kDiskReserve) {
    reasons.push_back("the target has " + bytes_text(*disk.free) + " free at " + disk.where +
                      ", and the rows need about " + bytes_text(disk.needed) + " and a reserve of " +
                      bytes_text(kDiskReserve));
  }
  return reasons;
}

Error refusal(const std::vector<std::string>& reasons) {
  if (reasons.size() == 1) return {"55000", "the move cannot start: " + reasons[0], "", "", 0};
  std::string lines;
  for (const std::string& reason : reasons) lines += (lines.empty() ? "" : "\n") + reason;
  return {"55000", "the move cannot start, for " + std::to_string(reasons.size()) + " reasons", lines, "", 0};
}

Status check_shards(const ShardMap& map, const JobRequest& request, Deadline deadline) {
  std::vector<std::string> reasons;
  const bool moves = request.type == JobType::kMove || request.type == JobType::kMerge ||
                     (request.type == JobType::kSplit && !request.to.empty());
  if (!moves) return {};
  for (const std::string& name : request.shardlets)
    KG_CHECK(check_one_move(map, name, request.to, request.mode, reasons, deadline));
  if (!reasons.empty()) return fail(refusal(reasons));
  return {};
}

}  // namespace kintsugi::splitmerge
