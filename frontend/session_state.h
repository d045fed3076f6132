// What a session remembers of a client whose statements are routed: its transaction, opened on a shard when it
// is first needed there; what it has prepared; its portals. With one shard PostgreSQL has all of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/fan.h"
#include "executor/pool.h"
#include "frontend/isolation.h"
#include "frontend/statement_book.h"
#include "shardmap/shard_map.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {

using shardmap::ShardId;

// A connection that the session holds and does not use right now.
struct Place {
  ShardId shard = 0;
  executor::BackendPool* pool = nullptr;
  executor::BackendLease lease;
  unsigned pins = 0;   // executor::PinReason
  bool begun = false;  // takes part in the transaction
  bool wrote = false;  // and may have written
};

struct OpenTransaction {
  bool open = false;
  bool implicit = false;  // of the router's own making: ends with the statement, or with the client's Sync
  bool failed = false;    // before any shard could know
  std::string begin;      // the client's own words
  // What a shard that joins later has to do first: savepoints, settings of the transaction. In order.
  std::vector<std::string> prelude;
  std::vector<std::string> savepoints;
  std::vector<std::size_t> prelude_at;  // for each savepoint: so many of `prelude` up to it
  bool let_go = false;                  // it has failed, and holds nothing more on the other shards
  bool sets = false;                    // settings have been made in it
  bool sets_here = false;               // by set_config(), so that who joins later cannot be given them
  bool lost = false;                    // a shard's part is gone: nothing but an end is possible
  // A block's first query takes the snapshot of all that it will see (session_snapshot.cc).
  Isolation isolation = Isolation::kUnknown;
  bool queried = false;  // that has come, or the transaction is the router's own
  bool due = false;      // it has come, and waits for the next errand to take the snapshot
  bool whole = false;    // which is of all shards: none joins later
};

// The maps that the statements of the open transaction were planned under, but for the newest: a transaction
// that keeps one snapshot does not see rows that have changed hands since.
struct SeenMaps {
  bool used = false;                     // a statement was planned under the newest
  std::vector<shardmap::MapPtr> before;  // it
  bool forgot = false;                   // there were more
  bool ask = false;                      // the next errand asks for the transaction's isolation
};

// How a statement that the router ran itself has ended.
struct StatementEnd {
  bool failed = false;
  std::string tag;    // of CommandComplete; empty: an empty query
  std::string error;  // a whole ErrorResponse
  bool suspended = false;
  bool told = false;    // rows have gone to the client
  bool unsent = false;  // no shard has heard of it
  bool cut = false;     // there were more rows than Run::most_kept
  bool moved = false;   // the fence of a move has refused it, and it may be run again
  bool again = false;   // a deadlock has ended it, nothing of it is left, and it may be run again

  static StatementEnd complete(std::string tag) { return {.tag = std::move(tag)}; }
  static StatementEnd refused(const Error& error, std::string_view routine = {});
};

// An expression first, and then what the key's type makes of its value.
inline constexpr int kWorkOutRounds = 2;

// Work for a message that is more than passing bytes on: done by the session's coroutine with nothing under
// way, all connections put aside. The message has been consumed, or comes again when it is done.
struct Errand {
  enum Kind : std::uint8_t {
    kNone,
    kScript,    // the statements of a simple query
    kDescribe,  // what a prepared statement's parameters and columns are
    kExecute,   // a portal of the router's
    kClosePortal,
    kDropPortal,      // another is bound in its place
    kEndImplicit,     // the router's own transaction, at a Sync
    kAskNames,        // what search_path is
    kRefreshCatalog,  // a name was not found
    kHold,            // a shardlet is being handed over
    kRepeat,          // the fence of a move has refused what was sent
    kLetGo,           // a transaction over several shards has failed on one
  };
  Kind kind = kNone;
  std::string text;  // the query; the portal's name; the shardlet
  std::uint64_t max_rows = 0;
};

// A text that the client has prepared, as the router understands it.
struct PreparedText {
  std::string text, type_oids;
  parser::Range range;
  parser::Normaliser normal;
  KnownRef known;  // as of
  std::uint64_t version = 0, names = 0;
  // What a shard has said of it.
  bool described = false;
  bool changed = false;               // its columns are others by now
  std::uint64_t described_as_of = 0;  // the routing's version
  std::vector<std::uint32_t> types;
  std::string row_description;  // its body; empty: no rows
};
using PreparedTextRef = std::shared_ptr<PreparedText>;

// The client's handle of a named statement, with what the router knows of it.
struct ClientStatement : executor::ClientStatement {
  PreparedTextRef prepared;
  bool by_router = false;  // no shard has been told of it
};
using ClientStatementRef = std::shared_ptr<ClientStatement>;

// What the client has sent that the fence of a move may refuse and that could be sent again.
struct Unit {
  bool on = false;
  bool closed = false;        // its last message has been sent
  bool writes = false;        // may write
  bool doubted = false;       // its answer came when the lease had run out
  bool refused = false;       // the fence has, and the shard is coming to its end
  std::uint64_t version = 0;  // of the routing that it was planned under
  std::string bytes;          // the client's messages
};

// An INSERT ... SELECT under way whose rows are read first.
struct Pouring {
  std::string head, tail;
  std::vector<std::string> types;   // casts of the source's columns; empty: none
  std::vector<std::uint32_t> oids;  // and their types
  std::string returning;            // the body of its RowDescription
  std::vector<std::int16_t> formats;
  bool at_once = false;                 // as in Pour
  executor::Outbox* rows_to = nullptr;  // what RETURNING gives, as in Run
  std::uint64_t inserted = 0;

  Result<std::string> statement_of(executor::Outbox* rows, executor::Outbox* client) const;
};

// The columns of a part of a statement that is read first, and what is said of their types where they stand
// again: ::numeric(10,2), or ::text COLLATE "C".
struct PartColumns {
  std::string description;
  std::vector<wire::Column> columns;  // of it
  std::vector<std::string> casts;
};

// How a statement's rows go to the client.
struct Answering {
  bool describe = true;
  std::vector<std::int16_t> formats;    // as in Bind; none: text
  executor::Outbox* rows_to = nullptr;  // as in Run
};

// One plan on its way.
struct Run {
  planner::Plan plan;
  std::string text;                  // for tasks without one of their own
  std::vector<std::uint32_t> types;  // of the parameters
  wire::BindValues bind;
  bool describe = false;  // a RowDescription comes first
  bool suspendable = false;
  std::uint32_t effects = 0;
  bool on_map = false;                  // its places come from the shard map
  Pouring* pouring = nullptr;           // its rows are no answer: they are inserted
  executor::Outbox* rows_to = nullptr;  // and go here,
  std::size_t most_kept = SIZE_MAX;     // so many bytes of them: FanRequest::most_kept
};

// The rows of a portal that has run as a whole and was asked for some of them.
struct LeftOver {
  executor::Outbox messages;
  std::size_t given = 0;  // bytes of them
  std::string tag;
};

// What the client has bound and the router will run.
struct Portal {
  PreparedTextRef statement;
  KnownRef known;
  planner::Plan plan;
  std::uint64_t version = 0;  // of the routing that the plan was made under
  std::string bind_tail;      // what `bind` points into
  wire::BindValues bind;
  std::unique_ptr<executor::Fan> fan;  // has begun
  bool complete = false;
  bool began = false;  // its fan has been advanced
  std::unique_ptr<LeftOver> left_over;
  Run run;
};

}  // namespace kintsugi::frontend
