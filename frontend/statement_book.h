// What a thread has learnt of the statements that its clients send: the tree, what it does to the session, and
// the planner's analysis, found by the statement's normal form. A hit costs one scan of the text and allocates
// nothing; a miss parses.
//
// One a worker, its thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "parser/parser.h"
#include "parser/statement_cache.h"
#include "planner/analysis.h"

namespace kintsugi::frontend {

// What the session has to do with a statement.
enum class StatementKind : std::uint8_t {
  kUnknown,      // cannot be read: PostgreSQL shall say why
  kPlanned,      // the planner says where it goes
  kTransaction,  // BEGIN, COMMIT, SAVEPOINT ...
  kSession,      // SET, RESET, SHOW, DISCARD: about the session, wherever that is
  kCursor,       // FETCH, MOVE, CLOSE: where the cursor is
  kNamed,        // PREPARE, EXECUTE, DEALLOCATE
  kTenant,       // SET, RESET and SHOW of kintsugi.tenant
  kOwn,          // a statement of Kintsugi's
  kExplainRoute,
};

struct KnownStatement {
  StatementKind kind = StatementKind::kUnknown;
  std::shared_ptr<const parser::Statement> tree;
  planner::AnalysisPtr analysis;  // of kPlanned, kExplainRoute; or
  std::optional<Error> refusal;   // why there is none
  std::uint32_t effects = 0;      // frontend/statement_effects.h
  bool rescan = true;  // the effects hold names, places, or hang on literals: read them off each text
};
using KnownRef = std::shared_ptr<const KnownStatement>;

// What names mean for a client, numbered so that two meanings are told apart by a number.
struct Names {
  std::uint64_t id = 0;
  planner::NameContext context;
};

using NamesRef = std::shared_ptr<const Names>;

// The map and the catalogue that a thread plans with; the number changes with either.
struct Routing {
  shardmap::MapPtr map;
  planner::CatalogPtr catalog;
  std::uint64_t version = 0;
};

class StatementBook {
 public:
  static constexpr std::size_t kBytesMax = 32 << 20;

  StatementBook() : cache_(kBytesMax) {}
  void warm_up() { parser_.warm_up(); }

  // The meaning of names for this search_path (as SHOW search_path prints it) and user.
  NamesRef names(std::string_view search_path, std::string_view user, std::string_view shard_new_tables);

  // The same for a session whose open transaction has made or dropped tables: nobody else's.
  NamesRef names_of_transaction(planner::NameContext context);

  // `normal` is filled for this statement of the text and stays good until the caller uses it again.
  KnownRef look_up(std::string_view text, parser::Range statement, const Names& names, const Routing& routing,
                   parser::Normaliser& normal, bool* unknown_names);

  [[nodiscard]] const parser::StatementCacheCounters& counters() const { return cache_.counters(); }

  // For the statements of the simple protocol, which are planned and gone.
  parser::Normaliser scratch;

 private:
  KnownRef learn(std::string_view text, parser::Range statement, const Names& names, const Routing& routing,
                 const parser::Normaliser& normal, std::vector<std::uint32_t>* pinned, bool* unknown_names,
                 bool* once, std::size_t* bytes);

  parser::Parser parser_;
  parser::StatementCache<KnownRef> cache_;
  std::map<std::string, NamesRef, std::less<>> names_;
  std::uint64_t next_names_ = 1;
};

}  // namespace kintsugi::frontend
