#include "shardmap/store_script.h"

#include "base/sql_quote.h"
#include "shardmap/pg_session.h"

namespace kintsugi::shardmap {
namespace {

std::string refusal(const std::string& message) {
  return "RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = " + message + "; ";
}

std::string block(const std::string& body) {
  return "DO " + quote_literal("DECLARE kg_found record; BEGIN " + body + "END");
}

// Without what it expects.
std::string change_of(const NoteChange& change, const std::string& changed) {
  const std::string kind = quote_literal(change.kind);
  const std::string key = quote_literal(change.key);
  if (!change.body) return "DELETE FROM note WHERE kind = " + kind + " AND key = " + key;
  const std::string insert = "INSERT INTO note (kind, key, body) VALUES (" + kind + ", " + key + ", " +
                             quote_literal(*change.body) + ") ON CONFLICT ";
  // Two who both expect nothing: one of them gets through.
  if (change.expected && change.expected->empty())
    return insert + "DO NOTHING; IF NOT FOUND THEN " + changed + "END IF";
  return insert + "(kind, key) DO UPDATE SET body = excluded.body, updated = clock_timestamp()";
}

}  // namespace

std::string with_values(const RowChange& change) {
  std::string out;
  for (std::size_t at = 0; at < change.sql.size();) {
    if (change.sql[at] != '$') {
      out += change.sql[at++];
      continue;
    }
    std::size_t number = 0;
    while (++at < change.sql.size() && change.sql[at] >= '0' && change.sql[at] <= '9')
      number = number * 10 + static_cast<std::size_t>(change.sql[at] - '0');
    const SqlValue& value = change.values.at(number - 1);
    out += quote_literal(value.kind == SqlValue::Kind::kBytes ? bytea_text(value.value) : value.value);
  }
  return out;
}

std::string check_of_head(const StoredMap& base) {
  const std::string epoch = std::to_string(base.map->epoch());
  return block(
      "SELECT epoch, store_id, (SELECT token FROM edit WHERE edit.epoch = " + epoch +
      ") INTO kg_found FROM head FOR UPDATE OF head; IF kg_found.epoch <> " + epoch +
      " OR kg_found.store_id <> " + quote_literal(base.map->store_id()) +
      " OR coalesce(kg_found.token, '') <> " + quote_literal(base.token) + " THEN " +
      refusal("'the shard map was changed by somebody else (it is at epoch ' || kg_found.epoch || ', this "
              "change was made for epoch " +
              epoch + ")'") +
      "END IF; ");
}

std::string changes_of_notes(const std::vector<NoteChange>& changes) {
  if (changes.size() == 1 && !changes[0].expected) return change_of(changes[0], "");
  std::string body;
  for (const NoteChange& change : changes) {
    const std::string changed =
        refusal(quote_literal("the note " + change.kind + " " + change.key + " was changed by somebody else"));
    if (change.expected) {
      body += "SELECT body INTO kg_found FROM note WHERE kind = " + quote_literal(change.kind) +
              " AND key = " + quote_literal(change.key) + " FOR UPDATE; IF coalesce(kg_found.body, '') <> " +
              quote_literal(*change.expected) + " THEN " + changed + "END IF; ";
    }
    body += change_of(change, changed) + "; ";
  }
  return block(body);
}

}  // namespace kintsugi::shardmap
