// PostgreSQL's own logical replication in a move's service: publication and slot on the source, subscription on
// the target. Everything bears the job's name; making and dropping may be done twice. Private to splitmerge/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "splitmerge/job_record.h"
#include "splitmerge/moved_table.h"
#include "splitmerge/shard_link.h"

namespace kintsugi::splitmerge {

// The relations whose rows must be identified by all their columns while they are followed.
std::vector<PriorIdentity> identities_to_change(const std::vector<MovedTable>& tables);
// One attempt each, under `lock_timeout`; false: a lock was not to be had.
Result<bool> set_identities_full(shardmap::PgSession& source, const std::vector<PriorIdentity>& identities,
                                 std::chrono::milliseconds lock_timeout, Deadline deadline);
Result<bool> restore_identities(shardmap::PgSession& source, const std::vector<PriorIdentity>& identities,
                                std::chrono::milliseconds lock_timeout, Deadline deadline);

Status make_publication(shardmap::PgSession& source, const std::string& name, std::uint64_t job,
                        const std::vector<MovedTable>& tables, Deadline deadline);
Status drop_publication(shardmap::PgSession& source, const std::string& name, Deadline deadline);

// A slot and the snapshot of its beginning, which is good as long as this object.
struct SlotSnapshot {
  RawLink link;
  std::string snapshot;
};
Result<SlotSnapshot> make_slot(const shardmap::Shard& source, const std::string& name, JobLease& lease,
                               const RawLink::GoOn& go_on, Deadline deadline);
// Another one that begins where that one does; to be made before anybody reads from it.
Status copy_slot(shardmap::PgSession& source, const std::string& name, const std::string& copy,
                 Deadline deadline);
// What the slot is called that tells which rows have changed.
[[nodiscard]] std::string check_slot_of(const std::string& name);
// Ends who reads from it.
Status end_reader(shardmap::PgSession& source, const std::string& slot, Deadline deadline);
// Ends who reads from it, then drops it; fine when there is none.
Status drop_slot(shardmap::PgSession& source, const std::string& name, Deadline deadline);

Status make_subscription(shardmap::PgSession& target, const std::string& name, const std::string& source_dsn,
                         Deadline deadline);
// Without touching the slot: the source may be away.
Status drop_subscription(shardmap::PgSession& target, const std::string& name, Deadline deadline);

// What of it is not any more as it was made, by somebody's hand or the source's limits; empty: all is there.
struct Following {
  std::string name;
  std::string source, target;  // the shards' names
  std::string source_dsn;      // as the map has it
};
Result<std::string> lost_of(shardmap::PgSession& source, shardmap::PgSession& target,
                            const Following& following, Deadline deadline);

// The mark was written on the source in a transaction of its own or in the fence's: whether it has arrived, and
// with it everything that was committed before. What has arrived is not on the target's disk yet.
Result<bool> has_arrived(shardmap::PgSession& target, std::uint64_t job, const std::string& mark,
                         Deadline deadline);
// SQL that writes the mark.
std::string mark_statement(std::uint64_t job, const std::string& mark);
Status drop_marks(shardmap::PgSession& shard, std::uint64_t job, Deadline deadline);
// Everything that was applied here is on disk when this returns.
Status flush(shardmap::PgSession& target, Deadline deadline);

// The target's sequences are set to no less than the source's, so that what they give next is free there.
struct SequenceValue {
  std::string name;  // quoted, with its schema
  std::string last;
};
Result<std::vector<SequenceValue>> sequences_of(shardmap::PgSession& source,
                                                const std::vector<MovedTable>& tables, Deadline deadline);
Status carry_sequences(shardmap::PgSession& target, const std::vector<SequenceValue>& values,
                       Deadline deadline);

}  // namespace kintsugi::splitmerge
