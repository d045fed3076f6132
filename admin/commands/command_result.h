// What a command answers, for every face: rows with named columns, each of which is also the member of a JSON
// object. A plain value.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::admin {

using Json = nlohmann::ordered_json;

struct ResultColumn {
  std::string name;         // as SQL shows it
  std::string member = {};  // of the object, where it is another
  std::uint32_t type_oid = 25;
};

struct CommandResult {
  std::string tag;
  std::vector<ResultColumn> columns;  // none: the command answers with its tag alone
  std::vector<Json> objects;          // one a row
  std::string next;                   // of a list that goes on: where the next page starts
  std::uint64_t epoch = 0;            // of the map that was looked at or made
  std::vector<std::string> notices;   // done, but there is something to know
  std::string text;                   // Export: the file

  // A value as SQL shows it; none is NULL.
  [[nodiscard]] std::optional<std::string> value(const Json& object, const ResultColumn& column) const;
};

}  // namespace kintsugi::admin
