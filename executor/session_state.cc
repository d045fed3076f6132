#include "executor/session_state.h"

#include "base/sql_quote.h"

namespace kintsugi::executor {
namespace {

// One-letter kinds in the first column: s a setting, p a reason to stay.
constexpr std::string_view kQuery = R"(
SELECT 's', name, setting FROM pg_catalog.pg_settings
 WHERE source = 'session'
   AND name NOT IN ('transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
UNION ALL SELECT 's', 'role', pg_catalog.current_setting('role')
 WHERE pg_catalog.current_setting('role') <> 'none'
UNION ALL SELECT 'p', 'listen', NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_listening_channels())
UNION ALL SELECT 'p', 'cursor', NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable)
UNION ALL SELECT 'p', 'prepared', NULL WHERE EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)
UNION ALL SELECT 'p', 'advisory', NULL
 WHERE EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid())
UNION ALL SELECT 'p', 'temporary', NULL
 WHERE EXISTS (SELECT FROM pg_catalog.pg_class WHERE relnamespace = pg_catalog.pg_my_temp_schema())
    OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace = pg_catalog.pg_my_temp_schema())
    OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE typnamespace = pg_catalog.pg_my_temp_schema())
)";

unsigned pin_by_name(std::string_view name) {
  if (name == "listen") return kPinListen;
  if (name == "cursor") return kPinCursor;
  if (name == "prepared") return kPinPrepared;
  if (name == "advisory") return kPinAdvisory;
  if (name == "temporary") return kPinTemporary;
  return kPinOther;
}

// my.setting -> "my"."setting"
std::string setting_name(std::string_view name) {
  std::string quoted;
  for (;;) {
    const std::size_t dot = name.find('.');
    quoted += quote_identifier(name.substr(0, dot));
    if (dot == std::string_view::npos) return quoted;
    quoted += '.';
    name.remove_prefix(dot + 1);
  }
}

bool is_identity(std::string_view name) {
  return name == "role" || name == "session_authorization";
}

void append_set(std::string& sql, std::string_view name, std::string_view value) {
  sql += "SELECT pg_catalog.set_config(" + quote_literal(name) + ", " + quote_literal(value) + ", false);";
}

}  // namespace

std::string session_state_sql(std::string_view login_role, const std::vector<std::string>& custom_settings) {
  std::string sql(kQuery);
  sql += "UNION ALL SELECT 's', 'session_authorization', session_user::text WHERE session_user <> " +
         quote_literal(login_role);
  for (const std::string& name : custom_settings) {
    const std::string literal = quote_literal(name);
    // NULL: never set. One that was reset, or was set in a transaction only, stays behind as an empty string.
    sql += " UNION ALL SELECT 's', " + literal + ", pg_catalog.current_setting(" + literal +
           ", true) WHERE pg_catalog.current_setting(" + literal + ", true) IS NOT NULL";
  }
  return sql;
}

std::string function_settings_sql() {
  return R"(
SELECT DISTINCT pg_catalog.lower(found[1])
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang,
       pg_catalog.regexp_matches(
         -- A body that is kept parsed (BEGIN ATOMIC) has no source.
         CASE WHEN p.prosrc <> '' OR p.prokind = 'a' THEN p.prosrc ELSE pg_catalog.pg_get_functiondef(p.oid) END,
         $re$(?:\mset_config\s*\(\s*'|\mset\s+(?:session\s+)?)([a-z_][\w$]*(?:\.[\w$]+)+)$re$, 'gi') found
 WHERE l.lanname NOT IN ('internal', 'c'))";
}

SessionState read_session_state(const Rows& rows) {
  SessionState state;
  std::vector<Settings::Entry> entries;
  for (const auto& row : rows) {
    if (row.size() != 3 || !row[0] || !row[1]) continue;
    if (*row[0] == "s") {
      entries.emplace_back(*row[1], row[2].value_or(""));
    } else {
      state.pins |= pin_by_name(*row[1]);
    }
  }
  state.settings = Settings::intern(std::move(entries));
  return state;
}

std::string settings_change_sql(const Settings& from, const Settings& to) {
  std::string sql;
  if (from.entries() == to.entries()) return sql;
  // Back to the login role first: what follows may need its rights.
  for (const char* identity : {"role", "session_authorization"}) {
    const std::string* before = from.find(identity);
    if (before != nullptr) sql += std::string("RESET ") + identity + ";";
  }
  for (const auto& [name, value] : from.entries()) {
    if (!is_identity(name) && to.find(name) == nullptr) sql += "RESET " + setting_name(name) + ";";
  }
  for (const auto& [name, value] : to.entries()) {
    const std::string* before = from.find(name);
    if (!is_identity(name) && (before == nullptr || *before != value)) append_set(sql, name, value);
  }
  for (const char* identity : {"session_authorization", "role"}) {
    if (const std::string* value = to.find(identity)) append_set(sql, identity, *value);
  }
  return sql;
}

}  // namespace kintsugi::executor
