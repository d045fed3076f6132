// One attempt at what wants locks that others may hold for long: their writers queue behind us meanwhile. For
// shardmap/ and splitmerge/.
#pragma once

#include <chrono>
#include <string>

#include "shardmap/pg_session.h"

namespace kintsugi::shardmap {

// The statements, a transaction of their own that is on the disk then; sent as one text, so that nobody waits
// for round trips. False: the locks were not to be had within `lock_timeout`, and nothing has changed.
Result<bool> attempt_with_locks(PgSession& session, const std::string& statements,
                                std::chrono::milliseconds lock_timeout, Deadline deadline);

}  // namespace kintsugi::shardmap
