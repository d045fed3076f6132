#include "admin/commands/meant.h"

#include "base/suggest.h"

namespace kintsugi::admin {
namespace {

constexpr std::size_t kNamesMax = 20'000;  // of the shardlets of a very large map only some

std::vector<std::string> names_of(std::string_view kind, const shardmap::ShardMap& map) {
  std::vector<std::string> names;
  if (kind == "shard")
    for (const shardmap::Shard* shard : map.shards()) names.push_back(shard->name);
  if (kind == "shard map")
    for (const shardmap::Mapping* mapping : map.mappings()) names.push_back(mapping->name());
  if (kind == "table")
    for (const shardmap::Table* table : map.tables()) {
      names.push_back(table->name);
      names.push_back(table->display());
    }
  if (kind == "shardlet")
    for (const shardmap::Mapping* mapping : map.mappings())
      for (const shardmap::ShardletView shardlet : mapping->entries()) {
        if (names.size() == kNamesMax) return names;
        names.emplace_back(shardlet.name());
      }
  return names;
}

}  // namespace

Error with_what_was_meant(Error error, const shardmap::ShardMap& map) {
  const std::size_t open = error.message.find(" \""), close = error.message.find("\" does not exist");
  if (error.sqlstate != sqlstate::kUndefinedObject || !error.hint.empty() || open == std::string::npos ||
      close == std::string::npos || close < open + 2)
    return error;
  const std::string name = error.message.substr(open + 2, close - open - 2);
  const std::string near = nearest(name, names_of(std::string_view(error.message).substr(0, open), map));
  if (near == name)
    error.hint = "A " + error.message.substr(0, open) + " of that name is in another map.";
  else if (!near.empty())
    error.hint = "Did you mean \"" + near + "\"?";
  return error;
}

}  // namespace kintsugi::admin
