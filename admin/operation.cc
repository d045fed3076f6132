#include "admin/operation.h"

#include <algorithm>

#include "admin/operation_handlers.h"

namespace kintsugi::admin {
namespace {

std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash);
  }
  return parts;
}

int hex(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool matches(std::string_view pattern, std::string_view path, std::map<std::string, std::string>& values) {
  const auto wanted = segments(pattern), given = segments(path);
  if (wanted.size() != given.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].starts_with('{')) {
      if (wanted[i] != given[i]) return false;
    } else if (given[i].empty()) {
      return false;
    } else {
      values[std::string(wanted[i].substr(1, wanted[i].size() - 2))] = decoded(given[i]);
    }
  }
  return true;
}

using namespace handlers;
constexpr Role kViewer = Role::kViewer, kOperator = Role::kOperator, kAdmin = Role::kAdmin;

// An operation is two lines.
// clang-format off
// Shards, maps, shardlets, tables.
std::vector<Operation> map_operations() {
  return {
      {"GET", "/v1/shards", "listShards", "The shards.",
       kViewer, "", "shard", 200, true, {"state"}, list_shards},
      {"POST", "/v1/shards", "createShard", "Makes a database a shard.",
       kAdmin, "newShard", "shard", 201, false, {}, create_shard},
      {"GET", "/v1/shards/{shard}", "getShard", "One shard.",
       kViewer, "", "shard", 200, false, {}, get_shard},
      {"PATCH", "/v1/shards/{shard}", "changeShard", "Another DSN, state or name.",
       kAdmin, "shardChange", "shard", 200, false, {}, change_shard},
      {"DELETE", "/v1/shards/{shard}", "dropShard", "Gives the database back; it must have no shardlets.",
       kAdmin, "", "", 204, false, {}, drop_shard},
      {"GET", "/v1/maps", "listMaps", "The shard maps.",
       kViewer, "", "map", 200, true, {}, list_maps},
      {"POST", "/v1/maps", "createMap", "A new shard map; a hash map with its shardlets.",
       kAdmin, "newMap", "map", 201, false, {}, create_map},
      {"GET", "/v1/maps/{map}", "getMap", "One shard map.",
       kViewer, "", "map", 200, false, {}, get_map},
      {"DELETE", "/v1/maps/{map}", "dropMap", "Drops the map and its shardlets; no table may use it.",
       kAdmin, "", "", 204, false, {}, drop_map},
      {"GET", "/v1/maps/{map}/lookup", "lookupKey", "Where a key is.",
       kViewer, "", "place", 200, false, {"key"}, lookup_key},
      {"GET", "/v1/maps/{map}/shardlets", "listShardlets",
       "The shardlets of a map, in the order of their keys.",
       kViewer, "", "shardlet", 200, true, {"shard", "state"}, list_shardlets},
      {"POST", "/v1/maps/{map}/shardlets", "createShardlet", "A new shardlet.",
       kAdmin, "newShardlet", "shardlet", 201, false, {}, create_shardlet},
      {"GET", "/v1/maps/{map}/shardlets/{shardlet}", "getShardlet", "One shardlet.",
       kViewer, "", "shardlet", 200, false, {}, get_shardlet},
      {"PATCH", "/v1/maps/{map}/shardlets/{shardlet}", "changeShardlet", "Another state or name.",
       kOperator, "shardletChange", "shardlet", 200, false, {}, change_shardlet},
      {"DELETE", "/v1/maps/{map}/shardlets/{shardlet}", "dropShardlet", "Drops a shardlet without rows.",
       kAdmin, "", "", 204, false, {}, drop_shardlet},
      {"GET", "/v1/tables", "listTables", "The tables that are sharded or replicated.",
       kViewer, "", "table", 200, true, {"map"}, list_tables},
      {"POST", "/v1/tables", "placeTable",
       "Takes a table that the shards have into a map, or says that it is replicated.",
       kAdmin, "newTable", "table", 201, false, {}, place_table},
      {"GET", "/v1/tables/{table}", "getTable", "One table.",
       kViewer, "", "table", 200, false, {}, get_table},
      {"DELETE", "/v1/tables/{table}", "unplaceTable",
       "Forgets how a table is placed; its rows are not touched.",
       kAdmin, "", "", 204, false, {}, unplace_table},
  };
}

std::vector<Operation> job_operations() {
  return {
      {"GET", "/v1/jobs", "listJobs", "The jobs, also those that have ended.",
       kViewer, "", "job", 200, true, {"state", "type", "order"}, list_jobs},
      {"POST", "/v1/jobs", "startJob", "Starts a move, split, merge, drain or rebalance.",
       kOperator, "newJob", "job", 202, false, {"dry_run"}, start_job},
      {"GET", "/v1/jobs/{id}", "getJob", "One job.",
       kViewer, "", "job", 200, false, {}, get_job},
      {"GET", "/v1/jobs/{id}/events", "watchJob",
       "Server-sent events: the job, and again whenever it has changed, to its end.",
       kViewer, "", "jobEvents", 200, false, {}, get_job},
      {"POST", "/v1/jobs/{id}/cancel", "cancelJob", "Asks a job to stop and undo what it did.",
       kOperator, "", "job", 202, false, {}, cancel_job},
      {"POST", "/v1/jobs/{id}/resume", "resumeJob", "Starts a failed or canceled job again.",
       kOperator, "", "job", 202, false, {}, resume_job},
  };
}

// Routers, what is counted, recovery, the map as a file.
std::vector<Operation> other_operations() {
  return {
      {"GET", "/v1/routers", "listRouters", "The routers, with the epoch that each has taken.",
       kViewer, "", "router", 200, true, {}, list_routers},
      {"GET", "/v1/stats", "listStatistics", "What this router counts.",
       kViewer, "", "statistic", 200, true, {}, list_statistics},
      {"GET", "/v1/slow", "listSlowStatements",
       "Statements that took limits.slow_statement or longer, without literals, the newest first.",
       kViewer, "", "slowStatement", 200, true, {}, list_slow},
      {"POST", "/v1/explain", "explain", "Where a statement would go, as EXPLAIN (ROUTE) shows it; runs nothing.",
       kViewer, "explainRequest", "route", 200, false, {}, explain},
      {"GET", "/v1/users", "listUsers", "Who has a token of their own; the tokens are not kept.",
       kAdmin, "", "user", 200, true, {}, list_users},
      {"POST", "/v1/users", "addUser", "A new user, with the token, which is told this once.",
       kAdmin, "newUser", "user", 201, false, {}, add_user},
      {"DELETE", "/v1/users/{user}", "removeUser", "The user's token is good for nothing from now on.",
       kAdmin, "", "", 204, false, {}, remove_user},
      {"GET", "/v1/pools", "listPools", "This router's connections to the shards.",
       kViewer, "", "pool", 200, true, {"shard"}, list_pools},
      {"GET", "/v1/audit", "listAudit", "Who has asked for what, the newest first.",
       kOperator, "", "auditEntry", 200, true, {"who"}, list_audit},
      {"GET", "/v1/epoch", "getEpoch", "The version of the whole map.",
       kViewer, "", "epoch", 200, false, {}, get_epoch},
      {"POST", "/v1/recovery/check", "check", "Compares the store, the shards' local maps and their rows.",
       kOperator, "checkRequest", "difference", 200, true, {}, check},
      {"POST", "/v1/recovery/resolve", "resolve", "Makes one side say what the other says.",
       kAdmin, "resolveRequest", "step", 200, true, {}, resolve},
      {"POST", "/v1/recovery/rebuild", "rebuild", "Fills an empty store from what its shards know.",
       kAdmin, "rebuildRequest", "step", 200, true, {}, rebuild},
      {"GET", "/v1/export", "exportMap",
       "The whole map as a file, a JSON object a line. It holds the shards' passwords.",
       kAdmin, "", "file", 200, false, {}, export_map},
      {"POST", "/v1/import", "importMap", "Fills an empty store from such a file.",
       kAdmin, "file", "epoch", 200, false, {}, import_map},
  };
}

// clang-format on

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> list = map_operations();
    for (auto* more : {job_operations, other_operations}) {
      for (Operation& operation : more()) list.push_back(std::move(operation));
    }
    return list;
  }();
  return all;
}

const std::vector<OpenPage>& open_pages() {
  using What = OpenPage::What;
  static const std::vector<OpenPage> all = {
      {What::kHealth, "/healthz", "health", "Whether every thread of the router does what it is asked.",
       "application/json", "health", "a thread does not answer: restart the router"},
      {What::kReadiness, "/readyz", "readiness", "Whether clients may be sent here.", "application/json",
       "readiness", "they may not, and why"},
      {What::kMetrics, "/metrics", "metrics", "What the router counts, for Prometheus.",
       "text/plain; version=0.0.4", "", ""},
      {What::kConsole, "/", "console", "The console.", "text/html; charset=utf-8", "", ""},
      {What::kDescription, "/openapi.json", "describe", "This description.", "application/json", "", ""},
  };
  return all;
}

const OpenPage* open_page(std::string_view path) {
  const auto& pages = open_pages();
  const auto at =
      std::find_if(pages.begin(), pages.end(), [path](const OpenPage& page) { return page.path == path; });
  return at == pages.end() ? nullptr : &*at;
}

std::string in_path(const std::string& name) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const unsigned char c : name) {
    if (std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~') {
      out += static_cast<char>(c);
    } else {
      out += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out;
}

std::vector<std::string_view> parameters_in_query(const Operation& operation) {
  std::vector<std::string_view> names;
  if (operation.list && operation.method == "GET") names = {"limit", "after"};
  names.insert(names.end(), operation.query.begin(), operation.query.end());
  return names;
}

bool has_epoch(const Operation& operation) {
  for (const char* about : {"/v1/shards", "/v1/maps", "/v1/tables", "/v1/epoch", "/v1/import"}) {
    if (operation.path.starts_with(about)) return true;
  }
  return false;
}

Routed route(std::string_view method, std::string_view path) {
  Routed routed;
  for (const Operation& operation : operations()) {
    std::map<std::string, std::string> values;
    if (!matches(operation.path, path, values)) continue;
    if (operation.method == method) {
      routed.operation = &operation;
      routed.path = std::move(values);
      return routed;
    }
    routed.allowed += (routed.allowed.empty() ? "" : ", ") + std::string(operation.method);
  }
  return routed;
}

}  // namespace kintsugi::admin
