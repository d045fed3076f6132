#include "parser/keywords.h"

#include <gtest/gtest.h>

#include "parser/grammar_parser.h"

namespace kintsugi::parser {
namespace {

const char* const kWords[] = {
#define KEYWORD(word, token, category, bare) word,
#include "parser/keywords.def"
#undef KEYWORD
};

TEST(Keywords, AllAreFoundInAnyCase) {
  EXPECT_EQ(std::size(kWords), 460U);  // pg_get_keywords() of PostgreSQL 15
  antlr4::TokenStream* none = nullptr;
  Grammar grammar(none);
  for (std::string word : kWords) {
    const Keyword* found = find_keyword(word);
    ASSERT_NE(found, nullptr) << word;
    for (char& c : word) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(find_keyword(word), found);
    EXPECT_EQ(grammar.getVocabulary().getSymbolicName(found->token), "K_" + word);
  }
}

TEST(Keywords, OthersAreNot) {
  for (const char* word : {"", "selec", "selects", "shard", "a", "user_", "currentuser", "x"})
    EXPECT_EQ(find_keyword(word), nullptr) << word;
  EXPECT_EQ(find_keyword(std::string(200, 'a')), nullptr);
  EXPECT_NE(find_own_word("ShardLet"), 0);
  EXPECT_EQ(find_own_word("select"), 0);
}

TEST(Keywords, Categories) {
  EXPECT_EQ(find_keyword("select")->category, KeywordCategory::kReserved);
  EXPECT_EQ(find_keyword("left")->category, KeywordCategory::kTypeOrFunction);
  EXPECT_EQ(find_keyword("int")->category, KeywordCategory::kColumnName);
  EXPECT_EQ(find_keyword("name")->category, KeywordCategory::kUnreserved);
  EXPECT_FALSE(find_keyword("day")->bare_label);
  EXPECT_TRUE(find_keyword("select")->bare_label);
}

}  // namespace
}  // namespace kintsugi::parser
