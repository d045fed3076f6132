// The extended protocol where the router itself does what a portal says: statements for several shards, the
// transaction's ends, Kintsugi's own. Parse only notes the text, Bind makes the plan, Execute is an errand
// (session_execute.cc).
#include <algorithm>

#include "admin/commands/command_layer.h"
#include "executor/describe.h"
#include "frontend/made_types.h"
#include "frontend/own_commands.h"
#include "frontend/session.h"
#include "frontend/statement_effects.h"
#include "frontend/statement_names.h"
#include "parser/split_statements.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {
namespace {

// Of a statement of Kintsugi's own.
void append_own_description(const parser::Statement& statement, std::span<const std::int16_t> formats,
                            std::string& bytes) {
  const auto command = command_of(statement, "public");
  const auto columns = command ? admin::columns_of(*command) : std::vector<admin::ResultColumn>();
  if (columns.empty())
    wire::append_empty(bytes, wire::server::kNoData);
  else
    append_columns(bytes, columns, formats);
}

using namespace std::chrono_literals;
using executor::Expected;
namespace client = wire::client;
namespace server = wire::server;

constexpr auto kControlTimeout = 30s;

// By name and type. A type that users have made has another number on each shard.
bool same_columns(const std::string& before, const std::string& now) {
  if (before.empty() || now.empty()) return before.empty() == now.empty();
  const auto left = wire::read_row_description(before), right = wire::read_row_description(now);
  if (!left || !right) return false;
  return std::ranges::equal(*left, *right, [](const wire::Column& a, const wire::Column& b) {
    const bool made = !is_built_in(a.type_oid) && !is_built_in(b.type_oid);
    return a.name == b.name && a.type_modifier == b.type_modifier && (made || a.type_oid == b.type_oid);
  });
}

std::string empty_message(char type) {
  std::string bytes;
  wire::append_empty(bytes, type);
  return bytes;
}

}  // namespace

// What the router makes of a text that is prepared. Null: PostgreSQL is to look at it as it is.
PreparedTextRef Session::understand(const wire::ParseMessage& message) {
  if (describing_ != nullptr && describing_->described && describing_->text == message.text &&
      describing_->type_oids == message.type_oids && describing_->version == worker_.routing().version) {
    return describing_;
  }
  auto prepared = std::make_shared<PreparedText>();
  prepared->text.assign(message.text);
  prepared->type_oids.assign(message.type_oids);
  const auto statements = parser::split_statements(prepared->text, standard_strings());
  if (statements.size() != 1) return nullptr;
  prepared->range = statements.front();
  return prepared;
}

// Looks it up again when the map, the catalogue or the meaning of names has changed.
const KnownStatement& Session::known_of(PreparedText& prepared, bool* unknown_names) {
  const std::uint64_t names_id = names()->id;
  if (prepared.known == nullptr || prepared.version != worker_.routing().version ||
      prepared.names != names_id) {
    prepared.known = look_up(prepared.text, prepared.range, prepared.normal, unknown_names);
    prepared.version = worker_.routing().version;
    prepared.names = names_missing_ ? 0 : names_id;  // then it is looked up again
  }
  return *prepared.known;
}

// EXPLAIN (ROUTE) of a statement with $1: what is asked of a shard is the statement itself.
bool Session::explains_parameters(const KnownStatement& known) {
  return known.kind == StatementKind::kExplainRoute && known.tree->parameters() > 0;
}

bool Session::is_routers_own(const KnownStatement& known) {
  if (known.kind != StatementKind::kPlanned && ends_elsewhere(known)) return true;
  switch (known.kind) {
    case StatementKind::kTransaction:
    case StatementKind::kTenant:
    case StatementKind::kOwn:
    case StatementKind::kExplainRoute: return true;
    case StatementKind::kNamed: return !named_passes(*known.tree);
    case StatementKind::kSession: return begun_places() > 1 && known.tree->get<parser::Show>() == nullptr;
    default: return false;
  }
}

// In a transaction that has failed nothing else is listened to.
bool Session::may_end_failure(const KnownStatement& known) {
  if (known.kind != StatementKind::kTransaction) return false;
  using Kind = parser::Transaction::Kind;
  const Kind kind = known.tree->get<parser::Transaction>()->kind;
  return kind != Kind::kBegin && kind != Kind::kSavepoint && kind != Kind::kRelease;
}

// Parse. kDone: the router keeps it to itself.
Session::Handled Session::route_parse(const wire::ParseMessage& message, PreparedTextRef* text,
                                      ShardId* where) {
  *where = 0;
  if (backend_error_) {
    reject_extended(*std::exchange(backend_error_, std::nullopt));
    return Handled::kRejected;
  }
  if (!names_are_known(message.text)) {
    if (lease_ && !leave_place()) return Handled::kBlocked;
    start_errand({.kind = Errand::kAskNames});
    return Handled::kBlocked;
  }
  *text = understand(message);
  if (*text == nullptr && guarded_ != nullptr && !is_blank(message.text)) {
    reject_extended(planner::outside(guard(), "a text that is not one statement"));
    return Handled::kRejected;
  }
  if (*text == nullptr) return Handled::kPass;
  PreparedText& prepared = **text;
  bool unknown_names = false;
  const KnownStatement& known = known_of(prepared, &unknown_names);
  if (must_read_catalog(known, unknown_names)) {
    if (lease_ && !leave_place()) return Handled::kBlocked;
    start_errand({.kind = Errand::kRefreshCatalog});
    return Handled::kBlocked;
  }
  if (auto error = guard_refuses(known)) {
    reject_extended(*error);
    return Handled::kRejected;
  }
  if (is_routers_own(known)) {
    if (status() != wire::TransactionStatus::kFailed || may_end_failure(known))
      return explains_parameters(known) ? have_described(*text) : Handled::kDone;
    reject_extended(aborted());
    return Handled::kRejected;
  }
  if (status() == wire::TransactionStatus::kFailed) {
    // Whether it is a statement at all PostgreSQL looks at first.
    if (failed_here() && known.kind == StatementKind::kUnknown) return Handled::kPass;
    reject_extended(aborted());
    return Handled::kRejected;
  }
  if (known.kind == StatementKind::kCursor) {
    *where = cursor_place(*known.tree);
    return Handled::kPass;
  }
  if (known.kind == StatementKind::kNamed) *where = home();
  if (known.kind != StatementKind::kPlanned) return Handled::kPass;
  if (known.refusal) {
    reject_extended(*known.refusal);
    return Handled::kRejected;
  }
  if (takes_the_snapshot(known)) {  // PostgreSQL takes it for Parse already
    if (lease_ && !leave_place()) return Handled::kBlocked;
    txn_.due = true;
    start_errand({.kind = Errand::kHold});
    return Handled::kBlocked;
  }
  if (planner::depends_on_parameters(*known.analysis, prepared.normal)) {
    // Bind stands right behind, as a rule, and knows where.
    if (planner::needs_home(*known.analysis)) *where = home();  // where all its tables are
    if (auto shard = shard_of_next_bind(message, prepared, known)) *where = *shard;
    return Handled::kPass;
  }
  auto plan = plan_of(known, prepared.normal, prepared.range.begin, {});
  if (!plan) {
    reject_extended(plan.error());
    return Handled::kRejected;
  }
  if (const auto* route = std::get_if<planner::Route>(&*plan); route != nullptr && route->text.empty()) {
    *where = place_of(*route, known.effects);
    return Handled::kPass;
  }
  if (std::holds_alternative<planner::Hold>(*plan)) return Handled::kPass;  // Bind will wait
  return have_described(*text);
}

// What a description holds for: a version of the routing, or what this transaction has defined until now.
std::uint64_t Session::described_now() {
  return map_changes_.empty() ? worker_.routing().version : ~names()->id;
}

Error Session::other_columns() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "cached plan must not change result type"};
}

// kDone: a shard has said what its parameters and columns are, and they are as the client knows them. kBlocked:
// it is asked, and the message comes again.
Session::Handled Session::have_described(const PreparedTextRef& text) {
  if (text->described && text->described_as_of == described_now()) {
    if (!text->changed) return Handled::kDone;
    reject_extended(other_columns(), "RevalidateCachedQuery");
    return Handled::kRejected;
  }
  if (lease_ && !leave_place()) return Handled::kBlocked;
  describing_ = text;
  start_errand({.kind = Errand::kDescribe});
  return Handled::kBlocked;
}

std::optional<ShardId> Session::shard_of_next_bind(const wire::ParseMessage& message, PreparedText& prepared,
                                                   const KnownStatement& known) {
  auto head = wire::client::peek(behind_, 1 << 20);
  if (!head || !head->has_value() || (*head)->type != client::kBind || behind_.size() < (*head)->frame_size())
    return std::nullopt;
  auto bind = wire::read_bind(behind_.substr(wire::kHeaderBytes, (*head)->body_size));
  if (!bind || bind->statement != message.statement) return std::nullopt;
  auto plan = plan_of_bind(prepared, known, *bind);
  if (!plan) return std::nullopt;  // Bind itself will say why
  const auto* route = std::get_if<planner::Route>(&*plan);
  if (route == nullptr) return std::nullopt;
  return place_of(*route, known.effects);
}

Result<planner::Plan> Session::plan_of_bind(PreparedText& prepared, const KnownStatement& known,
                                            const wire::BindMessage& bind) {
  KG_TRY(const wire::BindValues values, wire::read_bind_values(bind));
  return plan_of(known, prepared.normal, prepared.range.begin, parameters_of(prepared, values));
}

// Good until the next call.
std::span<const planner::Parameter> Session::parameters_of(const PreparedText& prepared,
                                                           const wire::BindValues& values) {
  std::vector<planner::Parameter>& parameters = worker_.parameters_scratch;
  parameters.clear();
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    planner::Parameter parameter{
        .binary = values.values[i].binary, .null = values.values[i].is_null, .bytes = values.values[i].bytes};
    if (i < prepared.types.size()) {
      parameter.type = prepared.types[i];
    } else if (4 * i + 4 <= prepared.type_oids.size()) {
      parameter.type = wire::load_u32(prepared.type_oids.data() + 4 * i);
    }
    parameters.push_back(parameter);
  }
  return parameters;
}

// Bind. kPass: it goes to `where`.
Session::Handled Session::route_bind(const wire::BindMessage& bind, const PreparedTextRef& text, ShardId* where,
                                     bool* writes, bool* again) {
  *where = 0;
  *again = false;
  *writes = true;
  if (backend_error_) {
    reject_extended(*std::exchange(backend_error_, std::nullopt));
    return Handled::kRejected;
  }
  if (const Portal* taken = find_portal(bind.portal); taken != nullptr) {
    if (!bind.portal.empty()) {
      reject_extended(
          {.sqlstate = "42P03", .message = "cursor \"" + std::string(bind.portal) + "\" already exists"});
      return Handled::kRejected;
    }
    if (taken->fan != nullptr) {  // its rows are still to come
      if (lease_ && !leave_place()) return Handled::kBlocked;
      start_errand({.kind = Errand::kDropPortal});
      return Handled::kBlocked;
    }
  }
  if (text == nullptr) {
    if (guarded_ == nullptr || (bind.statement.empty() && unnamed_.valid && is_blank(unnamed_.text)))
      return Handled::kPass;
    const auto at = statements_.find(std::string(bind.statement));
    if (at != statements_.end() && is_blank(at->second->statement->text)) return Handled::kPass;
    reject_extended(planner::outside(guard(), "a prepared statement that this session does not know"));
    return Handled::kRejected;
  }
  if (!names_are_known(text->text)) {
    if (lease_ && !leave_place()) return Handled::kBlocked;
    start_errand({.kind = Errand::kAskNames});
    return Handled::kBlocked;
  }
  PreparedText& prepared = *text;
  const KnownStatement& known = known_of(prepared, nullptr);
  if (auto error = guard_refuses(known)) {
    reject_extended(*error);
    return Handled::kRejected;
  }
  if (known.kind == StatementKind::kUnknown && must_be_read()) {
    reject_extended(unread());
    return Handled::kRejected;
  }
  if (known.kind == StatementKind::kPlanned && failed_here()) return Handled::kPass;
  if (known.kind == StatementKind::kPlanned && txn_.failed) {
    reject_extended(aborted());
    return Handled::kRejected;
  }
  if (is_routers_own(known)) {
    if (status() != wire::TransactionStatus::kFailed || may_end_failure(known)) {
      if (explains_parameters(known))
        if (const Handled done = have_described(text); done != Handled::kDone) return done;
      return bind_portal(bind, text, {});
    }
    reject_extended(aborted());
    return Handled::kRejected;
  }
  if (txn_.failed && !failed_here()) {
    reject_extended(aborted());
    return Handled::kRejected;
  }
  if (known.kind == StatementKind::kCursor) *where = cursor_place(*known.tree);
  if (known.kind == StatementKind::kNamed) *where = home();
  if (known.kind == StatementKind::kSession) note_guard_reset(known);
  if (known.kind != StatementKind::kPlanned) {
    portals_.erase(std::string(bind.portal));
    return Handled::kPass;
  }
  auto plan = plan_of_bind(prepared, known, bind);
  if (!plan) {
    reject_extended(plan.error());
    return Handled::kRejected;
  }
  if (const auto* hold = std::get_if<planner::Hold>(&*plan)) {
    if (lease_ && !leave_place()) return Handled::kBlocked;
    start_errand({.kind = Errand::kHold, .text = hold->shardlet});
    return Handled::kBlocked;
  }
  if (const auto* route = std::get_if<planner::Route>(&*plan);
      route != nullptr && route->text.empty() && (route->shard == 0 || !careful()) && !ends_elsewhere(known)) {
    *where = place_of(*route, known.effects);
    *writes = route->writes;
    *again = known.tree->get<parser::Copy>() == nullptr;
    measure_route(prepared.known, *route);
    note_cursor(*known.tree, *where);
    if (!portals_.empty()) portals_.erase(std::string(bind.portal));
    return Handled::kPass;
  }
  if (const Handled done = have_described(text); done != Handled::kDone) return done;
  return bind_portal(bind, text, std::move(*plan));
}

Session::Handled Session::bind_portal(const wire::BindMessage& bind, const PreparedTextRef& text,
                                      planner::Plan plan) {
  if (lease_ && !leave_place()) return Handled::kBlocked;
  auto portal = std::make_unique<Portal>();
  portal->statement = text;
  portal->known = text->known;
  portal->plan = std::move(plan);
  portal->version = worker_.routing().version;
  portal->bind_tail.assign(bind.tail);
  auto values = wire::read_bind_values({.tail = portal->bind_tail});
  if (!values) {
    reject_extended(values.error());
    return Handled::kRejected;
  }
  const std::size_t needed = text->described ? text->types.size() : 0;  // what is the router's own has none
  if (values->values.size() != needed) {
    reject_extended({.sqlstate = std::string(sqlstate::kProtocolViolation),
                     .message = "bind message supplies " + std::to_string(values->values.size()) +
                                " parameters, but prepared statement \"" + std::string(bind.statement) +
                                "\" requires " + std::to_string(needed)});
    return Handled::kRejected;
  }
  portal->bind = std::move(*values);
  portals_[std::string(bind.portal)] = std::move(portal);
  answer(empty_message(server::kBindComplete));
  return Handled::kDone;
}

Portal* Session::find_portal(std::string_view name) {
  if (portals_.empty()) return nullptr;
  auto at = portals_.find(std::string(name));
  return at == portals_.end() ? nullptr : at->second.get();
}

// Describe of a portal.
void Session::describe_portal(Portal& portal) {
  std::string bytes;
  if (portal.known->kind == StatementKind::kExplainRoute) {
    append_route_description(bytes);
  } else if (portal.known->kind == StatementKind::kTenant) {
    describe_tenant(*portal.known, bytes);
  } else if (portal.known->kind == StatementKind::kOwn) {
    append_own_description(*portal.known->tree, portal.bind.result_formats, bytes);
  } else if (rows_described(*portal.known, *portal.statement).empty()) {
    wire::append_empty(bytes, server::kNoData);
  } else if (auto columns = wire::read_row_description(rows_described(*portal.known, *portal.statement))) {
    const auto& formats = portal.bind.result_formats;
    for (std::size_t i = 0; i < columns->size(); ++i) {
      (*columns)[i].format =
          formats.empty() ? 0 : formats[formats.size() == 1 ? 0 : std::min(i, formats.size() - 1)];
    }
    wire::append_row_description(bytes, *columns);
  }
  answer(std::move(bytes));
}

// Describe of a statement that the router has.
void Session::describe_prepared(const PreparedText& prepared) {
  std::string bytes;
  wire::append_parameter_description(bytes, prepared.types);
  if (prepared.known->kind == StatementKind::kExplainRoute) {
    append_route_description(bytes);
  } else if (prepared.known->kind == StatementKind::kTenant) {
    describe_tenant(*prepared.known, bytes);
  } else if (prepared.known->kind == StatementKind::kOwn) {
    append_own_description(*prepared.known->tree, {}, bytes);
  } else if (rows_described(*prepared.known, prepared).empty()) {
    wire::append_empty(bytes, server::kNoData);
  } else if (auto columns = wire::read_row_description(rows_described(*prepared.known, prepared))) {
    wire::append_row_description(bytes, *columns);
  }
  answer(std::move(bytes));
}

// A shard that has all the tables of a statement; 0: any.
ShardId Session::knows_it(PreparedText& prepared) {
  const KnownStatement& known = known_of(prepared, nullptr);
  const bool at_home =
      known.kind == StatementKind::kPlanned && !known.refusal && planner::needs_home(*known.analysis);
  return at_home ? home() : 0;
}

// What one shard says of the statement: all have the same schema, but for what the home shard alone has and the
// numbers of types that users have made, of which the catalogue knows the home shard's.
io::Task<> Session::describe_statement(PreparedTextRef text) {
  bool at_home = text->known != nullptr && text->known->analysis && planner::needs_home(*text->known->analysis);
  const bool explains = text->known != nullptr && explains_parameters(*text->known);
  std::string asked = text->text;
  if (explains) {
    const parser::Range body = text->known->tree->get<parser::Explain>()->body_range;
    asked = asked.substr(text->range.begin + body.begin, body.end - body.begin);
  }
  for (;;) {
    auto joining = at_home ? join(home()) : join_any();
    auto place = co_await std::move(joining);
    if (!place) {
      backend_error_ = std::move(place).error();
      co_return;
    }
    executor::Backend* backend = (*place)->lease.get();
    if (const auto before = opening(**place, false); !before.empty()) {
      std::string sql;
      for (const std::string& statement : before) sql.append(statement).append(";\n");
      auto running = executor::run_control_query(backend, sql, &waiter_, Deadline::in(kControlTimeout));
      if (auto done = co_await std::move(running); !done) {
        backend_error_ = std::move(done).error();
        co_return;
      }
    }
    auto describing =
        executor::describe_on(backend, asked, text->type_oids, &waiter_, Deadline::in(kControlTimeout));
    auto description = co_await std::move(describing);
    if (!description) {
      backend_error_ = std::move(description).error();
      if (txn_.open) txn_.failed = true;
      co_return;
    }
    if (!at_home && (*place)->shard != home() &&
        !std::ranges::all_of(description->parameter_types, is_built_in)) {
      at_home = true;
      continue;
    }
    text->described_as_of = described_now();
    if (text->described) {  // a definition may have given it others since
      text->changed = !explains && !same_columns(text->row_description, description->row_description);
      co_return;
    }
    text->types = std::move(description->parameter_types);
    text->row_description = std::move(description->row_description);
    text->described = true;
    co_return;
  }
}

// In its turn: at once when nothing is outstanding.
void Session::answer(std::string bytes) {
  expect({.kind = Expected::kClose, .from = Expected::kRouter, .answer = std::move(bytes)});
}

}  // namespace kintsugi::frontend
