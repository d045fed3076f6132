#include "admin/request_body.h"

#include "shardmap/key_json.h"

namespace kintsugi::admin {
namespace {

using shardmap::Bound;
using shardmap::BoundColumn;

constexpr int kDepthMax = 16;
constexpr std::size_t kItemsMax = 100000;

// A parser that is recursive is not handed a tower of brackets.
bool too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthMax) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// A number that is not whole, or larger than 64 bits, stands as the text that it was, {"value": "0.10"}: keys
// are not rounded.
class ExactParser : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  explicit ExactParser(Json& into) : json_sax_dom_parser(into, false) {}
  bool number_float(double /*rounded*/, const std::string& text) {
    std::string name = "value", value = text;
    return start_object(1) && key(name) && string(value) && end_object();
  }
};

}  // namespace

Result<RequestBody> RequestBody::read(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return RequestBody(Json::object());
  if (too_deep(text)) return fail(sqlstate::kInvalidParameter, "the body is nested too deeply");
  Json json;
  ExactParser parser(json);
  if (!Json::sax_parse(text, &parser)) return fail(sqlstate::kInvalidParameter, "the body is not JSON");
  if (!json.is_object()) return fail(sqlstate::kInvalidParameter, "the body is not a JSON object");
  return RequestBody(std::move(json));
}

void RequestBody::complain(const std::string& what, const std::string& hint) {
  if (!problem_.empty()) return;
  problem_ = what;
  hint_ = hint;
}

const Json* RequestBody::find(const char* member, bool needed) {
  asked_.insert(member);
  const auto found = json_.find(member);
  if (found != json_.end()) return &*found;
  if (needed) complain(std::string("the body has no \"") + member + "\"");
  return nullptr;
}

bool RequestBody::says_otherwise(const char* member, const Json& object) {
  const Json* found = find(member, false);
  return found != nullptr && (!object.contains(member) || *found != object[member]);
}

std::string RequestBody::text(const char* member) {
  const Json* found = find(member, true);
  if (found == nullptr) return {};
  if (found->is_string()) {
    const auto& value = found->get_ref<const std::string&>();
    if (!value.empty() && value.find('\0') == std::string::npos) return value;
  }
  complain(std::string("\"") + member + "\" is not a string with something in it");
  return {};
}

std::optional<std::string> RequestBody::text_if(const char* member) {
  if (find(member, false) == nullptr) return std::nullopt;
  return text(member);
}

std::optional<bool> RequestBody::truth_if(const char* member) {
  const Json* found = find(member, false);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) {
    complain(std::string("\"") + member + "\" is not true or false");
    return std::nullopt;
  }
  return found->get<bool>();
}

std::optional<int> RequestBody::number_if(const char* member, int least, int most) {
  const Json* found = find(member, false);
  if (found == nullptr) return std::nullopt;
  const bool good = found->is_number_integer() && *found >= least && *found <= most;
  if (good) return found->get<int>();
  complain(std::string("\"") + member + "\" is not a whole number from " + std::to_string(least) + " to " +
           std::to_string(most));
  return std::nullopt;
}

std::vector<std::string> RequestBody::texts(const char* member) {
  std::vector<std::string> list;
  const Json* found = find(member, true);
  if (found == nullptr) return list;
  if (!found->is_array() || found->empty() || found->size() > kItemsMax) {
    complain(std::string("\"") + member + "\" is not a list with something in it");
    return list;
  }
  for (const Json& item : *found) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      complain(std::string("\"") + member + "\" has an item that is not a string");
      return list;
    }
    list.push_back(item.get<std::string>());
  }
  return list;
}

std::vector<std::string> RequestBody::texts_if(const char* member) {
  return find(member, false) == nullptr ? std::vector<std::string>() : texts(member);
}

std::optional<std::string> RequestBody::value_text(const Json& json, const char* member) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>() ? "true" : "false";
  if (json.is_number()) return json.dump();
  if (json.is_object() && json.size() == 1 && json.contains("value") && json["value"].is_string()) {
    return json["value"].get<std::string>();
  }
  complain(std::string("\"") + member + "\" has a value that cannot be a key: " + json.dump().substr(0, 60));
  return std::nullopt;
}

Bound RequestBody::bound(const char* member) {
  Bound made;
  const Json* found = find(member, true);
  if (found == nullptr) return made;
  if (!found->is_array() || found->empty() || found->size() > shardmap::kKeyColumnsMax) {
    complain(std::string("\"") + member + "\" is not a list of one value a key column");
    return made;
  }
  for (const Json& item : *found) {
    if (item == "MINVALUE") {
      made.push_back(BoundColumn::min());
    } else if (item == "MAXVALUE") {
      made.push_back(BoundColumn::max());
    } else if (auto value = value_text(item, member)) {
      made.push_back(BoundColumn::value(std::move(*value)));
    }
  }
  return made;
}

Result<std::string> RequestBody::text_with_bound(const char* member) {
  const auto found = json_.find(member);
  if (found != json_.end() && !found->is_null()) {
    const Bound read = bound(member);
    if (!problem_.empty()) return fail(sqlstate::kInvalidParameter, problem_);
    json_[member] = shardmap::to_json(read);
  }
  return json_.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::vector<std::string>> RequestBody::keys(const char* member) {
  std::vector<std::vector<std::string>> made;
  const Json* found = find(member, true);
  if (found == nullptr) return made;
  if (!found->is_array() || found->empty() || found->size() > kItemsMax) {
    complain(std::string("\"") + member + "\" is not a list of keys");
    return made;
  }
  for (const Json& item : *found) {
    std::vector<std::string> key;
    if (item.is_array()) {
      for (const Json& column : item) {
        if (auto value = value_text(column, member)) key.push_back(std::move(*value));
      }
    } else if (auto value = value_text(item, member)) {
      key.push_back(std::move(*value));
    }
    made.push_back(std::move(key));
  }
  return made;
}

Status RequestBody::finish() {
  for (const auto& [member, value] : json_.items()) {
    if (!asked_.contains(member)) {
      complain("the body has the member \"" + member.substr(0, 60) + "\", which means nothing here");
    }
  }
  if (!problem_.empty()) return fail(sqlstate::kInvalidParameter, problem_, hint_);
  return {};
}

}  // namespace kintsugi::admin
