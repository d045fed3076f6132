#include <cstdio>
#include <ctime>

#include <charconv>

#include "admin/commands/audit.h"
#include "admin/commands/show_page.h"
#include "shardmap/map_feed.h"

namespace kintsugi::admin {
namespace {

using command::Show;

// A list that is made whole, in an order that stays: a page goes on behind the item that `after` counts.
Status page_of(const Show& request, std::vector<Json> all, CommandResult& result) {
  KG_TRY(const std::uint64_t begin, counted_place(request.after));
  Page page(request, result);
  for (std::size_t i = begin; i < all.size(); ++i) {
    if (!page.add(std::move(all[i]), std::to_string(i + 1))) break;
  }
  return {};
}

std::string time_text(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const std::size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%03dZ", static_cast<int>(ms % 1000));
  return text;
}

}  // namespace

Result<std::uint64_t> counted_place(const std::string& after) {
  std::uint64_t place = 0;
  const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), place);
  if (after.empty() || (error == std::errc() && end == after.data() + after.size())) return place;
  return fail(sqlstate::kInvalidParameter, "\"" + after.substr(0, 60) + "\" is not where this list goes on",
              "Use the \"next\" of the page before.");
}

Status show_routers(const Show& request, const Surroundings& surroundings, const OpenStore& store,
                    Deadline deadline, CommandResult& result) {
  if (surroundings.store.empty()) {
    result.objects.push_back({{"name", surroundings.router},
                              {"epoch", surroundings.map()->epoch()},
                              {"age_ms", 0},
                              {"lease_ms", nullptr},
                              {"alive", true},
                              {"this", true}});
    return {};
  }
  KG_TRY(shardmap::MapStore * opened, store());
  KG_TRY(const auto routers, shardmap::routers(*opened, deadline));
  std::vector<Json> all;
  for (const shardmap::RouterState& router : routers) {
    all.push_back({{"name", router.name},
                   {"epoch", router.epoch},
                   {"age_ms", router.age_ms},
                   {"lease_ms", router.lease_ms},
                   {"alive", router.alive()},
                   {"this", router.name == surroundings.router}});
  }
  return page_of(request, std::move(all), result);
}

Status show_pools(const Show& request, const Surroundings& surroundings, CommandResult& result) {
  if (!surroundings.pools) return {};
  std::vector<Json> all;
  for (const PoolState& pool : surroundings.pools()) {
    if (!request.shard.empty() && pool.shard != request.shard) continue;
    all.push_back({{"shard", pool.shard},
                   {"role", pool.role},
                   {"open", pool.open},
                   {"limit", pool.limit},
                   {"waiting", pool.waiting}});
  }
  return page_of(request, std::move(all), result);
}

Status show_stats(const Show& request, const Surroundings& surroundings, CommandResult& result) {
  if (!surroundings.load) return {};
  const auto load = surroundings.load();
  if (!load) return fail(sqlstate::kCannotConnectNow, "a thread of the router does not answer");
  std::vector<Json> all;
  const auto add = [&all](const std::string& name, auto value) {
    all.push_back({{"name", name}, {"value", value}});
  };
  add("clients", load->clients);
  add("connections", load->connections);
  add("epoch", load->epoch);
  for (std::size_t i = 0; i < kStatementTiers; ++i) {
    const RouterLoad::Tier& tier = load->tiers[i];
    const std::string label = "tier=\"" + std::string(name_of(static_cast<StatementTier>(i))) + "\"";
    add("statements{" + label + ",outcome=\"ok\"}", tier.ok);
    add("statements{" + label + ",outcome=\"failed\"}", tier.failed);
    if (tier.ok + tier.failed == 0) continue;
    for (const auto& [name, part] : {std::pair("0.5", 0.5), std::pair("0.95", 0.95), std::pair("0.99", 0.99)})
      add("latency_us{" + label + ",quantile=\"" + name + "\"}", quantile_us(tier, part));
  }
  add("statements_refused", load->refused);
  add("statements_slow", load->slow);
  add("statements_held", load->held);
  add("statements_held_now", load->held_now);
  add("statements_held_us", load->held_us);
  add("statement_cache_hits", load->cache_hits);
  add("statement_cache_misses", load->cache_misses);
  add("statement_cache_entries", load->cache_entries);
  add("statement_cache_bytes", load->cache_bytes);
  for (const auto& [name, count] : load->shardlets)
    add("shardlet_statements{shardlet=\"" + name + "\"}", count);
  return page_of(request, std::move(all), result);
}

Status show_slow(const Show& request, const Surroundings& surroundings, CommandResult& result) {
  if (!surroundings.load) return {};
  const auto load = surroundings.load();
  if (!load) return fail(sqlstate::kCannotConnectNow, "a thread of the router does not answer");
  std::vector<Json> all;
  for (const SlowStatement& slow : load->slowest) {
    all.push_back({{"at", time_text(slow.at_ms)},
                   {"user", slow.user},
                   {"tier", std::string(name_of(slow.tier))},
                   {"shards", slow.shards},
                   {"ms", slow.total_us / 1000},
                   {"waited_ms", slow.waited_us / 1000},
                   {"held_ms", slow.held_us / 1000},
                   {"failed", slow.failed},
                   {"statement", slow.text}});
  }
  return page_of(request, std::move(all), result);
}

Status show_audit(const Show& request, const Surroundings& surroundings, const OpenStore& store,
                  Deadline deadline, CommandResult& result) {
  if (surroundings.store.empty()) return {};
  KG_TRY(shardmap::MapStore * opened, store());
  KG_TRY(const auto trail, audit_trail(*opened, deadline));
  Page page(request, result);
  for (const Json& entry : trail) {
    const std::string at = entry.value("at", "");
    if (!request.after.empty() && at >= request.after) continue;
    if (!request.who.empty() && entry.value("who", "") != request.who) continue;
    if (!page.add(entry, at)) break;
  }
  return {};
}

}  // namespace kintsugi::admin
