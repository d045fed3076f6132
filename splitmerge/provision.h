// A new shard becomes like the others: their schema, their functions and types, the rows of the replicated
// tables; then it may be given shardlets. Private to splitmerge/.
#pragma once

#include "shardmap/map_change.h"
#include "splitmerge/job_lease.h"

namespace kintsugi::splitmerge {

// preparing or copying -> `last`. May be done again at any point.
Status provision(shardmap::MapStore& store, shardmap::MapChange& map, JobLease& lease,
                 const JobLease::Change& last);

}  // namespace kintsugi::splitmerge
