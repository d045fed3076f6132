// The grammar and the tree over any bytes: an answer or an error with a place in the text, and a tree whose
// ranges lie in it.
#include "parser/parser.h"
#include "parser/scanner.h"
#include "parser/split_statements.h"
#include "parser/to_string.h"
#include "tests/fuzz/target.h"

namespace kintsugi::parser {
namespace {

void fuzz(std::string_view input) {
  static Parser parser;
  if (input.size() > 4096) return;
  const int last = character_position(input, static_cast<std::uint32_t>(input.size()));
  for (const Range range : split_statements(input)) {
    auto statement = parser.parse(input, range);
    if (!statement) {
      CHECK_THAT(statement.error().sqlstate.size() == 5 && !statement.error().message.empty());
      CHECK_THAT(statement.error().position >= 0 && statement.error().position <= last);
      continue;
    }
    CHECK_THAT((*statement)->text() == range.of(input));
    CHECK_THAT(!to_string(**statement).empty());
    // The same text gives the same tree.
    auto again = parser.parse((*statement)->text());
    CHECK_THAT(again && to_string(**again) == to_string(**statement));
    if (const auto* query = (*statement)->get<Query>(); query != nullptr && query->simple() != nullptr) {
      const Select& select = *query->simple();
      for (const Range clause : {select.range, select.select_list, select.from_clause, select.where_clause})
        CHECK_THAT(clause.begin <= clause.end && clause.end <= (*statement)->text().size());
    }
  }
}

std::vector<std::string> seeds() {
  return {
      "SELECT DISTINCT ON (a) a.b, count(*) FILTER (WHERE x) OVER w AS c FROM s.t AS a JOIN u USING (i) WHERE "
      "a = ANY ($1) AND "
      "b NOT IN (1, 2) OR c BETWEEN 1 AND 2 GROUP BY ROLLUP (a) HAVING true WINDOW w AS (ORDER BY d) ORDER BY "
      "1 LIMIT 5",
      "WITH RECURSIVE r (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r) SELECT ((SELECT 1)), CASE WHEN a "
      "THEN b END FROM r",
      "INSERT INTO t (a, b[1]) VALUES (1, DEFAULT) ON CONFLICT (a) DO UPDATE SET (a, b) = (SELECT 1, 2) "
      "RETURNING *",
      "UPDATE t x SET a = interval '1' day FROM u WHERE x.a = u.a; DELETE FROM t USING u WHERE CURRENT OF c",
      "MERGE INTO t USING u ON true WHEN MATCHED THEN DO NOTHING; COPY t FROM STDIN (FORMAT csv)",
      "CREATE TABLE t (a int PRIMARY KEY DEFAULT 1 + 2, CHECK (a > 1)) PARTITION BY HASH (a) SHARD BY m (a)",
      "SPLIT SHARDLET a AT (500) INTO (l, r) MOVE r TO SHARD s2 WITH (wait = true); SHOW SHARDLETS OF m",
      "SELECT extract(year FROM a), substring(b FROM 1 FOR 2), x::numeric(10, 2)[], (a, b) OVERLAPS (c, d), "
      "U&'\\0061'"};
}

}  // namespace
}  // namespace kintsugi::parser

KINTSUGI_FUZZ_TARGET(parser_statement, kintsugi::parser::fuzz, kintsugi::parser::seeds)
