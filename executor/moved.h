// What the fence of a move says when it refuses a write (sql/shard/0002.sql, docs/life_of_a_move.md): the shard
// has done nothing of the statement, and another shard has its rows now or will have them in a moment.
#pragma once

#include <string_view>

namespace kintsugi::executor {

inline constexpr std::string_view kMovedState = "40001";
inline constexpr std::string_view kMovedMessage = "kintsugi: shardlet moved";

[[nodiscard]] inline bool is_moved(std::string_view sqlstate, std::string_view message) {
  return sqlstate == kMovedState && message == kMovedMessage;
}

}  // namespace kintsugi::executor
