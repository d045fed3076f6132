// What the generated parser needs of ANTLR's runtime, instead of all of it.
#pragma once

#include <ANTLRErrorStrategy.h>
#include <DefaultErrorStrategy.h>
#include <FailedPredicateException.h>
#include <InputMismatchException.h>
#include <NoViableAltException.h>
#include <Parser.h>
#include <ParserRuleContext.h>
#include <RuleContext.h>
#include <Token.h>
#include <TokenStream.h>
#include <Vocabulary.h>
#include <atn/ATN.h>
#include <atn/ATNDeserializer.h>
#include <atn/ParserATNSimulator.h>
#include <atn/PredictionContext.h>
#include <dfa/DFA.h>
#include <support/CPPUtils.h>
#include <tree/TerminalNode.h>
