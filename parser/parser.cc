#include "parser/parser.h"

#include "parser/grammar_driver.h"
#include "parser/grammar_tokens.h"
#include "parser/split_statements.h"
#include "parser/tree_builder.h"

namespace kintsugi::parser {

struct Parser::Machine {
  GrammarTokens tokens;
  GrammarDriver driver;
};

Parser::Parser() : machine_(std::make_unique<Machine>()) {}
Parser::~Parser() = default;
Parser::Parser(Parser&&) noexcept = default;
Parser& Parser::operator=(Parser&&) noexcept = default;

Result<std::unique_ptr<const Statement>> Parser::parse(std::string_view text, ParseOptions options) {
  StatementSplitter splitter(text, options.standard_conforming_strings);
  Range first;
  const auto size = static_cast<std::uint32_t>(text.size());
  if (!splitter.next(first)) return fail(error_at(text, {size, size}, "syntax error"));
  KG_TRY(auto statement, parse(text, first, options));
  if (Range second; splitter.next(second)) {
    return fail(sqlstate::kSyntaxError, "more than one statement where one was expected");
  }
  return statement;
}

Result<std::unique_ptr<const Statement>> Parser::parse(std::string_view text, Range statement,
                                                       ParseOptions options) {
  KG_CHECK(machine_->tokens.read(text, statement, options.standard_conforming_strings));
  KG_TRY(auto* context, machine_->driver.parse(machine_->tokens));
  auto made = std::make_unique<Statement>(statement.of(text));
  KG_CHECK(TreeBuilder(*made, text, statement.begin).build(context));
  return made;
}

void Parser::warm_up() {
  static constexpr std::string_view kShapes[] = {
      "SELECT a, t.b FROM t WHERE a = 1 AND t.b = 'x' OR c IN (1, 2) ORDER BY a DESC LIMIT 10 OFFSET 5",
      "SELECT count(*), sum(a) FROM s.t AS x JOIN u ON x.a = u.b LEFT JOIN v USING (c) WHERE x.a = $1 GROUP BY "
      "b HAVING count(*) > 1",
      "SELECT a FROM t WHERE b BETWEEN $1 AND $2 AND c IS NOT NULL AND d = ANY($3) AND e LIKE 'x%' FOR UPDATE",
      "INSERT INTO t (a, b, c) VALUES ($1, 'x', now()), (1, NULL, 2.5) ON CONFLICT (a) DO UPDATE SET b = "
      "excluded.b RETURNING a",
      "UPDATE t SET a = a + $1, b = 'x' WHERE c = $2",
      "DELETE FROM t WHERE a = $1 AND b < 5",
      "BEGIN",
      "COMMIT",
      "SET a TO 'b'",
      "SHOW a",
      "WITH x AS (SELECT 1) SELECT * FROM x, (SELECT 2) y WHERE EXISTS (SELECT 1 FROM z WHERE z.a = x.b)",
  };
  for (const std::string_view shape : kShapes) static_cast<void>(parse(shape));
}

}  // namespace kintsugi::parser
