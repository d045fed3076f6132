// COPY: split by key on the way in, from all shards on the way out.
#include <algorithm>

#include "base/sql_quote.h"
#include "parser/scanner.h"
#include "planner/utilities.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

using Kind = RelationUse::Kind;

// COPY of some columns into a replicated table whose others each shard would fill in for itself.
// ENCODING: the shards read other texts than are looked at here.
std::optional<Error> Utilities::encodes_otherwise(const parser::Copy& copy, const RelationUse& use) {
  const auto& types = use.mapping->key_types();
  if (std::find(types.begin(), types.end(), shardmap::KeyType::kText) == types.end()) return std::nullopt;
  for (const parser::Option& option : copy.options) {
    if (option.name != "encoding") continue;
    std::string folded;
    for (const char c : option.value)
      if (c != '-' && c != '_') folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (folded != "utf8")
      return refused("COPY into " + use.display +
                         ", which has a text as its sharding key, with another ENCODING than UTF8",
                     "Convert the file first (iconv -t UTF-8).");
  }
  return std::nullopt;
}

void Utilities::stage(const parser::Copy& copy, const RelationUse& use, CopyIn& in) const {
  if (use.relation == nullptr || copy.columns.empty() || analyzer_.map().home_shard() == nullptr) return;
  const auto named = [&](const Column& column) {
    return std::any_of(copy.columns.begin(), copy.columns.end(),
                       [&](const parser::Name& name) { return name.text == column.name; });
  };
  const auto& columns = use.relation->columns;
  if (std::none_of(columns.begin(), columns.end(), [&](const Column& column) {
        return !column.generated && !named(column) && !own_default(column).empty();
      }))
    return;
  constexpr std::string_view kStage = "pg_temp.kg_copy";
  std::string definitions, names;
  for (const Column& column : columns) {
    if (column.generated) continue;
    const std::string name = quote_identifier(column.name);
    names += (names.empty() ? "" : ", ") + name;
    definitions += (definitions.empty() ? "" : ", ") + name + " " + column.type_name;
    if (!column.collation.empty() && column.collation != "default")
      definitions += " COLLATE " + quote_identifier(column.collation);
    if (const std::string value = default_of(*use.relation, column); !value.empty())
      definitions += " DEFAULT " + value;
  }
  in.stage = "CREATE TEMP TABLE kg_copy (" + definitions + ") ON COMMIT DROP";
  in.fill = {"INSERT INTO " + quote_identifier(use.relation->schema) + "." +
                 quote_identifier(use.relation->name) + " (" + names + ") OVERRIDING SYSTEM VALUE",
             "SELECT " + names + " FROM " + std::string(kStage)};
  in.shards = {analyzer_.map().home_shard()->id};
  const std::string_view text = analyzer_.statement().text();
  const parser::Range name = copy.table.name.range;
  in.text = std::string(text.substr(0, name.begin)) + std::string(kStage) + std::string(text.substr(name.end));
}

// What each shard would do otherwise with the same rows, or elsewhere.
std::optional<Error> Utilities::copied_apart(const parser::Copy& copy, const RelationUse& use) {
  if (!copy.from) return std::nullopt;
  if (copy.where != nullptr && use.kind == Kind::kReplicated) {
    Block block;
    Scope scope;
    block.scope = &scope;
    analyzer_.expression(copy.where, block);
    if (block.row_volatile || analyzer_.session_time || !analyzer_.one_place.empty() ||
        !analyzer_.reads_tables.empty())
      return refused("COPY into the replicated table " + use.display +
                         " with a condition that each shard would answer for itself",
                     "Leave WHERE out, and the rows that are not wanted.");
  }
  return triggers_elsewhere(analyzer_, use);
}

// Every shard gives its rows. Where some of them are on their way to or from it, a query in the table's place
// leaves them out.
void Utilities::copy_out(const parser::Copy& copy, const RelationUse& use, CopyShape shape) {
  analysis_.tables.push_back({use.display, use.table->map, {}});
  analysis_.maps.push_back(use.table->map);
  FanOutTemplate fan_out;
  fan_out.copy = shape;
  analysis_.several = std::move(fan_out);
  Owned owned{use.table->map, {}};
  for (const std::string& key : use.table->key) owned.columns.push_back(quote_identifier(key));
  analysis_.owned.push_back(owned);
  // PostgreSQL does not copy from a partitioned table, and says so.
  if (use.relation == nullptr || use.relation->kind != RelationKind::kTable) {
    analysis_.unhideable = "rows of " + use.display + " that are on their way cannot be left out here";
    return;
  }
  const std::string_view text = analyzer_.statement().text();
  parser::Range place = copy.table.name.range;
  std::string columns;
  const auto add = [&columns](std::string_view name) {
    columns += (columns.empty() ? "" : ", ") + quote_identifier(name);
  };
  for (const parser::Name& name : copy.columns) add(name.text);
  if (!copy.columns.empty()) {
    parser::Scanner scanner(text);
    scanner.seek(copy.columns[copy.columns.size() - 1].range.end);
    place.end = scanner.next().end;  // the closing parenthesis
  } else {
    for (const Column& column : use.relation->columns)
      if (!column.generated) add(column.name);
  }
  Piece rows{.kind = Piece::Kind::kOwnedTable};
  rows.text = "ONLY " + quote_identifier(use.relation->schema) + "." + quote_identifier(use.relation->name);
  rows.alias = "kg_copied";
  rows.owned = {owned};
  Piece either{.kind = Piece::Kind::kEither};
  either.range = place;
  either.owned = {owned};
  either.inner = {{.text = "(SELECT " + columns + " FROM "}, rows, {.text = ")"}};
  TextEdits edits(text, true);
  edits.replace(place, TextTemplate{either});
  analysis_.own = edits.make(analyzer_.whole);
}

void Utilities::operator()(const parser::Copy* copy) {
  bool header = false;
  CopyIn in;
  std::optional<std::string> null_text;
  std::optional<char> delimiter;
  for (const parser::Option& option : copy->options) {
    const std::string_view value = option.value;
    if (option.name == "format" || option.name == "csv" || option.name == "binary") {
      const std::string_view format = option.name == "format" ? value : option.name;
      in.format = format == "csv"      ? CopyIn::Format::kCsv
                  : format == "binary" ? CopyIn::Format::kBinary
                                       : CopyIn::Format::kText;
    }
    if (option.name == "delimiter" && !value.empty()) delimiter = value.front();
    if (option.name == "null") null_text = value;
    if (option.name == "header")
      header = !option.has_value || value == "true" || value == "on" || value == "1" || value == "match";
    if (option.name == "quote" && !value.empty()) in.quote = value.front();
    if (option.name == "escape" && !value.empty()) in.escape = value.front();
  }
  const bool csv = in.format == CopyIn::Format::kCsv;
  if (csv && std::none_of(copy->options.begin(), copy->options.end(),
                          [](const parser::Option& option) { return option.name == "escape"; }))
    in.escape = in.quote;
  in.delimiter = delimiter.value_or(csv ? ',' : '\t');
  in.null_text = null_text.value_or(csv ? "" : "\\N");
  in.header = header;
  const bool file = copy->program || !copy->standard_stream;
  if (copy->query != nullptr) {
    if (copy->query->query == nullptr)
      return refuse(refused("COPY of what a writing statement returns", "Send the statement itself."));
    analyse_query(analyzer_, *copy->query->query, analysis_, true);
    if (analysis_.tables.empty()) return;
    if (auto* gather = std::get_if<GatherTemplate>(&analysis_.several); gather != nullptr && !file) {
      gather->copy_out = true;
      if (gather->tier == Tier::kGather) return;  // that has the whole statement in its text
      const parser::Range query = copy->query->query->range;
      gather->text.insert(gather->text.begin(),
                          {.kind = Piece::Kind::kOwn, .range = {analyzer_.whole.begin, query.begin}});
      gather->text.push_back({.kind = Piece::Kind::kOwn, .range = {query.end, analyzer_.whole.end}});
      return;
    }
    auto* fan_out = std::get_if<FanOutTemplate>(&analysis_.several);
    if (file && (fan_out != nullptr || std::holds_alternative<GatherTemplate>(analysis_.several)))
      analysis_.several = refused("COPY of a query over several shards with a file of the server",
                                  "Use COPY ... TO STDOUT (psql's \\copy).");
    if (file || fan_out == nullptr) return;
    fan_out->copy = CopyShape{header, in.format == CopyIn::Format::kBinary};
    return;
  }
  const RelationUse use = where(copy->table.name);
  if (!placed(use)) {
    if (use.relation != nullptr && use.relation->kind == RelationKind::kView && !copy->from) at_home();
    return at_home();
  }
  if (auto error = copied_apart(*copy, use)) return refuse(std::move(*error));
  if (file)
    return refuse(refused("COPY of " + use.display + " with a file of the server",
                          "Use COPY ... FROM STDIN or TO STDOUT (psql's \\copy)."));
  if (!copy->from) {
    if (use.kind == Kind::kReplicated) {
      analysis_.anywhere = true;
      return;
    }
    return copy_out(*copy, use, {header, in.format == CopyIn::Format::kBinary});
  }
  if (use.kind == Kind::kReplicated) {
    in.shards = replicated_shards(analyzer_.map());
    stage(*copy, use, in);
    return fix(std::move(in));
  }
  if (auto error = encodes_otherwise(*copy, use)) return refuse(std::move(*error));
  for (const parser::Name& name : copy->columns)
    if (use.relation != nullptr && use.relation->column(name.text) == nullptr)
      return refuse({.sqlstate = "42703",
                     .message = "column \"" + std::string(name.text) + "\" of relation \"" +
                                use.relation->name + "\" does not exist"});
  in.map = use.table->map;
  for (const std::string& key : use.table->key) {
    int place = -1;
    if (!copy->columns.empty()) {
      for (std::size_t i = 0; i < copy->columns.size(); ++i)
        if (copy->columns[i].text == key) place = static_cast<int>(i);
    } else if (use.relation != nullptr) {
      int at = 0;
      for (const Column& column : use.relation->columns) {
        if (column.name == key) place = at;
        if (!column.generated) ++at;
      }
    } else {
      return refuse({.sqlstate = "42P01", .message = "relation \"" + use.display + "\" does not exist"});
    }
    if (place < 0)
      return refuse({.sqlstate = std::string(sqlstate::kKeyMissing),
                     .message = "the sharding key " + key + " is missing in this COPY into " + use.display,
                     .hint = "Name the column in COPY's list and give its values."});
    in.key_columns.push_back(place);
    const Column* column = use.relation == nullptr ? nullptr : use.relation->column(key);
    in.limits.push_back(column == nullptr ? KeyLimit{} : limit_of(column->type_name));
    const auto forced = [&](std::string_view what) {
      return std::any_of(copy->options.begin(), copy->options.end(), [&](const parser::Option& option) {
        return option.name == what &&
               (option.star || std::find(option.list.begin(), option.list.end(), key) != option.list.end());
      });
    };
    in.force_null.push_back(forced("force_null"));
    in.force_not_null.push_back(forced("force_not_null"));
  }
  for (const auto& [shard, entries] : use.mapping->shards()) in.shards.push_back(shard);
  if (in.shards.size() > 1)
    if (auto error = triggers_run_anything(analyzer_, use)) return refuse(std::move(*error));
  fix(std::move(in));
}

}  // namespace kintsugi::planner
