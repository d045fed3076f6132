#include "splitmerge/job_record.h"

#include <chrono>
#include <ctime>

#include "shardmap/json.h"
#include "shardmap/key_json.h"

namespace kintsugi::splitmerge {
namespace {

using shardmap::Json;
using shardmap::JsonObject;
using shardmap::KeyRange;
using shardmap::Table;

constexpr std::size_t kHistoryMax = 200;

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : bytes) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

std::string unhex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  return out;
}

Json identities_json(const std::vector<PriorIdentity>& identities) {
  Json json = Json::array();
  for (const PriorIdentity& each : identities) json.push_back({each.relation, each.clause, each.number});
  return json;
}

std::vector<PriorIdentity> read_identities(const Json& json) {
  std::vector<PriorIdentity> identities;
  for (const Json& each : json)
    identities.push_back({each.at(0), each.at(1), each.size() > 2 ? each.at(2).get<std::string>() : ""});
  return identities;
}

Json table_json(const Table& table) {
  return {table.schema, table.name, table.map, shardmap::to_json(table.key)};
}

Table read_table(const Json& json) {
  Table table{json.at(0), json.at(1), shardmap::TableKind::kSharded, json.at(2), {}};
  for (const Json& column : json.at(3)) table.key.push_back(column);
  return table;
}

Json numbered_json(const std::vector<NumberedTable>& tables) {
  Json json = Json::array();
  for (const NumberedTable& each : tables) json.push_back({table_json(each.table), each.number});
  return json;
}

std::vector<NumberedTable> read_numbered(const Json& json) {
  std::vector<NumberedTable> tables;
  for (const Json& each : json) tables.push_back({read_table(each.at(0)), each.at(1)});
  return tables;
}

Json error_json(const Error& error) {
  return {
      {"sqlstate", error.sqlstate}, {"message", error.message}, {"detail", error.detail}, {"hint", error.hint}};
}

Error read_error(const Json& json) {
  return Error{json.at("sqlstate"), json.at("message"), json.at("detail"), json.at("hint"), 0};
}

Json leftovers_json(const std::vector<Leftover>& leftovers) {
  Json json = Json::array();
  for (const Leftover& each : leftovers)
    json.push_back({each.shard, each.triggers, identities_json(each.identities)});
  return json;
}

std::vector<Leftover> read_leftovers(const Json& json) {
  std::vector<Leftover> leftovers;
  for (const Json& each : json) leftovers.push_back({each.at(0), each.at(1), read_identities(each.at(2))});
  return leftovers;
}

Json work_json(const MoveWork& work) {
  Json json = Json::object();
  json["shardlet"] = work.shardlet;
  json["source"] = work.source;
  json["target"] = work.target;
  json["ranges"] = Json::array();
  for (const KeyRange& range : work.ranges) json["ranges"].push_back({hex(range.low), hex(range.high)});
  json["tables"] = Json::array();
  for (const Table& table : work.tables) json["tables"].push_back(table_json(table));
  json["here"] = numbered_json(work.here);
  json["there"] = numbered_json(work.there);
  json["prior"] = static_cast<int>(work.prior);
  json["identities"] = identities_json(work.identities);
  json["hidden"] = work.hidden;
  json["arrived"] = work.arrived;
  json["fenced"] = work.fenced;
  json["published"] = work.published;
  json["verified"] = work.verified;
  json["version"] = work.version;
  json["version_there"] = work.version_there;
  json["committed_at"] = work.committed_at;
  return json;
}

// These were written by us: what is not as it should be throws, and record_of() makes an error of it.
MoveWork read_work(const Json& json) {
  MoveWork work;
  work.shardlet = json.at("shardlet");
  work.source = json.at("source");
  work.target = json.at("target");
  for (const Json& range : json.at("ranges"))
    work.ranges.push_back({unhex(range.at(0).get<std::string>()), unhex(range.at(1).get<std::string>())});
  for (const Json& each : json.at("tables")) work.tables.push_back(read_table(each));
  if (json.contains("here")) work.here = read_numbered(json.at("here"));
  if (json.contains("there")) work.there = read_numbered(json.at("there"));
  work.prior = static_cast<shardmap::ShardletState>(json.at("prior").get<int>());
  work.identities = read_identities(json.at("identities"));
  work.hidden = json.at("hidden");
  work.arrived = json.at("arrived");
  work.fenced = json.at("fenced");
  work.published = json.at("published");
  work.verified = json.at("verified");
  work.version = json.value("version", "");
  work.version_there = json.value("version_there", "");
  work.committed_at = json.at("committed_at");
  return work;
}

void read_info(const Json& json, JobInfo& info) {
  info.id = json.at("id");
  info.state = job_state_named(json.at("state").get<std::string>()).value();
  const Json& progress = json.at("progress");
  info.progress.rows = progress.at("rows");
  info.progress.bytes = progress.at("bytes");
  info.progress.total = progress.at("total");
  if (progress.at("eta_s").is_number()) info.progress.eta_s = progress.at("eta_s").get<double>();
  if (const Json& error = json.at("error"); error.is_object()) info.error = read_error(error);
  if (json.at("started").is_string()) info.started = json.at("started");
  if (json.at("ended").is_string()) info.ended = json.at("ended");
  info.canceling = json.at("canceling");
  info.router = json.at("router");
  info.parent = json.value("parent", std::uint64_t{0});
  info.children = json.value("children", std::vector<std::uint64_t>{});
  for (const Json& event : json.at("history")) info.history.push_back({event.at("at"), event.at("what")});
}

}  // namespace

bool is_over(const JobRecord& record) {
  return is_final(record.info.state) && record.leftovers.empty();
}

std::string body_of(const JobRecord& record) {
  JobInfo info = record.info;
  if (info.history.size() > kHistoryMax)
    info.history.erase(info.history.begin() + 1, info.history.end() - static_cast<std::ptrdiff_t>(kHistoryMax));
  Json json = Json::parse(to_json(info));
  Json inner = Json::object();
  inner["owner"] = record.owner;
  inner["beat"] = record.beat;
  inner["undoing"] = record.undoing;
  inner["canceled"] = record.canceled;
  if (record.why) inner["why"] = error_json(*record.why);
  inner["split_made"] = record.split_made;
  inner["map"] = record.map;
  inner["work"] = work_json(record.work);
  if (!record.leftovers.empty()) inner["leftovers"] = leftovers_json(record.leftovers);
  inner["attempts"] = record.attempts;
  json["inner"] = inner;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<JobRecord> record_of(std::string_view body) {
  KG_TRY(const Json json, shardmap::parse_json(body));
  JobRecord record;
  try {
    Json request = Json::object();
    for (const char* member : {"type", "shardlet", "shardlets", "at", "into", "move", "to", "shard", "map",
                               "by", "mode", "max_rate"}) {
      if (json.contains(member)) request[member] = json.at(member);
    }
    KG_TRY(record.info.request, job_request_from_json(request.dump()));
    read_info(json, record.info);
    const Json& inner = json.at("inner");
    record.owner = inner.at("owner");
    record.beat = inner.at("beat");
    record.undoing = inner.at("undoing");
    record.canceled = inner.at("canceled");
    if (inner.contains("why")) record.why = read_error(inner.at("why"));
    record.split_made = inner.at("split_made");
    record.map = inner.at("map");
    record.work = read_work(inner.at("work"));
    record.attempts = inner.value("attempts", 0);
    if (inner.contains("leftovers")) record.leftovers = read_leftovers(inner.at("leftovers"));
  } catch (const std::exception& problem) {
    return fail("XX001", std::string("the record of a job is damaged: ") + problem.what());
  }
  return record;
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", static_cast<int>(ms));
  return std::string(text, length) + fraction;
}

}  // namespace kintsugi::splitmerge
