#include "admin/commands/command_result.h"

namespace kintsugi::admin {

std::optional<std::string> CommandResult::value(const Json& object, const ResultColumn& column) const {
  const auto found = object.find(column.member.empty() ? column.name : column.member);
  if (found == object.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_boolean()) return found->get<bool>() ? "t" : "f";
  if (found->is_array()) {
    std::string joined;
    for (const Json& item : *found)
      joined += (joined.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
    return joined;
  }
  return found->dump();
}

}  // namespace kintsugi::admin
