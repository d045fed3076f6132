#include "splitmerge/row_delete.h"

#include "splitmerge/fence.h"
#include "splitmerge/follow.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::PgSession;

constexpr std::chrono::milliseconds kConnectDeadline{15000};

constexpr const char* kLockNotToBeHad = "55P03";

// The places of the rows are read in one session and the rows deleted in another: nothing moves them meanwhile,
// and no batch has to step over what the batches before it have deleted. Whoever wants the table for himself
// waits for the one and has the other wait behind him: kLockNotToBeHad, and both let him through.
Result<std::uint64_t> delete_leaf(PgSession& reader, PgSession& writer, const std::string& leaf,
                                  const std::string& inside, const MoveTuning& tuning, JobLease& lease) {
  const Deadline never = Deadline::never();
  std::uint64_t count = 0;
  const Status done = reader.transaction(
      [&]() -> Status {
        KG_CHECK(reader.run(
            "DECLARE kintsugi_rows NO SCROLL CURSOR FOR SELECT ctid FROM ONLY " + leaf + " WHERE " + inside, {},
            never));
        for (;;) {
          KG_CHECK(lease.go_on(false));
          KG_TRY(const auto rows,
                 reader.query("FETCH " + std::to_string(tuning.clean_batch_rows) + " FROM kintsugi_rows", {},
                              never));
          if (rows.empty()) return {};
          std::string places;
          for (const auto& row : rows) places += (places.empty() ? "\"" : ",\"") + *row[0] + "\"";
          KG_TRY(const auto gone,
                 writer.query("WITH gone AS (DELETE FROM ONLY " + leaf + " WHERE ctid = ANY ('{" + places +
                                  "}'::tid[]) RETURNING 1) SELECT count(*) FROM gone",
                              {}, never));
          if (gone.at(0).at(0) != std::to_string(rows.size())) {
            return fail(
                "55000", "rows of table " + leaf + " that have moved cannot be deleted",
                "Look for a trigger or a rule of the table that keeps them (ENABLE ALWAYS or REPLICA).");
          }
          count += rows.size();
          lease.pause(tuning.clean_pause);
        }
      },
      never);
  if (!done) return fail(done.error());
  return count;
}

Result<std::uint64_t> delete_all_of(PgSession& reader, PgSession& writer, const std::string& leaf,
                                    const std::string& inside, const MoveTuning& tuning, JobLease& lease) {
  for (;;) {
    auto done = delete_leaf(reader, writer, leaf, inside, tuning, lease);
    if (done || done.error().sqlstate != kLockNotToBeHad) return done;
    KG_CHECK(lease.go_on(false));
  }
}

}  // namespace

Result<std::uint64_t> delete_rows(const shardmap::Shard& shard, const std::string& name,
                                  const std::vector<MovedTable>& tables, const MoveTuning& tuning,
                                  JobLease& lease) {
  KG_TRY(const auto reader, open_session(shard, name, lease, Deadline::in(kConnectDeadline)));
  KG_TRY(const auto writer, open_session(shard, name, lease, Deadline::in(kConnectDeadline)));
  KG_CHECK(
      writer->script("SET synchronous_commit = off; SET lock_timeout = '100ms'; " + passes_fence(lease.id()),
                     Deadline::in(kConnectDeadline)));
  std::uint64_t count = 0;
  for (const MovedTable& table : tables) {
    for (const Leaf& leaf : table.leaves) {
      KG_TRY(const std::uint64_t some, delete_all_of(*reader, *writer, leaf.name, table.inside, tuning, lease));
      count += some;
    }
  }
  // They are not seen again, should the server fail: somebody is about to be told that they are gone.
  KG_CHECK(flush(*writer, Deadline::in(kConnectDeadline)));
  return count;
}

}  // namespace kintsugi::splitmerge
