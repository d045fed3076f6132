// Reads a shard's schema into a Catalog: a few queries on the system catalogues. Blocking; one thread at a
// time.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "planner/catalog.h"

namespace kintsugi::shardmap {
class PgSession;
}

namespace kintsugi::executor {

Result<planner::CatalogPtr> read_catalog(shardmap::PgSession& session, Deadline deadline);

// A text that is another one after any definition of tables, columns, views, functions, types or schemas.
Result<std::string> schema_mark(shardmap::PgSession& session, Deadline deadline);

}  // namespace kintsugi::executor
