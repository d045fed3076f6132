// The tenant guard of a session (planner/tenant_guard.h): a user whom the configuration binds to one key, or a
// session that has said SET kintsugi.tenant. Statements that the planner plans are judged in plan_of(); what
// else a client may send is judged here. What is not known to be harmless is refused.
#include <algorithm>

#include "base/sql_quote.h"
#include "frontend/session.h"
#include "parser/scanner.h"
#include "shardmap/key_encoding.h"

namespace kintsugi::frontend {
namespace {

constexpr std::string_view kSetting = "kintsugi.tenant", kNewTables = "kintsugi.shard_new_tables";

// Settings that change how values look and how long things may take, and nothing about whose rows are read.
constexpr std::string_view kHarmless[] = {"application_name",
                                          "bytea_output",
                                          "client_connection_check_interval",
                                          "client_min_messages",
                                          "datestyle",
                                          "default_text_search_config",
                                          "default_transaction_deferrable",
                                          "default_transaction_isolation",
                                          "default_transaction_read_only",
                                          "extra_float_digits",
                                          "idle_in_transaction_session_timeout",
                                          "idle_session_timeout",
                                          "intervalstyle",
                                          "jit",
                                          "lock_timeout",
                                          "plan_cache_mode",
                                          "statement_timeout",
                                          "timezone",
                                          "transaction_deferrable",
                                          "transaction_isolation",
                                          "transaction_read_only",
                                          "work_mem",
                                          "xmloption"};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool is_utf8(std::string_view encoding) {
  const std::string name = lower(encoding);
  return name == "utf8" || name == "utf-8" || name == "unicode";
}

// Texts and settings that are read here must be read by PostgreSQL in the same way.
bool may_set(std::string_view name, std::string_view value) {
  const std::string folded = lower(name);
  if (folded == "client_encoding") return is_utf8(value);
  if (folded == "standard_conforming_strings") return lower(value) == "on" || value.empty();
  return std::ranges::find(kHarmless, folded) != std::end(kHarmless);
}

// libpq's options: -c name=value, -cname=value, --name=value, a backslash before what is meant as itself.
std::optional<std::vector<executor::Settings::Entry>> read_options(std::string_view options) {
  std::vector<std::string> words;
  bool open = false;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (std::isspace(static_cast<unsigned char>(options[i])) != 0) {
      open = false;
      continue;
    }
    if (!std::exchange(open, true)) words.emplace_back();
    if (options[i] == '\\' && i + 1 < options.size()) ++i;
    words.back() += options[i];
  }
  std::vector<executor::Settings::Entry> entries;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word == "-c" && i + 1 < words.size())
      word = words[++i];
    else if (word.starts_with("--") || word.starts_with("-c"))
      word = word.substr(2);
    else
      return std::nullopt;
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) return std::nullopt;
    std::string name = word.substr(0, equals);
    std::ranges::replace(name, '-', '_');
    entries.emplace_back(std::move(name), word.substr(equals + 1));
  }
  return entries;
}

// "a, b" of a key of two columns; a key of one column is the text itself.
std::vector<std::string> columns_of(const std::string& text, std::size_t columns) {
  if (columns == 1) return {text};
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == ',')
      out.emplace_back();
    else if (c != ' ' || !out.back().empty())
      out.back() += c;
  }
  return out;
}

// Those that a key without a map's name may be of: that have tables, and take it. All, when there is none such.
std::vector<const shardmap::Mapping*> maps_meant_by(const shardmap::ShardMap& map, const std::string& key) {
  std::vector<const shardmap::Mapping*> maps;
  for (const shardmap::Mapping* mapping : map.mappings()) {
    const shardmap::KeyTypes& types = mapping->key_types();
    if (!map.tables_of(mapping->name()).empty() && shardmap::encode_key(types, columns_of(key, types.size())))
      maps.push_back(mapping);
  }
  return maps.empty() ? map.mappings() : maps;
}

void append_setting_description(const parser::Show& show, std::string& out) {
  constexpr std::uint32_t kText = 25;
  const wire::Column column{
      .name = show.name == kSetting ? kSetting : kNewTables, .type_oid = kText, .type_size = -1};
  wire::append_row_description(out, std::span(&column, 1));
}

}  // namespace

// ---- whom it binds

// At login: the user's own, and what the client asks for by `options`.
Status Session::begin_guard() {
  const User* user = worker_.shared().users.find(user_.user);
  const bool bound = user != nullptr && !user->tenant_map.empty();
  std::optional<std::string> asked;
  std::vector<executor::Settings::Entry> startup;
  for (auto& entry : user_.startup) {
    const bool options = entry.first == "options";
    if (!bound && !(options && entry.second.find(kSetting) != std::string::npos) && entry.first != kSetting) {
      startup.push_back(std::move(entry));
      continue;
    }
    std::optional<std::vector<executor::Settings::Entry>> read;
    if (options)
      read = read_options(entry.second);
    else
      read.emplace().push_back(std::move(entry));
    if (!read)
      return fail(sqlstate::kTenantForbidden, "the startup options cannot be read here",
                  "Give them as -c name=value, or set them after the login.");
    for (auto& [name, value] : *read) {
      if (name == kSetting) {
        asked = value;
      } else if (bound && !may_set(name, value)) {
        return fail(sqlstate::kTenantForbidden,
                    "user \"" + user_.user + "\" is bound to one tenant and may not set " + name + " at login");
      } else {
        startup.emplace_back(name, value);
      }
    }
  }
  user_.startup = std::move(startup);
  if (bound) guarded_ = std::make_unique<Guarded>(Guarded{true, user->tenant_map, user->tenant_key, {}, 0});
  if (!asked) return {};
  if (!routes()) return fail(not_routed());
  return set_tenant(*asked);
}

Error Session::not_routed() {
  return {
      .sqlstate = std::string(sqlstate::kNotSupported),
      .message = "kintsugi.tenant needs a shard map, and this router has one [[shard]] in its configuration",
      .hint = "Configure [map] instead of [[shard]], and CREATE SHARD."};
}

// The guard as of the map that statements are planned on now.
const planner::TenantGuard& Session::guard() {
  Guarded& mine = *guarded_;
  if (mine.version == worker_.routing().version && !mine.now.shown.empty()) return mine.now;
  mine.version = worker_.routing().version;
  mine.now = {mine.map, {}, mine.map + "(" + mine.key + ")"};
  const shardmap::Mapping* mapping = worker_.map()->mapping(mine.map);
  if (mapping == nullptr) return mine.now;
  auto key = shardmap::encode_key(mapping->key_types(), columns_of(mine.key, mapping->key_types().size()));
  if (key) mine.now.key = std::move(*key);
  return mine.now;
}

// SET kintsugi.tenant: '42' where one map alone can be meant, 'tenants(42)' where several can.
Status Session::set_tenant(const std::string& value) {
  const shardmap::ShardMap& map = *worker_.map();
  std::string name, key = value;
  const std::size_t open = value.find('(');
  std::string meant = open != std::string::npos && value.ends_with(')') ? value.substr(0, open) : "";
  if (map.mapping(meant) == nullptr) meant = unquote_identifier(meant);
  if (map.mapping(meant) != nullptr) {
    name = meant;
    key = value.substr(open + 1, value.size() - open - 2);
  } else if (guarded_ && guarded_->bound) {
    name = guarded_->map;
  } else {
    if (map.mappings().size() > 1 && !meant.empty())
      return fail(sqlstate::kUndefinedObject, "shard map \"" + meant + "\" does not exist",
                  "SHOW SHARD MAPS lists those that are there.");
    const auto maps = maps_meant_by(map, key);
    if (maps.size() != 1) {
      return fail(sqlstate::kInvalidParameter,
                  maps.empty() ? "there is no shard map" : "there are several shard maps with such a key",
                  maps.empty() ? "CREATE SHARD MAP makes one."
                               : "SET kintsugi.tenant = 'map(key)' says which is meant.");
    }
    name = maps.front()->name();
  }
  if (key.empty())
    return fail(sqlstate::kInvalidParameter, "kintsugi.tenant is empty", "RESET kintsugi.tenant ends it.");
  const shardmap::Mapping* mapping = map.mapping(name);
  if (mapping == nullptr) return fail(sqlstate::kInvalidParameter, "there is no shard map " + name);
  KG_TRY(const std::string encoded,
         shardmap::encode_key(mapping->key_types(), columns_of(key, mapping->key_types().size())));
  if (guarded_ && guarded_->bound) {
    const planner::TenantGuard& mine = guard();
    if (mine.map == name && mine.key == encoded) return {};
    return fail(planner::outside(mine, "user \"" + user_.user + "\" is bound to it"));
  }
  guarded_ = std::make_unique<Guarded>(Guarded{false, name, key, {}, 0});
  cursors_.clear();
  return {};
}

// SET, RESET and SHOW of kintsugi.tenant: nothing that a shard hears of.
StatementEnd Session::run_tenant(const KnownStatement& known, bool describe) {
  if (const auto* show = known.tree->get<parser::Show>()) {
    std::string& out = to_client_.compose();
    if (describe) append_setting_description(*show, out);
    const std::string shown = show->name == kNewTables ? names()->context.shard_new_tables
                              : guarded_               ? guard().shown
                                                       : "";
    const std::optional<std::string_view> value(shown);
    wire::append_data_row(out, std::span(&value, 1));
    return StatementEnd::complete("SHOW");
  }
  const auto* set = known.tree->get<parser::Set>();
  if (set != nullptr && set->local) {
    return StatementEnd::refused(
        {.sqlstate = std::string(sqlstate::kNotSupported),
         .message = "SET LOCAL kintsugi.tenant is not supported",
         .hint = "SET kintsugi.tenant before the transaction; it holds until it is set again or RESET."});
  }
  if (begun_places() > 0) {
    return StatementEnd::refused(
        {.sqlstate = "25001",
         .message = "kintsugi.tenant cannot be changed in a transaction that has begun to work",
         .hint =
             "Let it be the first statement, or set it before the transaction. ROLLBACK does not undo it."});
  }
  if (set == nullptr || set->form == parser::Set::Form::kDefault) {
    if (guarded_ && guarded_->bound) {
      return StatementEnd::refused(planner::outside(guard(), "user \"" + user_.user + "\" is bound to it"));
    }
    guarded_.reset();
    return StatementEnd::complete(set == nullptr ? "RESET" : "SET");
  }
  if (set->form != parser::Set::Form::kValue || set->values.size() != 1)
    return StatementEnd::refused(
        {.sqlstate = std::string(sqlstate::kInvalidParameter), .message = "kintsugi.tenant is one value"});
  if (Status done = set_tenant(std::string(set->values[0].text)); !done)
    return StatementEnd::refused(done.error());
  return StatementEnd::complete("SET");
}

void Session::describe_tenant(const KnownStatement& known, std::string& out) {
  if (const auto* show = known.tree->get<parser::Show>())
    append_setting_description(*show, out);
  else
    wire::append_empty(out, wire::server::kNoData);
}

// ---- what a guarded session may not send

// A text that PostgreSQL might read in another way than the router does proves nothing.
std::optional<Error> Session::guard_misreads() {
  const std::string* encoding = reported_->find("client_encoding");
  if (!standard_strings()) return planner::outside(guard(), "standard_conforming_strings is off");
  if (encoding == nullptr || !is_utf8(*encoding))
    return planner::outside(guard(), "the client's encoding is not UTF8");
  return std::nullopt;
}

std::optional<Error> Session::guard_refuses(const KnownStatement& known) {
  if (guarded_ == nullptr) return std::nullopt;
  if (auto error = guard_misreads()) return error;
  const auto no = [this](const std::string& why) { return std::optional(planner::outside(guard(), why)); };
  switch (known.kind) {
    case StatementKind::kUnknown: return no("a statement that cannot be read here");
    case StatementKind::kOwn: return no("a statement about shards");
    case StatementKind::kTenant: return std::nullopt;
    case StatementKind::kPlanned:
    case StatementKind::kExplainRoute:
      if (known.refusal) return no(known.refusal->message);
      return planner::refuses_always(guard(), *known.analysis);
    case StatementKind::kTransaction: {
      using Kind = parser::Transaction::Kind;
      const Kind kind = known.tree->get<parser::Transaction>()->kind;
      if (kind == Kind::kPrepare || kind == Kind::kCommitPrepared || kind == Kind::kRollbackPrepared)
        return no("prepared transactions, which belong to no session");
      return std::nullopt;
    }
    case StatementKind::kCursor: {
      std::string_view name;
      if (const auto* fetch = known.tree->get<parser::Fetch>()) name = fetch->cursor.text;
      if (const auto* close = known.tree->get<parser::CloseCursor>()) {
        if (close->all) return std::nullopt;
        name = close->name.text;
      }
      if (!cursors_.contains(name))
        return no("a cursor that was not declared by this session under this tenant");
      return std::nullopt;
    }
    case StatementKind::kNamed:
      if (known.tree->get<parser::Deallocate>() != nullptr) return std::nullopt;
      return no("PREPARE and EXECUTE (the extended protocol's prepared statements may be used)");
    case StatementKind::kSession: return guard_refuses_setting(*known.tree);
  }
  return no("this kind of statement");
}

std::optional<Error> Session::guard_refuses_setting(const parser::Statement& statement) {
  using Form = parser::Set::Form;
  const auto no = [this](std::string_view name) {
    return std::optional(planner::outside(guard(), "the setting " + std::string(name)));
  };
  if (const auto* set = statement.get<parser::Set>()) {
    switch (set->form) {
      case Form::kTransaction:
      case Form::kCharacteristics:
      case Form::kConstraints: return std::nullopt;
      case Form::kSnapshot: return no("of a snapshot");
      case Form::kValue: {
        const std::string_view value = set->values.size() == 1 ? set->values[0].text : "several";
        return may_set(set->name, value) ? std::nullopt : no(set->name);
      }
      case Form::kDefault:
      case Form::kCurrent:
        return may_set(set->name, "on") || may_set(set->name, "utf8") ? std::nullopt : no(set->name);
    }
  }
  if (const auto* reset = statement.get<parser::Reset>()) {
    if (reset->all) {
      if (!guarded_->bound && txn_.open) return no("RESET ALL in a transaction");
      return std::nullopt;
    }
    return may_set(reset->name, "on") || may_set(reset->name, "utf8") ? std::nullopt : no(reset->name);
  }
  return std::nullopt;  // SHOW, DISCARD
}

// RESET ALL and DISCARD ALL take back what the session has set itself.
void Session::note_guard_reset(const KnownStatement& known) {
  if (guarded_ == nullptr || guarded_->bound || txn_.open) return;
  const auto* reset = known.tree->get<parser::Reset>();
  const auto* discard = known.tree->get<parser::Discard>();
  if ((reset != nullptr && reset->all) || (discard != nullptr && discard->kind == parser::Discard::Kind::kAll))
    guarded_.reset();
}

// Only white space: nothing that PostgreSQL could run.
bool Session::is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

}  // namespace kintsugi::frontend
