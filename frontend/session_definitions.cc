// Statements that are Kintsugi's own, and what definitions mean for the map and the catalogue.
#include <algorithm>
#include <cctype>

#include "base/sql_quote.h"
#include "frontend/session.h"
#include "parser/scanner.h"
#include "planner/new_table.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kRecordTimeout = 60s;
constexpr auto kRefreshTimeout = 5s;

// SHOW changes nothing.
bool is_show(std::string_view text) {
  parser::Scanner scanner(text, true);
  return parser::is_keyword(text, scanner.next(), "show");
}

}  // namespace

io::Task<StatementEnd> Session::run_own(std::string text, bool describe, std::vector<std::int16_t> formats) {
  const bool shows = is_show(text);
  auto running = run_command(std::move(text), describe, std::move(formats));
  Result<std::string> tag = co_await std::move(running);
  if (!tag) co_return StatementEnd::refused(tag.error());
  if (shows) co_return StatementEnd::complete(std::move(*tag));
  // A table that was adopted, a shard that came: the next statement is to see it.
  auto refreshing = refresh_catalog();
  co_await std::move(refreshing);
  co_return StatementEnd::complete(std::move(*tag));
}

// The shards have committed what the DDL says: now the map is told, and every router with it.
io::Task<Status> Session::settle_definitions() {
  const std::vector<MapChange> changes = map_changes_;
  forget_changes();
  for (const MapChange& change : changes) {
    if (change.alters) continue;
    auto recording = await_work(
        [change, who = actor()](admin::CommandLayer& layer, const admin::CommandRun& run) {
          const std::string table =
              quote_identifier(change.table.schema) + "." + quote_identifier(change.table.name);
          return change.forget ? layer.forget_table(change.table.schema, change.table.name,
                                                    "DROP TABLE " + table, who, run)
                               : layer.record_table(change.table, "CREATE TABLE " + table, who, run);
        },
        Deadline::in(kRecordTimeout));
    auto recorded = co_await std::move(recording);
    if (!recorded) {
      Error error = std::move(recorded).error();
      error.detail =
          "The shards have the table " + change.table.display() + "; the shard map has not. " + error.detail;
      error.hint =
          change.forget ? "Repeat DROP TABLE IF EXISTS." : "ALTER TABLE ... SHARD BY or REPLICATED adopts it.";
      co_return fail(std::move(error));
    }
  }
  if (std::exchange(catalog_is_old_, false)) {
    auto refreshing = refresh_catalog();
    co_await std::move(refreshing);
  }
  co_return Status{};
}

// What a definition that has run will mean for the map, and what it means for this transaction until then.
void Session::note_definition(const planner::Ddl& ddl, const std::string& text) {
  parser::Normaliser normal;
  const KnownRef known = look_up(text, {0, static_cast<std::uint32_t>(text.size())}, normal, nullptr);
  const NamesRef meaning = names();
  const planner::Catalog& catalog = *worker_.routing().catalog;
  const auto* alter = known->tree == nullptr ? nullptr : known->tree->get<parser::AlterTable>();
  const auto* view = known->tree == nullptr ? nullptr : known->tree->get<parser::CreateView>();
  const auto relation_before = [&](std::string_view schema, std::string_view name) -> const planner::Relation* {
    for (const auto& fresh : meaning->context.new_tables)
      if (fresh.table.schema == schema && fresh.table.name == name) return fresh.relation.get();
    return catalog.relation(schema, name);
  };
  std::vector<MapChange> made;
  for (const shardmap::Table& table : ddl.record) {
    MapChange change{.table = table};
    if (alter != nullptr && !ddl.forget.empty()) {
      const auto* before = relation_before(ddl.forget.front().first, ddl.forget.front().second);
      if (before != nullptr)
        change.relation = planner::relation_changed_by(*known->tree, *before, meaning->context, catalog);
    } else if (known->tree != nullptr) {
      change.relation = planner::relation_made_by(*known->tree, table, meaning->context, catalog);
    }
    made.push_back(std::move(change));
  }
  for (const auto& [schema, name] : ddl.forget) {
    MapChange change{.forget = true};
    change.table.schema = schema;
    change.table.name = name;
    made.push_back(std::move(change));
  }
  if (alter != nullptr && made.empty() && txn_.open) {
    const planner::Relation* before = nullptr;
    const shardmap::Table* table = nullptr;
    const std::string_view schema = alter->table.name.schema(), name = alter->table.name.name();
    for (const std::string& each : meaning->context.search_path) {
      const std::string_view in = schema.empty() ? std::string_view(each) : schema;
      before = relation_before(in, name);
      table = worker_.map()->table(in, name);
      for (const auto& fresh : meaning->context.new_tables)
        if (fresh.table.schema == in && fresh.table.name == name) table = &fresh.table;
      if (before != nullptr || table != nullptr) break;
    }
    if (table != nullptr && before != nullptr)
      made.push_back(
          {.table = *table,
           .alters = true,
           .relation = planner::relation_changed_by(*known->tree, *before, meaning->context, catalog)});
  }
  if (view != nullptr && txn_.open) {
    MapChange change{.alters = true, .unreadable = true};
    change.table.name = view->name.name();
    made.push_back(std::move(change));
  }
  if (made.empty()) return;
  for (MapChange& change : made) map_changes_.push_back(std::move(change));
  names_ = nullptr;
  names_known_ = false;  // a SET LOCAL may be part of what they mean
}

// All but the first so many, which a savepoint keeps.
void Session::forget_changes(std::size_t left) {
  if (left == 0) changes_at_.clear();
  if (map_changes_.size() <= left) return;
  map_changes_.resize(left);
  names_ = nullptr;
  names_known_ = false;
}

NamesRef Session::names_with_changes(NamesRef meaning) {
  if (map_changes_.empty()) return meaning;
  planner::NameContext context = meaning->context;
  for (const MapChange& change : map_changes_) {
    const shardmap::Table& table = change.table;
    if (change.unreadable) continue;
    const auto same = [&](const auto& fresh) {
      return fresh.table.schema == table.schema && fresh.table.name == table.name;
    };
    std::erase_if(context.new_tables, same);
    const std::pair<std::string, std::string> name(table.schema, table.name);
    std::erase(context.gone_tables, name);
    if (change.forget)
      context.gone_tables.push_back(name);
    else
      context.new_tables.push_back({table, change.relation});
  }
  return worker_.book().names_of_transaction(std::move(context));
}

// A view that the transaction has made can be read when the catalogue shows it.
std::optional<Error> Session::concerns_new_table(std::string_view text) const {
  for (const MapChange& change : map_changes_) {
    if (!change.unreadable) continue;
    const auto same = [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    };
    const std::string& name = change.table.name;
    if (std::search(text.begin(), text.end(), name.begin(), name.end(), same) == text.end()) continue;
    return Error{.sqlstate = std::string(sqlstate::kNotSupported),
                 .message = "view " + name + " was made in this transaction",
                 .hint = "Commit first; then use it."};
  }
  return std::nullopt;
}

// Until every thread has the catalogue as it is now, or cannot have it.
io::Task<> Session::refresh_catalog() {
  struct Refreshing {
    io::Waiter* waiter;
    bool done = false;
  };
  CatalogSource* const catalogs = worker_.services().catalogs.get();
  if (catalogs != nullptr) {
    auto refreshing = std::make_shared<Refreshing>(Refreshing{&waiter_});
    catalogs->refresh("a statement", [refreshing, mailbox = worker_.loop().mailbox()] {
      mailbox->post([refreshing] {
        refreshing->done = true;
        if (refreshing->waiter != nullptr) refreshing->waiter->notify();
      });
    });
    const Deadline deadline = Deadline::in(kRefreshTimeout);
    while (!refreshing->done && !deadline.passed() && !worker_.ending()) (void)co_await waiter_.wait(deadline);
    refreshing->waiter = nullptr;
  }
  refreshed_ = true;
  if (!txn_.open) defined_ = false;
}

}  // namespace kintsugi::frontend
