// What a statement's text may do to the session beyond its transaction: set settings, leave something behind
// that ties the client to its connection, or use names that the router keeps for the client. Read off the
// tokens, so that a word inside a string or a comment is no word. A suspicion costs one look at the session's
// state (executor/session_state.h); PostgreSQL decides what is really there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parser/token.h"

namespace kintsugi::frontend {

enum Effect : std::uint32_t {
  kMaySet = 1,          // SET, RESET, set_config, DISCARD ...
  kMayPin = 2,          // LISTEN, temporary objects, WITH HOLD, session advisory locks, PREPARE
  kMayUnpin = 4,        // what can end such a thing
  kPinsForGood = 8,     // what cannot be asked for: LOAD, setseed, a setting whose name is not in the text
  kReadsSequence = 16,  // currval, lastval: they mean this session's own last nextval
  kMaySetLocally = 32,  // SET LOCAL, set_config(..., true): gone with the transaction
  kMayCall = 64,        // calls a function that is not PostgreSQL's own: whatever it does
  kMayRename = 128,     // search_path or the role: the same names may mean something else now
  kCallsSetConfig = 256,
  kSetsAlike = 512,    // and may run on several shards, to the same effect
  kDrawsFirst = 1024,  // reads no sequence but one that it has drawn from itself
  kUnlocksAll = 2048   // pg_advisory_unlock_all
};

struct StatementEffects {
  std::uint32_t flags = 0;
  bool may_be_own = false;  // begins like a statement of Kintsugi's own: worth parsing
  // Names of custom settings (with a dot) that are set.
  std::vector<std::string> custom_settings;
  // Those that are set for the transaction only: what stays behind is an empty value where there was none.
  std::vector<std::string> local_custom_settings;
  // The name in EXECUTE name, also behind EXPLAIN or CREATE TABLE ... AS, or DEALLOCATE name: where it stands
  // and what it is after folding.
  struct NamedStatement {
    parser::Range range;
    std::string name;
    bool deallocate = false;
  };
  std::vector<NamedStatement> named;

  [[nodiscard]] bool none() const {
    return flags == 0 && !may_be_own && custom_settings.empty() && local_custom_settings.empty() &&
           named.empty();
  }
};

StatementEffects effects_of(std::string_view text);
// The same, read off every token: what effects_of does when the words alone (plain_statement.h) do not tell.
StatementEffects effects_by_tokens(std::string_view text);

}  // namespace kintsugi::frontend
