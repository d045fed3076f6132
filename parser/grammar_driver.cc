#include "parser/grammar_driver.h"

#include <BailErrorStrategy.h>
#include <ParserRuleContext.h>
#include <atn/ATNConfigSet.h>
#include <atn/DecisionState.h>
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

// The statement is nested so deeply that the stack would not hold.
struct TooDeep {};

// What a parse may take of the stack; every thread has several times that.
constexpr std::size_t kStackBytes = std::size_t{2} << 20;

// The generated parser descends by recursion; each rule it enters passes by here.
class DeepnessGuard final : public Grammar {
 public:
  using Grammar::Grammar;

  void start_here() { top_ = static_cast<const char*>(__builtin_frame_address(0)); }

  void enterRule(antlr4::ParserRuleContext* context, std::size_t state, std::size_t rule) override {
    check();
    Grammar::enterRule(context, state, rule);
  }
  void enterRecursionRule(antlr4::ParserRuleContext* context, std::size_t state, std::size_t rule,
                          int precedence) override {
    check();
    Grammar::enterRecursionRule(context, state, rule, precedence);
  }

 private:
  void check() const {
    if (static_cast<std::size_t>(top_ - static_cast<const char*>(__builtin_frame_address(0))) > kStackBytes)
      throw TooDeep{};
  }

  const char* top_ = nullptr;
};

constexpr std::size_t kNever = static_cast<std::size_t>(-1);
// How far before an error a decision may have been taken that led to it.
constexpr std::size_t kWindow = 32;

// Walks the learned automaton without ANTLR's locks: everything it reads belongs to this thread.
class Predictor final : public antlr4::atn::ParserATNSimulator {
 public:
  Predictor(antlr4::Parser* recognizer, const antlr4::atn::ATN& network,
            std::vector<antlr4::dfa::DFA>& automata, antlr4::atn::PredictionContextCache& contexts)
      : ParserATNSimulator(recognizer, network, automata, contexts) {}

  // From this token on every decision looks at the rules it really stands in, and learns nothing for later.
  void predict_exactly_from(std::size_t token) { exact_from_ = token; }

  std::size_t adaptivePredict(antlr4::TokenStream* input, std::size_t decision,
                              antlr4::ParserRuleContext* outer) override {
    if (input->index() >= exact_from_) return predict_exactly(input, decision, outer);
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
  // ANTLR would leave a rule that could end before the trouble, and report the token where it began to look
  // ahead. Our grammar names what follows every rule, so where the look-ahead fails is where the error is.
  std::size_t getAltThatFinishedDecisionEntryRule(antlr4::atn::ATNConfigSet*) override {
    return antlr4::atn::ATN::INVALID_ALT_NUMBER;
  }

  antlr4::dfa::DFAState* getExistingTargetState(antlr4::dfa::DFAState* previous, std::size_t token) override {
    const auto edge = previous->edges.find(token);
    return edge == previous->edges.end() ? nullptr : edge->second;
  }

 private:
  std::size_t predict_exactly(antlr4::TokenStream* input, std::size_t decision,
                              antlr4::ParserRuleContext* outer) {
    antlr4::dfa::DFA& automaton = decisionToDFA[decision];
    const std::size_t begin = input->index();
    _input = input;
    _startIndex = begin;
    _outerContext = outer;
    _dfa = &automaton;
    const auto restore = antlrcpp::finally([&] {
      mergeCache.clear();
      _dfa = nullptr;
      input->seek(begin);
    });
    const auto start = computeStartState(automaton.atnStartState, outer, true);
    antlr4::dfa::DFAState none;
    return execATNWithFullContext(automaton, &none, start.get(), input, begin, outer);
  }

  std::size_t exact_from_ = kNever;
};

}  // namespace

struct GrammarDriver::Machine {
  GrammarTokens none;
  DeepnessGuard grammar{&none};
  std::vector<antlr4::dfa::DFA> automata;
  antlr4::atn::PredictionContextCache contexts;
  Predictor* predictor = nullptr;

  Machine() {
    const antlr4::atn::ATN& atn = grammar.getATN();
    automata.reserve(atn.getNumberOfDecisions());
    for (std::size_t i = 0; i < atn.getNumberOfDecisions(); ++i)
      automata.emplace_back(atn.getDecisionState(i), i);
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
    grammar.start_here();
    return grammar.statementOnly();
  }
};

GrammarDriver::GrammarDriver() : machine_(std::make_unique<Machine>()) {}
GrammarDriver::~GrammarDriver() = default;

Result<Grammar::StatementContext*> GrammarDriver::parse(GrammarTokens& tokens) {
  try {
    return parse_or_locate(tokens);
  } catch (const TooDeep&) {
    machine_->predictor->predict_exactly_from(kNever);
    return fail("54001", "stack depth limit exceeded", "The statement is nested too deeply.");
  }
}

Result<Grammar::StatementContext*> GrammarDriver::parse_or_locate(GrammarTokens& tokens) {
  using antlr4::atn::PredictionMode;
  try {
    return machine_->run(tokens, PredictionMode::SLL)->s;
  } catch (const SyntaxError&) {
    // The full prediction says whether it really is one, and where.
  }
  const GrammarToken* furthest = nullptr;
  const auto attempt = [&]() -> Grammar::StatementContext* {
    try {
      return machine_->run(tokens, PredictionMode::LL)->s;
    } catch (const SyntaxError& error) {
      if (furthest == nullptr || error.token->range().begin > furthest->range().begin) furthest = error.token;
      return nullptr;
    }
  };
  if (auto* tree = attempt()) return tree;
  // What kind a parenthesis is was guessed from the tokens in it. Where one is in the way, or stands right
  // before the trouble, the grammar gets to try the other kinds: what stands in it is then either right or the
  // true place of the error.
  for (bool advanced = true; advanced;) {
    advanced = false;
    const GrammarToken* before = furthest;
    for (const std::size_t paren : tokens.parentheses_at(tokens.index_of(*furthest))) {
      for (int turn = 0; turn < 2 && !advanced; ++turn) {
        tokens.turn_parenthesis(paren);
        if (auto* tree = attempt()) return tree;
        advanced = furthest != before;
      }
      if (advanced) break;
      tokens.turn_parenthesis(paren);  // what it was
    }
  }
  // ANTLR's learned look-ahead forgets which rules it stands in, so it may turn away from an error that it has
  // already read past. Once more then, exactly, over the last stretch before the error: that finds the very
  // token PostgreSQL stops at.
  const std::size_t error_index = tokens.index_of(*furthest);
  machine_->predictor->predict_exactly_from(error_index > kWindow ? error_index - kWindow : 0);
  try {
    machine_->run(tokens, PredictionMode::LL);
  } catch (const SyntaxError& error) {
    if (error.token->range().begin > furthest->range().begin) furthest = error.token;
  }
  machine_->predictor->predict_exactly_from(kNever);
  return fail(error_at(tokens.text(), furthest->range(), "syntax error"));
}

}  // namespace kintsugi::parser
