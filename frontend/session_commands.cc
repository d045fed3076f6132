// Kintsugi's own statements in a session: handed to the command queue, waited for without a thread, answered.
#include "admin/commands/command_queue.h"
#include "base/log.h"
#include "frontend/own_commands.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "parser/parser.h"
#include "parser/split_statements.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

// Without a statement_timeout: adopting a large table reads every key of it.
constexpr auto kCommandTimeout = 1h;
// What a command that was cancelled gets to end.
constexpr auto kCancelPatience = 10s;

struct Waiting {
  io::Waiter* waiter;
  std::optional<Result<admin::CommandResult>> result;
};

parser::Parser& parser_of_thread() {
  thread_local parser::Parser parser;
  return parser;
}

bool is_own(std::string_view text) {
  const auto statement = parser_of_thread().parse(text);
  return statement && is_command(**statement);
}

}  // namespace

admin::Actor Session::actor() const {
  const UserTable& users = worker_.shared().users;
  const User* user = users.find(user_.user);
  const bool admin = users.open_to_all() || (user != nullptr && user->admin);
  return {user_.user, admin ? admin::Role::kAdmin : admin::Role::kViewer, admin::Face::kSql};
}

io::Task<Result<admin::CommandResult>> Session::await_command(admin::Command command) {
  const milliseconds limit = worker_.shared().config.limits.statement_timeout;
  const Deadline deadline = Deadline::in(limit.count() > 0 ? limit : milliseconds(kCommandTimeout));
  auto working = await_work(
      [command = std::move(command), who = actor()](admin::CommandLayer& layer, const admin::CommandRun& run) {
        return layer.run(command, who, run);
      },
      deadline);
  co_return co_await std::move(working);
}

io::Task<Result<admin::CommandResult>> Session::await_work(admin::CommandQueue::Work work, Deadline deadline) {
  auto waiting = std::make_shared<Waiting>(Waiting{&waiter_, {}});
  const auto ticket = worker_.shared().commands->submit(
      std::move(work), deadline,
      [waiting, mailbox = worker_.loop().mailbox()](Result<admin::CommandResult> result) {
        mailbox->post([waiting, result = std::move(result)]() mutable {
          waiting->result = std::move(result);
          if (waiting->waiter != nullptr) waiting->waiter->notify();
        });
      });
  canceled_ = false;
  Deadline patience = deadline.is_never() ? deadline : Deadline::at(deadline.time() + kCancelPatience);
  std::optional<Error> unwanted;
  client_.want(!client_eof_, false);
  while (!waiting->result) {
    if (!unwanted) {
      if (Status wanted = still_wanted(); !wanted) {
        unwanted = wanted.error();
        *ticket = true;
        patience = patience.sooner(Deadline::in(kCancelPatience));
      }
    }
    if (worker_.ending() || client_eof_ || !co_await waiter_.wait(patience)) break;
  }
  waiting->waiter = nullptr;
  if (waiting->result) co_return std::move(*waiting->result);
  if (unwanted) co_return fail(*unwanted);
  co_return fail(sqlstate::kQueryCanceled, "canceling statement due to statement timeout");
}

// Where the table that the statement names without a schema is, as PostgreSQL finds it, or would be made.
std::string Session::schema_meant(const parser::Statement& statement) const {
  const auto* alter = statement.get<parser::AlterTable>();
  const planner::CatalogPtr& catalog = worker_.routing().catalog;
  if (alter == nullptr || names_ == nullptr || catalog == nullptr) return "public";
  const std::vector<std::string>& path = names_->context.search_path;
  if (const planner::Relation* relation = catalog->find_relation(path, alter->table.name.name()))
    return relation->schema;
  for (const std::string& schema : path) {
    if (catalog->has_schema(schema)) return schema;
  }
  return "public";
}

// One statement; its rows are in to_client_ when this ends, its tag or its error is the answer.
io::Task<Result<std::string>> Session::run_command(std::string text, bool describe,
                                                   std::vector<std::int16_t> formats) {
  auto statement = parser_of_thread().parse(text);
  if (!statement) co_return fail(std::move(statement).error());
  auto command = command_of(**statement, schema_meant(**statement));
  if (!command) co_return fail(std::move(command).error());
  auto running = await_command(std::move(*command));
  Result<admin::CommandResult> result = co_await std::move(running);
  if (!result) co_return fail(std::move(result).error());
  std::string& out = to_client_.compose();
  for (const std::string& notice : result->notices) {
    wire::append_notice(out, {.severity = "NOTICE", .sqlstate = "00000", .message = notice});
  }
  if (!result->columns.empty()) {
    if (describe) append_columns(out, result->columns, formats);
    append_rows(out, *result, formats);
    // libpq looks for a number of rows behind MOVE and MERGE.
    if (result->tag.starts_with("MOVE ") || result->tag.starts_with("MERGE "))
      co_return "SELECT " + std::to_string(result->objects.size());
  }
  co_return std::move(result->tag);
}

// ---- simple queries

// True: the text is ours and is run when the session's coroutine has its turn.
bool Session::start_commands(std::string_view text) {
  bool ours = false, others = false;
  for (const parser::Range range : parser::split_statements(text)) {
    const std::string_view statement = text.substr(range.begin, range.end - range.begin);
    (effects_of(statement).may_be_own && is_own(statement) ? ours : others) = true;
  }
  if (!ours) return false;
  if (others) {
    reject_query({.sqlstate = std::string(sqlstate::kNotSupported),
                  .message = "statements about shards and other statements cannot be sent in one message",
                  .hint = "Send them one after the other."});
    return true;
  }
  if (lease_ && lease_->status != wire::TransactionStatus::kIdle) {
    reject_query(
        {.sqlstate = "25001", .message = "statements about shards cannot run inside a transaction block"});
    return true;
  }
  commands_text_ = text;
  blocked_ = Blocked::kOnCommands;
  return true;
}

io::Task<> Session::run_commands() {
  const std::string text = std::exchange(commands_text_, {});
  for (const parser::Range range : parser::split_statements(text)) {
    auto running = run_command(text.substr(range.begin, range.end - range.begin), true, {});
    const Result<std::string> tag = co_await std::move(running);
    if (!tag) {
      wire::append_error(to_client_.compose(), "ERROR", tag.error());
      break;
    }
    wire::append_command_complete(to_client_.compose(), *tag);
  }
  wire::append_ready_for_query(to_client_.compose(), wire::TransactionStatus::kIdle);
  blocked_ = Blocked::kNo;
  unfed_ = !in_.empty();
}

}  // namespace kintsugi::frontend
