// Statements that are Kintsugi's own, and what definitions mean for the map and the catalogue.
#include "frontend/session.h"
#include "parser/scanner.h"

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
  const std::vector<MapChange> changes = std::exchange(map_changes_, {});
  for (const MapChange& change : changes) {
    auto recording = await_work(
        [change, who = actor()](admin::CommandLayer& layer, const admin::CommandRun& run) {
          return change.forget
                     ? layer.forget_table(change.table.schema, change.table.name, "DROP TABLE", who, run)
                     : layer.record_table(change.table, "CREATE TABLE", who, run);
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
}

}  // namespace kintsugi::frontend
