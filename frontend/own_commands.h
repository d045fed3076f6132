// Kintsugi's own statements as commands for the command layer, and the layer's answers as messages. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/commands/command.h"
#include "admin/commands/command_result.h"
#include "parser/statement.h"
#include "wire/server_messages.h"

namespace kintsugi::frontend {

// Whether the command layer runs it: the statements about shards, maps, shardlets and jobs, the SHOWs that are
// ours, and ALTER TABLE ... SHARD BY | REPLICATED. CREATE TABLE ... SHARD BY is DDL, and not this.
[[nodiscard]] bool is_command(const parser::Statement& statement);

// `schema` is where a table without one is looked for. 22023 and 42704 for what can be read and means nothing.
Result<admin::Command> command_of(const parser::Statement& statement, std::string_view schema);

// `columns` are admin::columns_of(command) before it has run. `formats` as in a Bind: none, one for all, or one
// a column.
void append_columns(std::string& out, std::span<const admin::ResultColumn> columns,
                    std::span<const std::int16_t> formats);
void append_rows(std::string& out, const admin::CommandResult& result, std::span<const std::int16_t> formats);

}  // namespace kintsugi::frontend
