// The fence: triggers on the source that refuse every write in the moving range, whoever makes it, from the
// moment that they are committed. Private to splitmerge/.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "shardmap/pg_session.h"
#include "splitmerge/moved_table.h"

namespace kintsugi::splitmerge {

struct FenceSpec {
  std::uint64_t job = 0;
  const shardmap::Mapping* mapping = nullptr;
  std::string shardlet;
  std::vector<shardmap::KeyRange> ranges;
  const std::vector<MovedTable>* tables = nullptr;
  std::string also;  // a statement that is committed together with it, or after it; empty: none
};

// A predecessor's, for this very range.
Result<bool> fence_stands(shardmap::PgSession& source, const FenceSpec& fence, Deadline deadline);

// One attempt. False: the locks were not to be had within `lock_timeout`, and nothing has changed. True also
// when it stands already. Writers in flight have ended when it returns, prepared transactions among them.
Result<bool> raise_fence(shardmap::PgSession& source, const FenceSpec& fence,
                         std::chrono::milliseconds lock_timeout, Deadline deadline);

// Which of its tables somebody has opened with DISABLE TRIGGER since it was raised, or with ENABLE TRIGGER for
// sessions that replicate; empty: none.
Result<std::string> opened_by_others(shardmap::PgSession& source, std::uint64_t job,
                                     const std::vector<MovedTable>& tables, Deadline deadline);

// A statement after which a session may delete behind the fence of this job.
std::string passes_fence(std::uint64_t job);

// The move is decided: routers in careful mode may trust the shard's local map again. The triggers stay.
Status settle_fence(shardmap::PgSession& source, std::uint64_t job, Deadline deadline);

// One attempt to make it let everything through, without waiting for readers as drop_fence() does; false: on
// some table it still stands. raise_fence() makes it stand again.
Result<bool> open_fence(shardmap::PgSession& source, std::uint64_t job, std::chrono::milliseconds lock_timeout,
                        Deadline deadline);

// One attempt to take it away, a table at a time; false: some of it still stands. Fine when there is none.
Result<bool> drop_fence(shardmap::PgSession& source, std::uint64_t job, std::chrono::milliseconds lock_timeout,
                        Deadline deadline);

// The guard: triggers on the target that refuse every write in the arriving range but the move's own, as far as
// statements make it; what triggers of their own do there, foreign keys' among them, passes. One attempt, as
// above. Writers in flight have ended when it returns.
Result<bool> raise_guard(shardmap::PgSession& target, const FenceSpec& guard,
                         std::chrono::milliseconds lock_timeout, Deadline deadline);

// It lets everything through, without waiting for anybody or for the disk; the triggers stay, for drop_fence(),
// before which it is to be opened again.
Status open_guard(shardmap::PgSession& target, std::uint64_t job, Deadline deadline);

}  // namespace kintsugi::splitmerge
