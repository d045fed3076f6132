#include "frontend/own_forms.h"

#include <string>
#include <vector>

#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

struct Form {
  std::string_view begin;  // words, the longest beginning first
  std::string_view form;
};

constexpr std::string_view kOptions = " [WITH (wait = true, mode = online | offline, max_rate = '50MB/s')]";
constexpr Form kForms[] = {
    {"create shard map",
     "CREATE SHARD MAP name BY RANGE | LIST (type, ...), or BY HASH (type, ...) SHARDLETS 64 ON SHARDS (s1, "
     "s2)"},
    {"create shardlet",
     "CREATE SHARDLET name OF map FOR VALUES FROM (key | MINVALUE) TO (key | MAXVALUE) ON SHARD shard, or FOR "
     "VALUES IN (key, ...)"},
    {"create shard", "CREATE SHARD name DSN 'host=... dbname=...'"},
    {"alter shardlet", "ALTER SHARDLET name SET OFFLINE | ONLINE | READ ONLY, or RENAME TO name"},
    {"alter shard", "ALTER SHARD name SET DSN 'host=... dbname=...'"},
    {"drop shard map", "DROP SHARD MAP [IF EXISTS] name"},
    {"drop shardlet", "DROP SHARDLET [IF EXISTS] name"},
    {"drop shard", "DROP SHARD [IF EXISTS] name"},
    {"split", "SPLIT SHARDLET name [AT (key)] [INTO (left, right)] [MOVE left | right TO SHARD shard]"},
    {"merge shardlets", "MERGE SHARDLETS left, right [INTO name] [ON SHARD shard]"},
    {"merge shardlet", "MERGE SHARDLETS left, right [INTO name] [ON SHARD shard]"},
    {"move shardlet", "MOVE SHARDLET name TO SHARD shard"},
    {"rebalance", "REBALANCE [SHARD MAP name] [WITH (by = bytes | rows, dry_run = true, wait = true)]"},
    {"drain", "DRAIN SHARD name [WITH (dry_run = true, wait = true)]"},
    {"cancel", "CANCEL JOB number"},
    {"resume", "RESUME JOB number"},
    {"show shard",
     "SHOW SHARDS | SHARD MAPS | SHARDLETS [OF map] | SHARDED TABLES | JOBS | JOB number | ROUTERS | POOLS | "
     "STATS"},
    {"show shards", "SHOW SHARDS"},
    {"show shardlets", "SHOW SHARDLETS [OF map]"},
    {"show shardlet", "SHOW SHARDLETS [OF map]"},
    {"show sharded", "SHOW SHARDED TABLES"},
    {"show jobs", "SHOW JOBS"},
    {"show job", "SHOW JOB number"},
    {"show routers", "SHOW ROUTERS"},
    {"show pools", "SHOW POOLS"},
    {"show stats", "SHOW STATS"},
};

// The first three words, as "create shard map ".
std::string beginning(std::string_view text) {
  parser::Scanner scanner(text, true);
  std::string words;
  for (int i = 0; i < 3; ++i) {
    const std::string_view word = scanner.next().of(text);
    if (word.empty()) break;
    for (const char c : word) words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    words += ' ';
  }
  return words;
}

constexpr std::string_view kPlaced =
    "CREATE TABLE name (...) SHARD BY map (column, ...), or CREATE TABLE name (...) REPLICATED; ALTER TABLE "
    "name SHARD "
    "BY map (column, ...), or ALTER TABLE name REPLICATED";

// Whether the words that PostgreSQL does not know and that place a table are in it.
bool places(std::string_view text, std::string_view words) {
  if (!words.starts_with("create ") && !words.starts_with("alter table ")) return false;
  parser::Scanner scanner(text, true);
  for (bool shard = false;;) {
    const parser::Token token = scanner.next();
    const std::string_view word = token.of(text);
    if (word.empty()) return false;
    if (parser::is_keyword(text, token, "replicated") || (shard && parser::is_keyword(text, token, "by")))
      return true;
    shard = parser::is_keyword(text, token, "shard");
  }
}

bool is_job(std::string_view begin) {
  return begin == "split" || begin.starts_with("merge") || begin == "move shardlet";
}

}  // namespace

std::optional<Error> misspelt(std::string_view text, const Error& problem) {
  const std::string words = beginning(text);
  for (const Form& form : kForms) {
    if (!words.starts_with(form.begin) || words[form.begin.size()] != ' ') continue;
    Error error = problem;
    error.hint =
        "The form is: " + std::string(form.form) + (is_job(form.begin) ? std::string(kOptions) : "") + ".";
    return error;
  }
  if (!places(text, words)) return std::nullopt;
  Error error = problem;
  error.hint = "The forms are: " + std::string(kPlaced) + ".";
  return error;
}

Error no_such_setting(std::string_view name) {
  return Error{.sqlstate = "42602",
               .message = "invalid configuration parameter name \"" + std::string(name) + "\"",
               .detail = "\"kintsugi\" is a reserved prefix.",
               .hint = "There are kintsugi.tenant and kintsugi.shard_new_tables."};
}

std::optional<Error> bad_setting(const parser::Statement& statement) {
  constexpr std::string_view kOurs = "kintsugi.", kTables = "kintsugi.shard_new_tables";
  const auto* set = statement.get<parser::Set>();
  if (set == nullptr || !set->name.starts_with(kOurs)) return std::nullopt;
  if (set->name != kTables) return no_such_setting(set->name);
  if (set->form != parser::Set::Form::kValue || set->values.size() != 1) return std::nullopt;
  const std::string value(set->values[0].text);
  const std::size_t open = value.find('(');
  if (value.empty() ||
      (open != 0 && open != std::string::npos && open + 2 < value.size() && value.ends_with(')')))
    return std::nullopt;
  return Error{.sqlstate = std::string(sqlstate::kInvalidParameter),
               .message = "kintsugi.shard_new_tables is \"" + value + "\", which names no map and column",
               .hint = "SET kintsugi.shard_new_tables = 'map(column)', or RESET it."};
}

}  // namespace kintsugi::frontend
