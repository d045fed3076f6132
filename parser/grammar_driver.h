// Runs the generated grammar over one statement's tokens. Each driver has its own prediction caches, because
// ANTLR's shared ones are guarded by process-wide locks and race nevertheless: so one driver a thread. It first
// parses with the fast prediction (SLL) and gives up at the first trouble; only then does it parse again with
// the full one, which also finds where exactly PostgreSQL would say that the error is.
#pragma once

#include <memory>

#include "parser/grammar_parser.h"
#include "parser/grammar_tokens.h"

namespace kintsugi::parser {

class GrammarDriver {
 public:
  GrammarDriver();
  ~GrammarDriver();
  GrammarDriver(const GrammarDriver&) = delete;
  GrammarDriver& operator=(const GrammarDriver&) = delete;

  // The tree lives until the next call.
  Result<Grammar::StatementContext*> parse(GrammarTokens& tokens);

 private:
  struct Machine;
  Result<Grammar::StatementContext*> parse_or_locate(GrammarTokens& tokens);
  std::unique_ptr<Machine> machine_;
};

}  // namespace kintsugi::parser
