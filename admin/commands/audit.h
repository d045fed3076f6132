// The audit trail: a note in the map store for every change that was asked for: who, when, what, and how it
// ended. Bounded: the oldest go. Belongs to the store's thread.
#pragma once

#include <string>
#include <vector>

#include "admin/commands/command.h"
#include "admin/commands/command_result.h"
#include "shardmap/map_store.h"

namespace kintsugi::admin {

inline constexpr std::size_t kAuditKept = 2000;

// Written before the change is made, with the result "begun"; the answer is the entry's key. KG006 when that
// cannot be written: what cannot be audited is not done.
Result<std::string> begin_audit(shardmap::MapStore& store, const Actor& actor, const std::string& router,
                                const std::string& what, Deadline deadline);

// How it ended; `error` null: well.
void end_audit(shardmap::MapStore& store, const std::string& key, const Actor& actor, const std::string& router,
               const std::string& what, const Error* error, std::uint64_t epoch, Deadline deadline);

// For what begins and ends elsewhere: one entry that says how it ended, and the log; `store` null: the log
// alone. Of what was not permitted (42501) at most a few dozen entries a minute, so that nobody without rights
// can push the others out of the trail.
void write_audit(shardmap::MapStore* store, const Actor& actor, const std::string& router,
                 const std::string& what, const Error* error, Deadline deadline);

// {"at", "who", "role", "face", "router", "what", "result", "epoch"}, the newest first.
Result<std::vector<Json>> audit_trail(shardmap::MapStore& store, Deadline deadline);

}  // namespace kintsugi::admin
