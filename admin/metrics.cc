#include "admin/metrics.h"

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
  void gauge(const std::string& name, const char* help, std::int64_t value) {
    family(name, "gauge", help);
    this->value(name, "", value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

bool asked(const std::function<bool()>& question) {
  return !question || question();
}

}  // namespace

std::string metrics_text(const Surroundings& surroundings) {
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
  // Statistics say their labels themselves: statements{tier="route"}.
  std::string last;
  for (const Statistic& statistic :
       surroundings.statistics ? surroundings.statistics() : std::vector<Statistic>()) {
    const std::size_t brace = statistic.name.find('{');
    const std::string name = statistic.name.substr(0, brace);
    if (name != last)
      lines.family(name, name.ends_with("_total") ? "counter" : "gauge", "See docs/operations.md.");
    last = name;
    const std::string labels =
        brace == std::string::npos ? "" : statistic.name.substr(brace + 1, statistic.name.size() - brace - 2);
    lines.value(name, labels, statistic.value);
  }
  return lines.take();
}

Json readiness(const Surroundings& surroundings) {
  const shardmap::MapPtr map = surroundings.map();
  const bool serving = asked(surroundings.serving);
  return {{"ready", serving},
          {"serving", serving},
          {"epoch", map->epoch()},
          {"shards", map->shards().size()},
          {"store", asked(surroundings.store_reachable) ? "reachable" : "away"},
          {"lease", asked(surroundings.lease_valid) ? "valid" : "run out"}};
}

}  // namespace kintsugi::admin
