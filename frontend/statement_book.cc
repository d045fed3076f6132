#include "frontend/statement_book.h"

#include "frontend/called_settings.h"
#include "frontend/own_commands.h"
#include "frontend/own_forms.h"
#include "frontend/statement_effects.h"

namespace kintsugi::frontend {
namespace {

constexpr std::size_t kNamesMax = 1000;  // different search_paths that are remembered

char fold(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// The schemas of a search_path as its setting holds it: a, "B c", "$user".
std::vector<std::string> schemas_of(std::string_view search_path, std::string_view user) {
  std::vector<std::string> schemas;
  std::size_t at = 0;
  while (at < search_path.size()) {
    while (at < search_path.size() && (search_path[at] == ' ' || search_path[at] == ',')) ++at;
    if (at == search_path.size()) break;
    std::string name;
    if (search_path[at] == '"') {
      for (++at; at < search_path.size(); ++at) {
        if (search_path[at] == '"' && (++at == search_path.size() || search_path[at] != '"')) break;
        name += search_path[at];
      }
    } else {
      for (; at < search_path.size() && search_path[at] != ',' && search_path[at] != ' '; ++at)
        name += fold(search_path[at]);
    }
    if (name == "$user") name = user;
    if (!name.empty()) schemas.push_back(std::move(name));
  }
  return schemas;
}

// kintsugi.tenant is the router's own; kintsugi.shard_new_tables is shown by it, as a shard that was never told
// has none.
bool is_own_setting(const parser::Statement& statement) {
  constexpr std::string_view kName = "kintsugi.tenant", kNewTables = "kintsugi.shard_new_tables";
  const auto* set = statement.get<parser::Set>();
  const auto* reset = statement.get<parser::Reset>();
  const auto* show = statement.get<parser::Show>();
  return (set != nullptr && set->name == kName) || (reset != nullptr && reset->name == kName) ||
         (show != nullptr && (show->name == kName || show->name == kNewTables));
}

std::optional<Error> foreign_snapshot(const parser::Statement& statement) {
  const auto* set = statement.get<parser::Set>();
  if (set == nullptr || set->form != parser::Set::Form::kSnapshot) return std::nullopt;
  return Error{.sqlstate = std::string(sqlstate::kNotSupported),
               .message = "SET TRANSACTION SNAPSHOT: a snapshot that was exported is that of one shard",
               .hint = "Leave out --jobs and --snapshot of pg_dump."};
}

StatementKind kind_of(const parser::Statement& statement) {
  using namespace parser;
  if (is_own_setting(statement)) return StatementKind::kTenant;
  if (statement.get<Transaction>() != nullptr) return StatementKind::kTransaction;
  if (statement.get<Set>() != nullptr || statement.get<Reset>() != nullptr ||
      statement.get<Show>() != nullptr || statement.get<Discard>() != nullptr) {
    return StatementKind::kSession;
  }
  if (statement.get<Fetch>() != nullptr || statement.get<CloseCursor>() != nullptr)
    return StatementKind::kCursor;
  if (statement.get<Prepare>() != nullptr || statement.get<Execute>() != nullptr ||
      statement.get<Deallocate>() != nullptr) {
    return StatementKind::kNamed;
  }
  if (is_command(statement)) return StatementKind::kOwn;
  if (const auto* explain = statement.get<Explain>(); explain != nullptr && explain->route) {
    return StatementKind::kExplainRoute;
  }
  return StatementKind::kPlanned;
}

}  // namespace

NamesRef StatementBook::names(std::string_view search_path, std::string_view user,
                              std::string_view shard_new_tables) {
  std::string key;
  key.append(search_path).append(1, '\0').append(user).append(1, '\0').append(shard_new_tables);
  auto at = names_.find(key);
  if (at != names_.end()) return at->second;
  if (names_.size() >= kNamesMax) names_.clear();  // their numbers are never used again
  auto made = std::make_shared<const Names>(
      Names{next_names_++, {schemas_of(search_path, user), std::string(user), std::string(shard_new_tables)}});
  return names_.emplace(std::move(key), std::move(made)).first->second;
}

NamesRef StatementBook::names_of_transaction(planner::NameContext context) {
  return std::make_shared<const Names>(Names{next_names_++, std::move(context)});
}

KnownRef StatementBook::look_up(std::string_view text, parser::Range statement, const Names& names,
                                const Routing& routing, parser::Normaliser& normal, bool* unknown_names) {
  static const KnownRef kUnreadable = std::make_shared<const KnownStatement>();
  if (!normal.read(text, statement)) return kUnreadable;
  const std::uint64_t context = (routing.version << 24) + names.id;
  if (KnownRef* found = cache_.find(normal, context)) return *found;
  std::vector<std::uint32_t> pinned;
  std::size_t bytes = 0;
  bool unknown = false, once = false;
  KnownRef learnt = learn(text, statement, names, routing, normal, &pinned, &unknown, &once, &bytes);
  if (unknown_names != nullptr) *unknown_names = unknown;
  // What could not be resolved may be there in a moment.
  if (!unknown && !once) cache_.insert(normal, context, learnt, bytes, pinned);
  return learnt;
}

KnownRef StatementBook::learn(std::string_view text, parser::Range statement, const Names& names,
                              const Routing& routing, const parser::Normaliser& normal,
                              std::vector<std::uint32_t>* pinned, bool* unknown_names, bool* once,
                              std::size_t* bytes) {
  auto known = std::make_shared<KnownStatement>();
  *bytes = sizeof(KnownStatement);
  StatementEffects effects = effects_of(text.substr(statement.begin, statement.end - statement.begin));
  known->effects = effects.flags & ~std::uint32_t{kDrawsFirst};  // which hangs on literals
  if ((effects.flags & kCallsSetConfig) != 0 &&
      sets_alike(text.substr(statement.begin, statement.end - statement.begin)))
    known->effects |= kSetsAlike;
  known->rescan = !effects.named.empty() || !effects.custom_settings.empty() ||
                  !effects.local_custom_settings.empty() ||
                  (effects.flags & (kMaySet | kMaySetLocally | kPinsForGood | kReadsSequence)) != 0;
  auto tree = parser_.parse(text, statement);
  if (!tree) {
    // What only looks like PostgreSQL's goes to PostgreSQL, which says why it cannot be read.
    known->refusal = misspelt(text.substr(statement.begin, statement.end - statement.begin), tree.error());
    if (known->refusal) known->kind = StatementKind::kPlanned;
    return known;
  }
  known->tree = std::move(*tree);
  known->kind = kind_of(*known->tree);
  *bytes += known->tree->bytes();
  if (known->kind == StatementKind::kSession) {
    known->refusal = bad_setting(*known->tree);
    if (!known->refusal && routing.map->shards().size() > 1) known->refusal = foreign_snapshot(*known->tree);
    if (known->refusal) known->kind = StatementKind::kPlanned;
    return known;
  }
  if (known->kind != StatementKind::kPlanned && known->kind != StatementKind::kExplainRoute) return known;
  auto outcome =
      planner::analyse(known->tree, normal, statement.begin, names.context, *routing.catalog, *routing.map);
  if (!outcome) {
    known->refusal = std::move(outcome).error();
    return known;
  }
  known->analysis = std::move(outcome->analysis);
  *bytes += planner::bytes_of(*known->analysis);
  *pinned = std::move(outcome->pinned);
  *unknown_names = outcome->unknown_names;
  *once = outcome->once;
  return known;
}

}  // namespace kintsugi::frontend
