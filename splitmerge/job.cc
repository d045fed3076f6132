#include "splitmerge/job.h"

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "shardmap/key_json.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::bad_json;
using shardmap::Bound;
using shardmap::Json;
using shardmap::JsonObject;

constexpr std::array<std::string_view, 6> kTypes{"move", "split", "merge", "drain", "rebalance", "provision"};
constexpr std::array<std::string_view, 10> kStates{"queued", "preparing", "copying",  "catching_up",
                                                   "fenced", "committed", "cleaning", "done",
                                                   "failed", "canceled"};
constexpr std::array<std::string_view, 2> kModes{"online", "offline"};

template <class Value, std::size_t n>
std::optional<Value> named(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i) {
    if (names[i] == name) return static_cast<Value>(i);
  }
  return std::nullopt;
}

// A number stands for its text: 500 is "500".
Json as_texts(const Json& array) {
  Json texts = Json::array();
  for (const Json& value : array) texts.push_back(value.is_number() ? Json(value.dump()) : value);
  return texts;
}

std::vector<std::string> texts_member(JsonObject& object, const char* member) {
  const Json* json = object.get(member);
  if (json == nullptr) return {};
  auto texts = shardmap::texts_from_json(*json);
  if (texts) return *std::move(texts);
  object.complain(std::string("has a \"") + member + "\" that is not a list of strings");
  return {};
}

// "50MB" and a plain number of bytes, both a second.
std::optional<std::uint64_t> rate_of(const Json& json) {
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  return json.is_string() ? rate_named(json.get_ref<const std::string&>()) : std::nullopt;
}

void read_shardlets(JsonObject& object, JobRequest& request) {
  if (request.type == JobType::kMerge) {
    request.shardlets = texts_member(object, "shardlets");
    request.into.push_back(object.text_if("into").value_or(""));
    if (request.into[0].empty()) request.into.clear();
  } else {
    request.shardlets.push_back(object.text("shardlet"));
    if (request.type == JobType::kSplit) request.into = texts_member(object, "into");
  }
}

void read_at(JsonObject& object, JobRequest& request) {
  const Json* at = object.get("at");
  if (at == nullptr || at->is_null()) return;
  auto bound = at->is_array() ? shardmap::bound_from_json(as_texts(*at)) : bad_json("");
  if (bound) {
    request.at = *std::move(bound);
  } else {
    object.complain("has an \"at\" that is not a list of key values");
  }
}

Json request_json(const JobRequest& request) {
  Json json = Json::object();
  json["type"] = std::string(name_of(request.type));
  switch (request.type) {
    case JobType::kMove:
      json["shardlet"] = request.shardlets.empty() ? "" : request.shardlets[0];
      json["to"] = request.to;
      break;
    case JobType::kSplit:
      json["shardlet"] = request.shardlets.empty() ? "" : request.shardlets[0];
      if (request.at) json["at"] = shardmap::to_json(*request.at);
      if (!request.into.empty()) json["into"] = request.into;
      if (!request.move.empty()) json["move"] = request.move;
      if (!request.to.empty()) json["to"] = request.to;
      break;
    case JobType::kMerge:
      json["shardlets"] = request.shardlets;
      if (!request.into.empty()) json["into"] = request.into[0];
      if (!request.to.empty()) json["to"] = request.to;
      break;
    case JobType::kDrain:
    case JobType::kProvision: json["shard"] = request.shard; break;
    case JobType::kRebalance:
      if (!request.map.empty()) json["map"] = request.map;
      if (request.by_rows) json["by"] = "rows";
      break;
  }
  if (request.type != JobType::kProvision) json["mode"] = std::string(name_of(request.mode));
  if (request.max_rate > 0) json["max_rate"] = request.max_rate;
  return json;
}

}  // namespace

std::string_view name_of(JobType type) {
  return kTypes[static_cast<std::size_t>(type)];
}
std::optional<JobType> job_type_named(std::string_view name) {
  return named<JobType>(kTypes, name);
}
std::string_view name_of(JobState state) {
  return kStates[static_cast<std::size_t>(state)];
}
std::optional<JobState> job_state_named(std::string_view name) {
  return named<JobState>(kStates, name);
}
bool is_final(JobState state) {
  return state == JobState::kDone || state == JobState::kFailed || state == JobState::kCanceled;
}
std::string_view name_of(MoveMode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}
std::optional<MoveMode> move_mode_named(std::string_view name) {
  return named<MoveMode>(kModes, name);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 10240 && unit + 1 < std::size(kUnits); ++unit) bytes = (bytes + 512) / 1024;
  return std::to_string(bytes) + " " + kUnits[unit];
}

std::optional<std::uint64_t> rate_named(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"", 0}, {"B", 0}, {"kB", 10}, {"MB", 20}, {"GB", 30}};
  if (text.ends_with("/s")) text.remove_suffix(2);
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, shift] : kUnits) {
    if (unit == name && number <= std::numeric_limits<std::uint64_t>::max() >> shift) return number << shift;
  }
  return std::nullopt;
}

std::string target_of(const JobRequest& request) {
  std::string text;
  for (const std::string& name : request.shardlets) text += (text.empty() ? "" : ", ") + name;
  if (text.empty()) text = request.shard.empty() ? request.map : request.shard;
  if (text.empty()) text = "all maps";
  if (!request.to.empty()) text += " to " + request.to;
  return text;
}

Result<JobRequest> job_request_from_json(std::string_view text) {
  KG_TRY(const Json json, shardmap::parse_json(text));
  JsonObject object(json, "a job");
  JobRequest request;
  request.type = object.word("type", job_type_named);
  if (!object.ok()) return fail(object.finish().error());
  switch (request.type) {
    case JobType::kMove:
      read_shardlets(object, request);
      request.to = object.text("to");
      break;
    case JobType::kSplit:
      read_shardlets(object, request);
      read_at(object, request);
      request.move = object.text_if("move").value_or("");
      request.to = object.text_if("to").value_or("");
      break;
    case JobType::kMerge:
      read_shardlets(object, request);
      request.to = object.text_if("to").value_or("");
      break;
    case JobType::kDrain:
    case JobType::kProvision: request.shard = object.text("shard"); break;
    case JobType::kRebalance:
      request.map = object.text_if("map").value_or("");
      if (const auto by = object.text_if("by")) {
        request.by_rows = *by == "rows";
        if (!request.by_rows && *by != "bytes")
          object.complain("has a \"by\" that is neither \"rows\" nor \"bytes\"");
      }
      break;
  }
  if (const auto mode = object.word_if("mode", move_mode_named)) request.mode = *mode;
  if (const Json* rate = object.get("max_rate")) {
    if (const auto bytes = rate_of(*rate)) {
      request.max_rate = *bytes;
    } else {
      object.complain("has a \"max_rate\" that is no rate like \"50MB/s\"");
    }
  }
  KG_CHECK(object.finish());
  return request;
}

std::string to_json(const JobInfo& job) {
  Json json = Json::object();
  json["id"] = job.id;
  json.update(request_json(job.request));
  json["target"] = target_of(job.request);
  json["state"] = std::string(name_of(job.state));
  Json progress = Json::object();
  progress["rows"] = job.progress.rows;
  progress["bytes"] = job.progress.bytes;
  progress["total"] = job.progress.total;
  progress["eta_s"] = job.progress.eta_s ? Json(*job.progress.eta_s) : Json();
  json["progress"] = progress;
  json["error"] = Json();
  if (job.error) {
    Json error = Json::object();
    error["sqlstate"] = job.error->sqlstate;
    error["message"] = job.error->message;
    error["detail"] = job.error->detail;
    error["hint"] = job.error->hint;
    json["error"] = error;
  }
  json["started"] = job.started.empty() ? Json() : Json(job.started);
  json["ended"] = job.ended.empty() ? Json() : Json(job.ended);
  json["canceling"] = job.canceling;
  json["router"] = job.router;
  if (job.parent != 0) json["parent"] = job.parent;
  if (!job.children.empty()) json["children"] = job.children;
  Json history = Json::array();
  for (const JobEvent& event : job.history) {
    Json each = Json::object();
    each["at"] = event.at;
    each["what"] = event.what;
    history.push_back(each);
  }
  json["history"] = history;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kintsugi::splitmerge
