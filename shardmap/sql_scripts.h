// The schemas of sql/, built into the program: script n brings a database from version n to n + 1. Private to
// shardmap/.
#pragma once

#include <string_view>
#include <vector>

namespace kintsugi::shardmap::sql_scripts {

const std::vector<std::string_view>& store_sqlite();
const std::vector<std::string_view>& store_postgres();
const std::vector<std::string_view>& shard();

}  // namespace kintsugi::shardmap::sql_scripts
