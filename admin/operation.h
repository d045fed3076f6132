// What the REST face can do: a table of operations. Requests are routed by it, /openapi.json is made of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/commands/command_layer.h"
#include "admin/shared_tokens.h"

namespace kintsugi::admin {

struct RestRequest {
  std::map<std::string, std::string> path;  // {"shard", "s1"}
  std::multimap<std::string, std::string> query;
  std::string_view body;
  Actor actor;
  CommandRun run;
  const Surroundings& surroundings;
  SharedTokens& users;
  CommandLayer& layer;

  [[nodiscard]] std::string in_query(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

struct RestAnswer {
  int status = 200;
  Json body;         // or
  std::string text;  // of type text/plain
  std::uint64_t epoch = 0;
  std::vector<std::string> notices;
};

struct Operation {
  std::string_view method;
  std::string_view path;  // "/v1/shards/{shard}"
  std::string_view id;    // "getShard"
  std::string_view summary;
  Role role = Role::kViewer;
  std::string_view body;    // the schema of the request's body; empty: none
  std::string_view answer;  // of the answer's
  int success = 200;
  bool list = false;                    // {"items": [answer], "next": ...}
  std::vector<std::string_view> query;  // its query parameters
  Result<RestAnswer> (*run)(RestRequest& request);
};

[[nodiscard]] const std::vector<Operation>& operations();

// What everybody may GET, without a token.
struct OpenPage {
  enum class What : std::uint8_t { kHealth, kReadiness, kMetrics, kConsole, kDescription };
  What what;
  std::string_view path;  // "/healthz"
  std::string_view id, summary;
  std::string_view type;      // of its content
  std::string_view schema;    // empty: the type says it all
  std::string_view not_well;  // what 503 means; empty: there is none
};
[[nodiscard]] const std::vector<OpenPage>& open_pages();
// The one at this path; null: none.
[[nodiscard]] const OpenPage* open_page(std::string_view path);

// A name as a segment of a path.
[[nodiscard]] std::string in_path(const std::string& name);

// The names of all its query parameters, those of a page among them.
[[nodiscard]] std::vector<std::string_view> parameters_in_query(const Operation& operation);

// Whether its answer is about the map, and has the map's epoch as its ETag. A job goes on while the epoch
// stays.
[[nodiscard]] bool has_epoch(const Operation& operation);

// The operation of a request, with what stands in its path's braces.
struct Routed {
  const Operation* operation = nullptr;  // null: none
  std::map<std::string, std::string> path;
  std::string allowed;  // methods of this path, when it has others
};
[[nodiscard]] Routed route(std::string_view method, std::string_view path);

}  // namespace kintsugi::admin
