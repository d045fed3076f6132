// The SHOW commands: what there is, as rows for SQL and as objects for JSON. Reads the map that the router
// knows, so that it works while the store is away; only routers and the audit trail are read from the store.
// Private to admin/commands/.
#pragma once

#include <functional>

#include "admin/commands/command.h"
#include "admin/commands/command_result.h"
#include "admin/commands/surroundings.h"
#include "base/deadline.h"
#include "base/error.h"

namespace kintsugi::admin {

using OpenStore = std::function<Result<shardmap::MapStore*>()>;

// Of what show() answers: SQL clients ask for them before they run it.
[[nodiscard]] std::vector<ResultColumn> columns_of(const command::Show& request);

Result<CommandResult> show(const command::Show& request, Face face, const Surroundings& surroundings,
                           const OpenStore& store, Deadline deadline);

// A bound as JSON: [1000], ["MINVALUE"], a value a key column, numbers as numbers.
[[nodiscard]] Json bound_json(const shardmap::KeyTypes& types, const shardmap::Bound& bound);

[[nodiscard]] std::vector<ResultColumn> lookup_columns();

// One row: where the key is.
Result<CommandResult> lookup(const command::Lookup& request, Face face, const shardmap::ShardMap& map);

}  // namespace kintsugi::admin
