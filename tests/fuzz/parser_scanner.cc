// The scanner, the division into statements and the normal form over any bytes: tokens stand in order and
// inside the text, and what is divided and normalised covers them.
#include "parser/normalise.h"
#include "parser/scanner.h"
#include "parser/split_statements.h"
#include "tests/fuzz/target.h"

namespace kintsugi::parser {
namespace {

void fuzz(std::string_view input) {
  for (const bool standard_strings : {true, false}) {
    Scanner scanner(input, standard_strings);
    std::uint32_t last = 0;
    for (;;) {
      const Token token = scanner.next();
      CHECK_THAT(token.begin <= token.end && token.end <= input.size());
      if (token.kind == TokenKind::kError) {
        CHECK_THAT(scanner.error_message() != nullptr && scanner.next() == token);
        CHECK_THAT(scanner.error().position >= 1 && !scanner.error().message.empty());
        break;
      }
      CHECK_THAT(token.begin >= last);
      last = token.end;
      if (token.kind == TokenKind::kEnd) break;
      CHECK_THAT(token.begin < token.end);
    }
    std::uint32_t end = 0;
    for (const Range statement : split_statements(input, standard_strings)) {
      CHECK_THAT(statement.begin >= end && statement.begin <= statement.end && statement.end <= input.size());
      end = statement.end;
      Normaliser normaliser;
      if (!normaliser.read(input, statement, standard_strings)) continue;
      std::uint32_t unit_end = statement.begin;
      for (const Range unit : normaliser.units()) {
        CHECK_THAT(unit.begin >= unit_end && unit.begin < unit.end && unit.end <= statement.end);
        unit_end = unit.end;
      }
      for (std::size_t i = 0; i < normaliser.slots().size(); ++i)
        CHECK_THAT(normaliser.slot_at(normaliser.slots()[i].token.begin) == static_cast<int>(i));
      for (const SlotGroup& group : normaliser.groups())
        CHECK_THAT(group.first + group.count <= normaliser.slots().size() && group.range.end <= statement.end);
      const Range whole = {statement.begin, statement.end};
      CHECK_THAT(normaliser.units().empty() ||
                 translate(whole, normaliser.units(), normaliser.units()) == whole);
    }
  }
}

std::vector<std::string> seeds() {
  return {"SELECT 'a' 'b' -- c\n'd', E'\\u00e4\\x4', U&'\\0061' UESCAPE '!', $$x$$, $a$b$a$ FROM t;",
          "insert into t (a, b) values (1, 'x'), (2, NULL), (-3, $1) on conflict do nothing",
          "select 1 from t where a in (1, -2, 3) and b in ('x') order by 1, a + 2 limit 10",
          "create function f() returns int begin atomic select case when true then 1 end; end; select 2",
          "select a@-b, c*--d\n+e, 1..2, 1e5, .5, 1.e-5, $1, b'01', x'f', \"q\"\"r\", /* n /* m */ */ 1"};
}

}  // namespace
}  // namespace kintsugi::parser

KINTSUGI_FUZZ_TARGET(parser_scanner, kintsugi::parser::fuzz, kintsugi::parser::seeds)
