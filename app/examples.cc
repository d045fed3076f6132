#include "app/examples.h"

namespace kintsugi::app {
namespace {

struct Example {
  std::string_view command, line, meaning;
};

// In the order in which the help shows them.
constexpr Example kExamples[] = {
    {"serve", "--data /var/lib/kintsugi", "with the kintsugi.toml and the map that are there"},
    {"serve", "--listen 0.0.0.0:6432 --set pool.size=40", "any key of the configuration by hand"},
    {"demo", "--shards 2 --port 0 --admin-port 0", "two clusters, on ports that are free"},
    {"check-config", "/etc/kintsugi.toml", "every problem, with its line, or every value and where it is from"},
    {"shard list", "--json", "for programs"},
    {"shard add", "s3 'host=10.0.0.7 dbname=app user=app'", "a job makes its schema; wait for: online"},
    {"shard set", "s3 --dsn 'host=10.0.0.8 dbname=app user=app'", "the same database at another address"},
    {"shard remove", "s3 --yes", "after kintsugi drain s3"},
    {"map create", "tenants --by range --key bigint", "then give it shardlets with: shardlet add"},
    {"map create", "documents --by hash --key uuid --shardlets 64", "with its shardlets, over all shards"},
    {"map show", "tenants", ""},
    {"map drop", "tenants --yes", ""},
    {"map export", "map.jsonl", "a backup of all of the map"},
    {"map import", "map.jsonl", "into an empty store"},
    {"shardlet list", "tenants", ""},
    {"shardlet add", "tenants low --from MINVALUE --to 1000 --on s1", "keys below 1000"},
    {"shardlet add", "regions eu --values de,fr --on s2", "of a list map"},
    {"shardlet set", "tenants low --state 'read only'", "online, offline or read only"},
    {"shardlet remove", "tenants low --yes", ""},
    {"table shard", "orders --map tenants --key tenant_id", "a table that the shards have"},
    {"table replicate", "plans", "every shard has the same rows of it"},
    {"table unshard", "orders --yes", ""},
    {"lookup", "tenants 42", "the shardlet and the shard of one key"},
    {"split", "low --at 500 --into low,middle", "on the same shard; a matter of milliseconds"},
    {"split", "low --to s3", "at the middle of its data, and its right half moves"},
    {"merge", "low middle --into low", "when they live apart, one moves first"},
    {"move", "middle --to s2", "waits, with a progress bar; Ctrl-C leaves the job running"},
    {"move", "middle --to s2 --max-rate 20MB/s --detach", "gently, and return at once with the job's number"},
    {"drain", "s3 --dry-run", "what would move where"},
    {"rebalance", "--map tenants --dry-run", "what would move where"},
    {"job watch", "17", ""},
    {"job cancel", "17", "undoes what it did; after its commit it goes on to its end"},
    {"job resume", "17", ""},
    {"recover check", "", "what store, shards and rows disagree about"},
    {"recover resolve", "--from store --dry-run", "what the shards would be told"},
    {"recover rebuild", "'host=10.0.0.5 dbname=app user=app' 'host=10.0.0.6 dbname=app user=app' --yes",
     "the store is lost; each shard knows what it owns"},
    {"user add", "grafana --role viewer", "prints its token, this once"},
    {"user remove", "grafana --yes", ""},
    {"explain", "'SELECT * FROM orders WHERE tenant_id = 42'", ""},
};

}  // namespace

std::string examples_of(std::string_view command) {
  std::string text;
  for (const Example& example : kExamples) {
    if (example.command != command) continue;
    if (text.empty()) text = "Examples:\n";
    text.append("  kintsugi ").append(command);
    if (!example.line.empty()) text.append(" ").append(example.line);
    text += "\n";
    if (!example.meaning.empty()) text.append("      ").append(example.meaning).append("\n");
  }
  return text;
}

}  // namespace kintsugi::app
