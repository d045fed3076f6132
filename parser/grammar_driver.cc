#include "parser/grammar_driver.h"

#include <BailErrorStrategy.h>
#include <ParserRuleContext.h>
#include <atn/ParserATNSimulator.h>
#include <atn/PredictionContext.h>

#include "parser/scanner.h"

namespace kintsugi::parser {
namespace {

// Remembers the token at which the grammar had no way on, then unwinds.
struct SyntaxError {
  const GrammarToken* token;
};

class StopAtFirstError final : public antlr4::DefaultErrorStrategy {
 public:
  void recover(antlr4::Parser* parser, std::exception_ptr cause) override {
    try {
      std::rethrow_exception(cause);
    } catch (const antlr4::RecognitionException& error) {
      const auto* token = dynamic_cast<const GrammarToken*>(error.getOffendingToken());
      throw SyntaxError{token != nullptr ? token : static_cast<const GrammarToken*>(parser->getCurrentToken())};
    }
  }
  antlr4::Token* recoverInline(antlr4::Parser* parser) override {
    throw SyntaxError{static_cast<const GrammarToken*>(parser->getCurrentToken())};
  }
  void sync(antlr4::Parser*) override {}
  void reportError(antlr4::Parser*, const antlr4::RecognitionException&) override {}
  void reportMatch(antlr4::Parser*) override {}
  bool inErrorRecoveryMode(antlr4::Parser*) override { return false; }
};

// Walks the learned automaton without ANTLR's locks: everything it reads belongs to this thread.
class Predictor final : public antlr4::atn::ParserATNSimulator {
 public:
  Predictor(antlr4::Parser* recognizer, const antlr4::atn::ATN& network, std::vector<antlr4::dfa::DFA>& automata,
            antlr4::atn::PredictionContextCache& contexts)
      : ParserATNSimulator(recognizer, network, automata, contexts) {}

  std::size_t adaptivePredict(antlr4::TokenStream* input, std::size_t decision,
                              antlr4::ParserRuleContext* outer) override {
    const antlr4::dfa::DFA& automaton = decisionToDFA[decision];
    const antlr4::dfa::DFAState* state = automaton.s0;
    if (state != nullptr && automaton.isPrecedenceDfa()) {
      const auto start = state->edges.find(static_cast<std::size_t>(parser->getPrecedence()));
      state = start == state->edges.end() ? nullptr : start->second;
    }
    auto* tokens = static_cast<GrammarTokens*>(input);
    for (ssize_t ahead = 1; state != nullptr; ++ahead) {
      const auto edge = state->edges.find(tokens->LA(ahead));
      if (edge == state->edges.end() || edge->second == ERROR.get()) break;
      state = edge->second;
      if (!state->isAcceptState) continue;
      if ((state->requiresFullContext && getPredictionMode() != antlr4::atn::PredictionMode::SLL) ||
          !state->predicates.empty())
        break;
      return state->prediction;
    }
    return ParserATNSimulator::adaptivePredict(input, decision, outer);
  }

 protected:
  antlr4::dfa::DFAState* getExistingTargetState(antlr4::dfa::DFAState* previous, std::size_t token) override {
    const auto edge = previous->edges.find(token);
    return edge == previous->edges.end() ? nullptr : edge->second;
  }
};

}  // namespace

struct GrammarDriver::Machine {
  GrammarTokens none;
  Grammar grammar{&none};
  std::vector<antlr4::dfa::DFA> automata;
  antlr4::atn::PredictionContextCache contexts;
  Predictor* predictor = nullptr;

  Machine() {
    const antlr4::atn::ATN& atn = grammar.getATN();
    automata.reserve(atn.getNumberOfDecisions());
    for (std::size_t i = 0; i < atn.getNumberOfDecisions(); ++i) automata.emplace_back(atn.getDecisionState(i), i);
    predictor = new Predictor(&grammar, atn, automata, contexts);
    grammar.setInterpreter(predictor);  // owns it
    grammar.setErrorHandler(std::make_shared<StopAtFirstError>());
    grammar.removeErrorListeners();
    grammar.setBuildParseTree(false);
  }

  Grammar::StatementOnlyContext* run(GrammarTokens& tokens, antlr4::atn::PredictionMode mode) {
    predictor->setPredictionMode(mode);
    tokens.seek(0);
    grammar.setTokenStream(&tokens);
    return grammar.statementOnly();
  }
};

GrammarDriver::GrammarDriver() : machine_(std::make_unique<Machine>()) {}
GrammarDriver::~GrammarDriver() = default;

Result<Grammar::StatementContext*> GrammarDriver::parse(GrammarTokens& tokens) {
  using antlr4::atn::PredictionMode;
  try {
    return machine_->run(tokens, PredictionMode::SLL)->s;
  } catch (const SyntaxError&) {
    // The full prediction says whether it really is one, and where.
  }
  try {
    return machine_->run(tokens, PredictionMode::LL)->s;
  } catch (const SyntaxError& error) {
    return fail(error_at(tokens.text(), error.token->range(), "syntax error"));
  }
}

}  // namespace kintsugi::parser
