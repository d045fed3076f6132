// Statements of the corpus, edited at random: PostgreSQL and we must still agree on what is a statement.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "parser/scanner.h"
#include "tests/parser/agreement.h"
#include "tests/parser/pg_oracle.h"

namespace kintsugi::parser {
namespace {

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> found;
  Scanner scanner(text);
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd && token.kind != TokenKind::kError;
       token = scanner.next())
    found.emplace_back(token.of(text));
  return found;
}

std::string edited(std::vector<std::string> tokens, const std::vector<std::string>& others,
                   std::mt19937& random) {
  const auto any = [&](std::size_t size) { return static_cast<std::size_t>(random() % size); };
  for (auto edits = random() % 2 + 1; edits > 0 && !tokens.empty(); --edits) {
    const std::size_t at = any(tokens.size());
    const auto here = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 6) {
      case 0: tokens.erase(here); break;
      case 1: tokens.insert(here, tokens[at]); break;
      case 2: std::swap(tokens[at], tokens[any(tokens.size())]); break;
      case 3: tokens[at] = others[any(others.size())]; break;
      case 4: tokens.insert(here, others[any(others.size())]); break;
      default: tokens.resize(at); break;
    }
  }
  std::string text;
  for (const std::string& token : tokens) text.append(text.empty() ? "" : " ").append(token);
  return text;
}

// What we know to take or refuse otherwise than libpg_query, and why.
bool known_difference(Parser& parser, const std::string& text, bool we_take_it) {
  if (we_take_it) {
    // A BEGIN ATOMIC body is not read, nor what stands in ALTER ... OPTIONS.
    if (text.find("atomic") != std::string::npos || text.find("options") != std::string::npos) return true;
    // Nor are utility statements that are known by their head.
    auto statement = parser.parse(text);
    return statement && (*statement)->get<Utility>() != nullptr;
  }
  // libpg_query lets a parameter stand for an operator or a keyword; PostgreSQL does not.
  return text.find('$') != std::string::npos;
}

TEST(RandomEdits, AreTakenOrRefusedAlike) {
  std::vector<std::vector<std::string>> statements;
  std::vector<std::string> vocabulary;
  for (const char* file : {"select", "write", "orm", "tpch", "ddl", "drivers"})
    for (const std::string& text : corpus(file)) {
      if (text.size() > 3000) continue;
      statements.push_back(words(text));
      vocabulary.insert(vocabulary.end(), statements.back().begin(), statements.back().end());
    }
  const char* rounds_wanted = std::getenv("KINTSUGI_ROUNDS");
  const int rounds = rounds_wanted != nullptr ? std::atoi(rounds_wanted) : 2500;
  const char* seed = std::getenv("KINTSUGI_SEED");
  std::mt19937 random(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 15);
  Parser parser;
  int both_refuse = 0;
  int same_words = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = edited(statements[random() % statements.size()], vocabulary, random);
    const bool theirs = !oracle::parse(text).failed();
    const std::string difference = disagreement(parser, text);
    if (difference.empty()) {
      both_refuse += theirs ? 0 : 1;
      same_words += theirs ? 0 : 1;
      continue;
    }
    const bool ours = difference.starts_with("ours: accepts");
    if (ours == theirs) {
      ++both_refuse;
      if (std::getenv("KINTSUGI_VERBOSE") != nullptr) std::cout << difference << "\n--\n";
      continue;
    }
    EXPECT_TRUE(known_difference(parser, text, ours)) << difference;
  }
  // Where both refuse, the message and its place are the same but for errors PostgreSQL finds after or before
  // ours.
  EXPECT_GE(same_words, both_refuse * 97 / 100);
  std::cout << rounds << " edits, " << both_refuse << " refused by both, " << same_words << " of them alike\n";
}

}  // namespace
}  // namespace kintsugi::parser
