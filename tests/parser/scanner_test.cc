#include "parser/scanner.h"

#include <gtest/gtest.h>

#include <random>

#include "parser/split_statements.h"
#include "tests/parser/pg_oracle.h"

namespace kintsugi::parser {
namespace {

char letter(TokenKind kind) {
  return "$iqusSUbhDdnpo.!"[static_cast<int>(kind)];
}

// One word a token: a letter for its kind, then its text.
std::string show(std::string_view text, bool standard_strings = true) {
  std::string shown;
  Scanner scanner(text, standard_strings);
  for (Token token = scanner.next(); token.kind != TokenKind::kEnd; token = scanner.next()) {
    if (!shown.empty()) shown += ' ';
    shown += letter(token.kind);
    shown += ':';
    shown += token.of(text);
    if (token.kind == TokenKind::kError) return shown + " (" + scanner.error_message() + ")";
  }
  return shown;
}

TEST(Scanner, KindsOfTokens) {
  EXPECT_EQ(show(""), "");
  EXPECT_EQ(show(" \t\r\n\f"), "");
  EXPECT_EQ(show("a _b ü1 a$1"), "i:a i:_b i:ü1 i:a$1");
  EXPECT_EQ(show("\"a\"\"b\" U&\"c\" u&\"d\" u & x"), "q:\"a\"\"b\" u:U&\"c\" u:u&\"d\" i:u o:& i:x");
  EXPECT_EQ(show("'a''b' E'a\\'b' U&'c' B'01' x'aF' n'x'"),
            "s:'a''b' S:E'a\\'b' U:U&'c' b:B'01' h:x'aF' i:n s:'x'");
  EXPECT_EQ(show("$$a$$ $x$ $$ $y$ $x$ $1 $12+$3"), "D:$$a$$ D:$x$ $$ $y$ $x$ p:$1 p:$12 o:+ p:$3");
  EXPECT_EQ(show("a::b := c => d..e;(),[]:"),
            "i:a .::: i:b .::= i:c o:=> i:d .:.. i:e .:; .:( .:) .:, .:[ .:] .::");
  EXPECT_EQ(show("{ \\ $ a"), ".:{ .:\\ .:$ i:a");
}

TEST(Scanner, Numbers) {
  EXPECT_EQ(show("1 12345678901234567890 1.5 .5 1. 1e5 1.e-5 .5E+2"),
            "d:1 d:12345678901234567890 n:1.5 n:.5 n:1. n:1e5 n:1.e-5 n:.5E+2");
  EXPECT_EQ(show("1..2 1.5.2 1.. -1"), "d:1 .:.. d:2 n:1.5 n:.2 d:1 .:.. o:- d:1");
  EXPECT_EQ(show("1a"), "!:1a (trailing junk after numeric literal)");
  EXPECT_EQ(show("1e"), "!:1e (trailing junk after numeric literal)");
  EXPECT_EQ(show("1e+"), "!:1e+ (trailing junk after numeric literal)");
  EXPECT_EQ(show("1_000"), "!:1_ (trailing junk after numeric literal)");
  EXPECT_EQ(show("0x1F"), "!:0x (trailing junk after numeric literal)");
  EXPECT_EQ(show("1.5e3x"), "!:1.5e3x (trailing junk after numeric literal)");
  EXPECT_EQ(show("$1abc"), "!:$1a (trailing junk after parameter)");
}

TEST(Scanner, Operators) {
  EXPECT_EQ(show("a<=b>=c<>d!=e"), "i:a o:<= i:b o:>= i:c o:<> i:d o:!= i:e");
  EXPECT_EQ(show("a=-1"), "i:a o:= o:- d:1");
  EXPECT_EQ(show("a@-1"), "i:a o:@- d:1");
  EXPECT_EQ(show("a+-+-1"), "i:a o:+ o:- o:+ o:- d:1");
  EXPECT_EQ(show("a ->> b #>> c ?| d"), "i:a o:->> i:b o:#>> i:c o:?| i:d");
  EXPECT_EQ(show("a*--b\n+c"), "i:a o:* o:+ i:c");
  EXPECT_EQ(show("a@/*b*/c"), "i:a o:@ i:c");
  EXPECT_EQ(show(std::string(63, '#')), "o:" + std::string(63, '#'));
  EXPECT_EQ(show(std::string(64, '#')), "!:" + std::string(64, '#') + " (operator too long)");
}

TEST(Scanner, CommentsNest) {
  EXPECT_EQ(show("a /* b /* c */ d */ e -- f\ng"), "i:a i:e i:g");
  EXPECT_EQ(show("a /**/ b /***/ c /*/**/*/ d"), "i:a i:b i:c i:d");
  EXPECT_EQ(show("a -- to the end"), "i:a");
  EXPECT_EQ(show("a /* b /* c */"), "i:a !:/* b /* c */ (unterminated /* comment)");
}

TEST(Scanner, StringsGoOnOverANewline) {
  EXPECT_EQ(show("'a'\n'b'"), "s:'a'\n'b'");
  EXPECT_EQ(show("'a' 'b'"), "s:'a' s:'b'");
  EXPECT_EQ(show("'a' -- c\n -- d\n 'b' 'e'"), "s:'a' -- c\n -- d\n 'b' s:'e'");
  EXPECT_EQ(show("'a' /* c */\n'b'"), "s:'a' s:'b'");
  EXPECT_EQ(show("E'a\\''\n'b\\'' x"), "S:E'a\\''\n'b\\'' i:x");
  EXPECT_EQ(show("B'1'\n'0'"), "b:B'1'\n'0'");
  EXPECT_EQ(show("'a'\n-"), "s:'a' o:-");
}

TEST(Scanner, WhatHasNoEnd) {
  EXPECT_EQ(show("x 'ab"), "i:x !:'ab (unterminated quoted string)");
  EXPECT_EQ(show("E'ab\\'"), "!:E'ab\\' (unterminated quoted string)");
  EXPECT_EQ(show("E'ab\\"), "!:E'ab\\ (unterminated quoted string)");
  EXPECT_EQ(show("b'01"), "!:b'01 (unterminated bit string literal)");
  EXPECT_EQ(show("x'01"), "!:x'01 (unterminated hexadecimal string literal)");
  EXPECT_EQ(show("$a$ x $A$"), "!:$a$ x $A$ (unterminated dollar-quoted string)");
  EXPECT_EQ(show("\"ab"), "!:\"ab (unterminated quoted identifier)");
  EXPECT_EQ(show("\"\""), "!:\"\" (zero-length delimited identifier)");
  EXPECT_EQ(show("U&\"\""), "!:U&\"\" (zero-length delimited identifier)");
}

TEST(Scanner, UnicodeEscapes) {
  EXPECT_EQ(show("E'\\u00e4\\U0001F600\\uD83D\\uDE00\\x41\\101'"),
            "S:E'\\u00e4\\U0001F600\\uD83D\\uDE00\\x41\\101'");
  EXPECT_EQ(show("E'a\\u12'"), "!:\\u12 (invalid Unicode escape)");
  EXPECT_EQ(show("E'\\uDE00'"), "!:\\uDE00 (invalid Unicode surrogate pair)");
  EXPECT_EQ(show("E'\\uD83Dx'"), "!:x (invalid Unicode surrogate pair)");
  EXPECT_EQ(show("E'\\U00110000'"), "!:\\U00110000 (invalid Unicode escape value)");
}

TEST(Scanner, StandardConformingStringsOff) {
  EXPECT_EQ(show("'a\\'b'", false), "S:'a\\'b'");
  EXPECT_EQ(show("U&'a'", false), "!:U&' (unsafe use of string constant with Unicode escapes)");
}

TEST(Scanner, AnErrorStays) {
  Scanner scanner("'a");
  EXPECT_EQ(scanner.next(), scanner.next());
  EXPECT_STREQ(scanner.error_message(), "unterminated quoted string");
}

TEST(Scanner, ErrorsAreSaidAsPostgresSaysThem) {
  const std::string_view text = "SELECT 'ä', 'b";
  Scanner scanner(text);
  Token token = scanner.next();
  while (token.kind != TokenKind::kError) token = scanner.next();
  const Error error = scanner.error();
  EXPECT_EQ(error.message, "unterminated quoted string at or near \"'b\"");
  EXPECT_EQ(error.position, 13);
  EXPECT_EQ(error.sqlstate, "42601");
  EXPECT_EQ(error_at(text, {15, 15}, "syntax error").message, "syntax error at end of input");
}

TEST(Keyword, ComparesWithoutCase) {
  const std::string_view text = "SeLeCt \"select\" selects";
  Scanner scanner(text);
  EXPECT_TRUE(is_keyword(text, scanner.next(), "select"));
  EXPECT_FALSE(is_keyword(text, scanner.next(), "select"));
  EXPECT_FALSE(is_keyword(text, scanner.next(), "select"));
}

std::vector<std::string> statements(std::string_view text) {
  std::vector<std::string> found;
  for (Range range : split_statements(text)) found.emplace_back(range.of(text));
  return found;
}

TEST(Split, AtSemicolons) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(statements(""), Strings{});
  EXPECT_EQ(statements(" ;; -- nothing\n ; "), Strings{});
  EXPECT_EQ(statements("select 1"), Strings{"select 1"});
  EXPECT_EQ(statements(" select 1; /* x;y */ select ';' ;"), (Strings{"select 1", "select ';'"}));
  EXPECT_EQ(statements("create rule r as on insert to t do (select 1; select 2); select 3"),
            (Strings{"create rule r as on insert to t do (select 1; select 2)", "select 3"}));
  EXPECT_EQ(statements("create or replace function f() returns int begin atomic select 1; "
                       "select case when true then 1 end; end; commit"),
            (Strings{"create or replace function f() returns int begin atomic select 1; "
                     "select case when true then 1 end; end",
                     "commit"}));
  EXPECT_EQ(statements("begin; end; begin atomic; x"), (Strings{"begin", "end", "begin atomic", "x"}));
  EXPECT_EQ(statements("a; b 'c; d"), (Strings{"a", "b 'c; d"}));
  EXPECT_EQ(statements("a; 'c; d"), (Strings{"a", "'c; d"}));
  EXPECT_EQ(statements("a; E'c\\u1'; d"), (Strings{"a", "E'c\\u1'; d"}));
}

// Says how the two differ, or nothing.
std::string difference(const std::string& text) {
  const oracle::Scan theirs = oracle::scan(text);
  Scanner scanner(text);
  std::size_t i = 0;
  for (Token token = scanner.next();; token = scanner.next(), ++i) {
    if (token.kind == TokenKind::kError) {
      const Error error = scanner.error();
      if (theirs.failure.message == error.message && theirs.failure.position == error.position) return {};
      return "ours: " + error.message + " at " + std::to_string(error.position) +
             "\ntheirs: " + theirs.failure.message + " at " + std::to_string(theirs.failure.position) + "\n" +
             text;
    }
    // What the bytes of an escape string mean is checked when it is decoded.
    if (theirs.failure.message.starts_with("invalid byte sequence")) return {};
    if (theirs.failure.failed()) {
      if (token.kind != TokenKind::kEnd) continue;
      return "only theirs fails: " + theirs.failure.message + "\n" + text;
    }
    if (token.kind == TokenKind::kEnd)
      return i == theirs.tokens.size() ? std::string() : "theirs has more tokens\n" + text;
    if (i == theirs.tokens.size()) return "ours has more tokens\n" + text;
    TokenKind kind = token.kind;
    if (kind == TokenKind::kEscapeString || kind == TokenKind::kDollarString) kind = TokenKind::kString;
    Token expected = theirs.tokens[i].token;
    // libpg_query does not set the end of these two; the next token's begin still shows it.
    if (kind == TokenKind::kUnicodeString || kind == TokenKind::kUnicodeIdentifier) expected.end = token.end;
    // libpg_query reads comments as tokens, so its strings do not go on behind one; PostgreSQL's do.
    if (kind == expected.kind && token.end > expected.end &&
        token.of(text).find("--") != std::string_view::npos)
      return {};
    if (Token{kind, token.begin, token.end} != expected)
      return "ours: " + std::string(1, letter(kind)) + std::string(token.of(text)) +
             "\ntheirs: " + std::string(1, letter(expected.kind)) + std::string(expected.of(text)) + "\n" +
             text;
  }
}

// The files that PostgreSQL's own packages bring (information_schema, system views, extensions) and our corpus.
std::vector<std::string> large_body_of_sql() {
  std::vector<std::string> texts = oracle::sql_files("tests");
  for (std::string& text : oracle::sql_files("/usr/share/postgresql/15")) texts.push_back(std::move(text));
  return texts;
}

TEST(ScannerAgreesWithPostgres, OnWholeFiles) {
  const auto texts = large_body_of_sql();
  ASSERT_FALSE(texts.empty());
  for (const std::string& text : texts) ASSERT_EQ(difference(text), "");
}

TEST(ScannerAgreesWithPostgres, OnRandomPieces) {
  const std::vector<std::string> pieces = {
      "'",      "\"",  "''", "$$", "$a$",         "$",   "$1",      "E'",          "e'\\",    "U&'",     "U&\"",
      "u&",     "B'",  "x'", "n'", "\\",          "\\u", "\\u00e4", "\\U0001F600", "\\uD83D", "\\uDE00", "\\x4",
      "\\1",    "--",  "/*", "*/", "/",           "*",   "\n",      "\r\n",        " ",       "\t",      "-",
      "+",      "->>", "@-", "=",  "<",           ">",   "<=",      "!=",          "=>",      "::",      ":=",
      ":",      ".",   "..", "1",  "12",          "1e",  "e5",      "1.5",         ".5",      "_",       "a",
      "select", "ä",   "漢", ",",  "(",           ")",   ";",       "{",           "~",       "?",       "|",
      "#",      "%",   "^",  "0x", "UESCAPE '!'", "\f",  "\v"};
  std::mt19937 random(20240611);
  for (int round = 0; round < 60000; ++round) {
    std::string text;
    for (auto length = random() % 12 + 1; length > 0; --length) text += pieces[random() % pieces.size()];
    ASSERT_EQ(difference(text), "") << "round " << round;
  }
}

}  // namespace
}  // namespace kintsugi::parser
