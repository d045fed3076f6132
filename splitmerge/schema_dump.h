// A database's schema as SQL, by PostgreSQL's own pg_dump and psql: they know every kind of object. Blocks; any
// thread. Passwords go by the environment, never by the command line. Private to splitmerge/.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"

namespace kintsugi::splitmerge {

// Everything but rows, schema `kintsugi`, these tables, publications and subscriptions.
Result<std::string> dump_schema(const std::string& dsn, const std::vector<std::string>& without_tables,
                                Deadline deadline);

// These relations alone (quoted, with their schemas), with what belongs to them.
Result<std::string> dump_tables(const std::string& dsn, const std::vector<std::string>& relations,
                                Deadline deadline);

// All of it in one transaction.
Status apply_schema(const std::string& dsn, const std::string& sql, Deadline deadline);

// Lines that only one of two such dumps has, each with " (on NAME only)" behind it. The numbers that sequences
// count by differ between shards, and what a move has on a shard while it runs is no part of its schema.
std::vector<std::string> differences_of(const std::string& one, const std::string& one_name,
                                        const std::string& other, const std::string& other_name);

}  // namespace kintsugi::splitmerge
