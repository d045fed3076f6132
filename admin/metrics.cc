#include "admin/metrics.h"

#include <cstdio>
#include <map>

namespace kintsugi::admin {
namespace {

// A label's value between its quotes.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

class Lines {
 public:
  void family(const std::string& name, const char* type, const char* help) {
    text_ += "# HELP kintsugi_" + name + " " + help + "\n# TYPE kintsugi_" + name + " " + type + "\n";
  }
  void value(const std::string& name, const std::string& labels, std::int64_t value) {
    text_ +=
        "kintsugi_" + name + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(value) + "\n";
  }
  void text(const std::string& name, const std::string& labels, const std::string& value) {
    text_ += "kintsugi_" + name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
  }
  void gauge(const std::string& name, const char* help, std::int64_t value) {
    family(name, "gauge", help);
    this->value(name, "", value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string seconds(std::uint64_t us) {
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%06llu", static_cast<unsigned long long>(us / 1000000),
                static_cast<unsigned long long>(us % 1000000));
  return text;
}

std::int64_t whole(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

void append_load(Lines& lines, const RouterLoad& load) {
  lines.gauge("clients", "Clients that are logged in.", load.clients);
  lines.gauge("connections", "Clients' connections, also those that log in.", load.connections);
  lines.gauge("epoch_of_threads", "The epoch that the slowest thread plans with.", whole(load.epoch));
  lines.family("statements_total", "counter", "Statements that shards have answered, by tier and outcome.");
  for (std::size_t i = 0; i < kStatementTiers; ++i) {
    const std::string tier = "tier=\"" + std::string(name_of(static_cast<StatementTier>(i))) + "\"";
    lines.value("statements_total", tier + ",outcome=\"ok\"", whole(load.tiers[i].ok));
    lines.value("statements_total", tier + ",outcome=\"failed\"", whole(load.tiers[i].failed));
  }
  lines.family("statement_seconds", "histogram",
               "From a statement's first byte to the end of its answer; a pipeline is one.");
  for (std::size_t i = 0; i < kStatementTiers; ++i) {
    const RouterLoad::Tier& tier = load.tiers[i];
    const std::string label = "tier=\"" + std::string(name_of(static_cast<StatementTier>(i))) + "\"";
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k + 1 < kLatencyBuckets; ++k) {
      sum += tier.latency[k];
      lines.value("statement_seconds_bucket", label + ",le=\"" + seconds(std::uint64_t{1} << k) + "\"",
                  whole(sum));
    }
    sum += tier.latency[kLatencyBuckets - 1];
    lines.value("statement_seconds_bucket", label + ",le=\"+Inf\"", whole(sum));
    lines.text("statement_seconds_sum", label, seconds(tier.us));
    lines.value("statement_seconds_count", label, whole(sum));
  }
  const auto counter = [&lines](const char* name, const char* help, std::uint64_t value) {
    lines.family(name, "counter", help);
    lines.value(name, "", whole(value));
  };
  counter("statements_refused_total", "Statements that the router itself refused.", load.refused);
  counter("statements_slow_total", "Statements that took limits.slow_statement or longer.", load.slow);
  counter("statements_held_total", "Statements that have waited for a shardlet that changed hands.", load.held);
  lines.family("statements_held_seconds_total", "counter", "How long they waited, together.");
  lines.text("statements_held_seconds_total", "", seconds(load.held_us));
  lines.gauge("statements_held", "Statements that wait for a shardlet now.", load.held_now);
  counter("statement_cache_hits_total", "Statements whose form was known.", load.cache_hits);
  counter("statement_cache_misses_total", "Statements that had to be parsed.", load.cache_misses);
  counter("statement_cache_evictions_total", "Forms that were forgotten for others.", load.cache_evictions);
  lines.gauge("statement_cache_entries", "Forms that are known, over all threads.", whole(load.cache_entries));
  lines.gauge("statement_cache_bytes", "Their memory.", whole(load.cache_bytes));
  lines.family("shardlet_statements_total", "counter",
               "About so many statements for the busiest shardlets (every sixteenth is looked at).");
  for (const auto& [name, count] : load.shardlets)
    lines.value("shardlet_statements_total", "shardlet=\"" + label(name) + "\"", whole(count));
}

void append_routers(Lines& lines, std::uint64_t epoch, const std::vector<Json>& routers) {
  if (routers.empty()) return;
  lines.family("router_alive", "gauge", "1 for each router whose lease is valid.");
  for (const Json& router : routers)
    lines.value("router_alive", "router=\"" + label(router.value("name", "")) + "\"",
                router.value("alive", false) ? 1 : 0);
  lines.family("router_epochs_behind", "gauge", "Changes of the map that a live router has not taken.");
  for (const Json& router : routers) {
    if (!router.value("alive", false)) continue;
    const auto its = router.value("epoch", std::uint64_t{0});
    lines.value("router_epochs_behind", "router=\"" + label(router.value("name", "")) + "\"",
                epoch > its ? whole(epoch - its) : 0);
  }
}

void append_jobs(Lines& lines, const std::vector<Json>& jobs) {
  std::map<std::string, std::int64_t> states;
  for (const char* state : {"queued", "preparing", "copying", "catching_up", "fenced", "committed", "cleaning",
                            "done", "failed", "canceled"})
    states[state] = 0;
  for (const Json& job : jobs) ++states[job.value("state", "")];
  lines.family("jobs", "gauge", "Jobs of the map store by their state.");
  for (const auto& [state, count] : states) lines.value("jobs", "state=\"" + label(state) + "\"", count);
}

bool asked(const std::function<bool()>& question) {
  return !question || question();
}

}  // namespace

std::string metrics_text(const Surroundings& surroundings, const OfTheStore& beside) {
  Lines lines;
  const shardmap::MapPtr map = surroundings.map();
  lines.gauge("epoch", "The epoch of the shard map that this router knows.",
              static_cast<std::int64_t>(map->epoch()));
  lines.gauge("map_store_reachable", "1 while the map store answers.",
              asked(surroundings.store_reachable) ? 1 : 0);
  lines.gauge("lease_valid", "1 while others may count on this router's epoch.",
              asked(surroundings.lease_valid) ? 1 : 0);
  lines.gauge("shards", "Shards in the map.", static_cast<std::int64_t>(map->shards().size()));
  lines.gauge("map_bytes", "Memory of the map's entries.", static_cast<std::int64_t>(map->bytes()));
  lines.family("shardlets", "gauge", "Shardlets of each map.");
  for (const shardmap::Mapping* mapping : map->mappings()) {
    lines.value("shardlets", "map=\"" + label(mapping->name()) + "\"",
                static_cast<std::int64_t>(mapping->shardlet_count()));
  }
  const auto pools = surroundings.pools ? surroundings.pools() : std::vector<PoolState>();
  const std::pair<const char*, int PoolState::*> kinds[] = {{"pool_connections", &PoolState::open},
                                                            {"pool_connections_max", &PoolState::limit},
                                                            {"pool_clients_waiting", &PoolState::waiting}};
  for (const auto& [name, member] : kinds) {
    lines.family(name, "gauge", "Connections to the shards.");
    for (const PoolState& pool : pools) {
      lines.value(name, "shard=\"" + label(pool.shard) + "\",role=\"" + label(pool.role) + "\"", pool.*member);
    }
  }
  if (const auto load = surroundings.load ? surroundings.load() : std::nullopt) append_load(lines, *load);
  append_routers(lines, map->epoch(), beside.routers);
  append_jobs(lines, beside.jobs);
  return lines.take();
}

Json readiness(const Surroundings& surroundings) {
  const shardmap::MapPtr map = surroundings.map();
  const bool serving = asked(surroundings.serving);
  const bool store = asked(surroundings.store_reachable);
  // Without the store a router goes on with its replica; with neither it knows nothing.
  const bool knows = store || !map->shards().empty();
  std::string why;
  if (!serving)
    why = "no clients are accepted: the router starts or shuts down";
  else if (!knows)
    why = "the map store is away and the replica knows no shard";
  return {{"ready", why.empty()},
          {"why", why.empty() ? Json(nullptr) : Json(why)},
          {"serving", serving},
          {"epoch", map->epoch()},
          {"shards", map->shards().size()},
          {"store", store ? "reachable" : "away"},
          {"lease", asked(surroundings.lease_valid) ? "valid" : "run out"}};
}

}  // namespace kintsugi::admin
