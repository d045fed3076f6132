// Reading JSON that somebody else wrote: each read is an error value, never an exception, and says which
// member. For shardmap/ and splitmerge/.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kintsugi::shardmap {

using Json = nlohmann::ordered_json;

inline tl::unexpected<Error> bad_json(std::string message) {
  return fail(sqlstate::kInvalidParameter, std::move(message));
}

inline Result<Json> parse_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_json("this is not JSON");
  return json;
}

// Takes the members of one object; the first problem stays, and `finish()` also refuses what nobody asked for.
class JsonObject {
 public:
  JsonObject(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) complain("is not an object");
  }

  [[nodiscard]] bool has(const char* member) const { return json_.is_object() && json_.contains(member); }

  const Json* get(const char* member) {
    asked_.insert(member);
    return has(member) ? &json_[member] : nullptr;
  }
  const Json* need(const char* member) {
    const Json* found = get(member);
    if (found == nullptr) complain(std::string("has no \"") + member + "\"");
    return found;
  }
  std::string text(const char* member) {
    const Json* found = need(member);
    if (found == nullptr) return {};
    if (!found->is_string()) {
      complain(std::string("has a \"") + member + "\" that is not a string");
      return {};
    }
    return found->get<std::string>();
  }
  std::optional<std::string> text_if(const char* member) {
    if (!has(member)) return std::nullopt;
    return text(member);
  }
  // A word of a fixed set, read by `named`.
  template <class Named>
  auto word(const char* member, Named named) -> typename decltype(named(""))::value_type {
    const std::string read = text(member);
    const auto value = named(read);
    if (!value) complain("has the unknown " + std::string(member) + " \"" + read + "\"");
    return value.value_or(typename decltype(named(""))::value_type{});
  }
  template <class Named>
  auto word_if(const char* member, Named named) -> decltype(named("")) {
    if (!has(member)) return std::nullopt;
    return word(member, named);
  }
  void complain(std::string_view what) {
    if (problem_.empty()) problem_ = where_ + " " + std::string(what);
  }
  [[nodiscard]] bool ok() const { return problem_.empty(); }
  Status finish() {
    if (json_.is_object()) {
      for (const auto& [member, value] : json_.items()) {
        if (!asked_.contains(member)) complain("has the unknown member \"" + member + "\"");
      }
    }
    if (!problem_.empty()) return bad_json(problem_);
    return {};
  }

 private:
  const Json& json_;
  std::string where_;
  std::string problem_;
  std::set<std::string> asked_;
};

}  // namespace kintsugi::shardmap
