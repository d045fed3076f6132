// The JSON object of a request, read member by member. The first problem stays; what nobody asked for is one as
// well, so that a misspelt member is not silently ignored. One thread, one request.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admin/commands/command_result.h"
#include "base/error.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::admin {

class RequestBody {
 public:
  // 22023 when the text is not a JSON object; an empty text is an empty object.
  static Result<RequestBody> read(std::string_view text);

  std::string text(const char* member);  // must be there
  std::optional<std::string> text_if(const char* member);
  std::optional<bool> truth_if(const char* member);
  std::optional<int> number_if(const char* member, int least, int most);
  std::vector<std::string> texts(const char* member);     // must be there
  std::vector<std::string> texts_if(const char* member);  // empty when it is not

  // ["MINVALUE"], [1000], ["a", {"value": "MINVALUE"}]: bare MINVALUE and MAXVALUE are bounds.
  shardmap::Bound bound(const char* member);
  // ["de", "fr"], or of several columns [["de", 1], ["fr", 2]].
  std::vector<std::vector<std::string>> keys(const char* member);

  // Where the member is there, the whole object as text with it as the map's files have bounds; for who reads
  // on.
  Result<std::string> text_with_bound(const char* member);

  [[nodiscard]] bool has(const char* member) const { return json_.contains(member); }
  // The member is there, and is not what it is in `object`.
  bool says_otherwise(const char* member, const Json& object);
  void complain(const std::string& what, const std::string& hint = {});
  // 22023 with the first problem, or what the object has and nobody asked for.
  Status finish();

 private:
  explicit RequestBody(Json json) : json_(std::move(json)) {}
  const Json* find(const char* member, bool needed);
  std::optional<std::string> value_text(const Json& json, const char* member);

  Json json_;
  std::set<std::string> asked_;
  std::string problem_, hint_;
};

}  // namespace kintsugi::admin
