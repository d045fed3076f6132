#include "admin/commands/epoch_condition.h"

#include <algorithm>

namespace kintsugi::admin {

Status EpochCondition::check(std::uint64_t epoch) const {
  const std::string now = std::to_string(epoch);
  const auto has = [&now](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), now) != list.end();
  };
  if ((!one_of || has(wanted)) && !has(unwanted)) return {};
  std::string asked;
  for (const std::string& each : one_of ? wanted : unwanted) asked += (asked.empty() ? "" : ", ") + each;
  // Not 40001: nobody is to try this again.
  return fail(kEpochMoved,
              "the shard map is at epoch " + now + ", and this was asked for " +
                  (!one_of          ? "any but epoch " + asked
                   : wanted.empty() ? "no epoch that a map can have"
                                    : "epoch " + asked),
              "Read it again, and decide again.");
}

}  // namespace kintsugi::admin
