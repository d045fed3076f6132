#include "planner/analyse.h"

#include <algorithm>
#include <span>

#include "base/sql_quote.h"
#include "parser/parser.h"
#include "planner/guard_reader.h"
#include "planner/read_first.h"
#include "planner/work_out.h"

namespace kintsugi::planner {

using Kind = RelationUse::Kind;

Error refused(std::string what, std::string instead) {
  return {
      .sqlstate = std::string(sqlstate::kNotSupported), .message = std::move(what), .hint = std::move(instead)};
}

namespace {

// The equality of each key column, when the condition has one for each.
std::optional<std::vector<Source>> point_of(const KeyCondition& condition, std::size_t columns) {
  std::vector<std::optional<Source>> found(columns);
  const auto take = [&](const KeyCondition& leaf) {
    if (leaf.op == KeyCondition::Op::kEqual && !found[leaf.column]) found[leaf.column] = leaf.source;
  };
  if (condition.op == KeyCondition::Op::kAnd)
    for (const KeyCondition& child : condition.children) take(child);
  else
    take(condition);
  std::vector<Source> out;
  for (const auto& source : found) {
    if (!source) return std::nullopt;
    out.push_back(*source);
  }
  return out;
}

bool has_parameter(const KeyCondition& condition) {
  using Op = KeyCondition::Op;
  switch (condition.op) {
    case Op::kAll:
    case Op::kNone: return false;
    case Op::kGroup: return true;
    case Op::kList:
    case Op::kAnd:
    case Op::kOr: return std::any_of(condition.children.begin(), condition.children.end(), has_parameter);
    default:
      return condition.source.kind == Source::Kind::kParameter ||
             condition.source.kind == Source::Kind::kGroupSlot;
  }
}

std::size_t bytes_of(const KeyCondition& condition) {
  std::size_t bytes = sizeof condition;
  for (const KeyCondition& child : condition.children) bytes += bytes_of(child);
  return bytes;
}

std::size_t bytes_of(const TextTemplate& text) {
  std::size_t bytes = 0;
  for (const Piece& piece : text) bytes += sizeof piece + piece.text.size() + bytes_of(piece.inner);
  return bytes;
}

std::vector<std::string> key_columns(const RelationUse& use, std::string_view alias) {
  std::vector<std::string> columns;
  for (const std::string& column : use.table->key)
    columns.push_back((alias.empty() ? "" : quote_identifier(alias) + ".") + quote_identifier(column));
  return columns;
}

std::string_view visible_name(const parser::TableRef& ref) {
  return ref.alias.given() ? ref.alias.name.text : ref.name.name();
}

}  // namespace

void take_tables(Analyzer& analyzer, Analysis& analysis) {
  bool system = false;
  for (const RelationUse& use : analyzer.uses) {
    switch (use.kind) {
      case Kind::kSharded: {
        TouchedTable table{use.display, use.table->map, use.condition};
        if (use.target) analysis.read_write_shardlets = true;
        const auto same = std::find_if(analysis.tables.begin(), analysis.tables.end(), [&](const auto& other) {
          return other.map == table.map && other.condition == table.condition;
        });
        if (same == analysis.tables.end()) analysis.tables.push_back(std::move(table));
        if (std::find(analysis.maps.begin(), analysis.maps.end(), use.table->map) == analysis.maps.end())
          analysis.maps.push_back(use.table->map);
        break;
      }
      case Kind::kReplicated: analysis.replicated_target |= use.target; break;
      case Kind::kSystem: system = true; break;
      case Kind::kHome:
      case Kind::kUnknown: analysis.home = true; break;
    }
  }
  if (analyzer.locks) analysis.read_write_shardlets = true;
  analysis.writes = analyzer.modifies || analyzer.locks || analyzer.into || !analyzer.one_place.empty() ||
                    !analyzer.reads_tables.empty();
  analysis.anywhere = !analysis.home && !system && !analyzer.unknown_names && analyzer.one_place.empty() &&
                      analyzer.reads_tables.empty() && !analyzer.locks && !analyzer.into && !analyzer.modifies;
  if (analysis.maps.size() == 1) {
    const shardmap::Mapping* mapping = analyzer.map().mapping(analysis.maps.front());
    std::optional<std::vector<Source>> point;
    for (std::size_t i = 0; i < analysis.tables.size(); ++i) {
      auto each = point_of(analysis.tables[i].condition, mapping->key_types().size());
      if (!each || (i > 0 && *each != *point)) {
        point.reset();
        break;
      }
      point = std::move(each);
    }
    if (point) analysis.point = PointKey{analysis.maps.front(), std::move(*point)};
  }
  for (const TouchedTable& table : analysis.tables)
    if (analyzer.statement().parameters() > 0 && has_parameter(table.condition))
      analysis.depends_on_parameters = true;
}

std::optional<Error> sees_one_shard(const Analyzer& analyzer) {
  if (analyzer.reads_sharded.empty()) return std::nullopt;
  return refused(
      "the function " + analyzer.reads_sharded + ", in a statement without a sharding key",
      "It would see the rows of one shard. Send its statements themselves, or call it in a statement "
      "that says with = which sharding key it is for.");
}

void add_ownership(Analyzer& analyzer, Analysis& analysis, TextEdits& edits, const WriteClauses* write) {
  // Views with sharded tables are put in as subqueries, from the inside out.
  std::vector<std::unique_ptr<TextEdits>> of_units;
  for (std::size_t i = 1; i < analyzer.units.size(); ++i)
    of_units.push_back(std::make_unique<TextEdits>(analyzer.units[i].statement->text(), false));
  std::vector<std::vector<Owned>> owned(analyzer.units.size());
  struct Group {
    const parser::Select* block;
    int unit;
    std::vector<Owned> owned;
  };
  std::vector<Group> groups;
  std::vector<Owned> of_write;
  const auto edits_of = [&](int unit) -> TextEdits& {
    return unit == 0 ? edits : *of_units[static_cast<std::size_t>(unit) - 1];
  };
  for (const RelationUse& use : analyzer.uses) {
    if (use.kind != Kind::kSharded || use.ref == nullptr) continue;
    Owned of_table{use.table->map, key_columns(use, {})};
    analysis.owned.push_back(of_table);
    for (int unit = use.unit; unit >= 0; unit = analyzer.units[static_cast<std::size_t>(unit)].parent)
      owned[static_cast<std::size_t>(unit)].push_back(of_table);
    if (use.block != nullptr && !use.nullable && !use.block->from_clause.empty()) {
      of_table.columns = key_columns(use, visible_name(*use.ref));
      const auto at = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
        return group.block == use.block && group.unit == use.unit;
      });
      if (at == groups.end())
        groups.push_back({use.block, use.unit, {std::move(of_table)}});
      else
        at->owned.push_back(std::move(of_table));
      continue;
    }
    if (write != nullptr && use.owner == write->block && !use.nullable && use.unit == 0) {
      of_table.columns = key_columns(use, visible_name(*use.ref));
      of_write.push_back(std::move(of_table));
      continue;
    }
    if (use.block == nullptr) {
      analysis.unhideable = "rows of " + use.display + " that are on their way cannot be left out here";
      continue;
    }
    const parser::Range name = use.ref->name.range;
    const std::string_view text = analyzer.units[static_cast<std::size_t>(use.unit)].statement->text();
    Piece piece{.kind = Piece::Kind::kOwnedTable};
    piece.text = (use.ref->only ? "ONLY " : "") + std::string(name.of(text));
    if (!use.ref->alias.given()) piece.alias = quote_identifier(use.ref->name.name());
    piece.owned = {std::move(of_table)};
    const parser::Range range{use.ref->only ? use.ref->range.begin : name.begin, name.end};
    Piece as_it_was{.kind = use.unit == 0 ? Piece::Kind::kOwn : Piece::Kind::kText};
    as_it_was.range = range;
    as_it_was.text = use.unit == 0 ? "" : std::string(range.of(text));
    piece.inner = {as_it_was};
    edits_of(use.unit).replace(range, TextTemplate{piece});
  }
  for (const Group& group : groups) {
    TextEdits& into = edits_of(group.unit);
    if (group.block->where == nullptr) {
      into.insert(group.block->from_clause.end,
                  TextTemplate{{.kind = Piece::Kind::kOwnedWhere, .owned = group.owned}});
    } else {
      // Behind the word WHERE, and around all of its condition.
      into.insert(group.block->where_clause.begin + 5,
                  TextTemplate{{.kind = Piece::Kind::kOwnedOpen, .owned = group.owned}});
      into.insert(group.block->where_clause.end,
                  TextTemplate{{.kind = Piece::Kind::kOwnedClose, .owned = group.owned}});
    }
  }
  if (!of_write.empty()) {
    if (write->where_clause.empty()) {
      edits.insert(write->where_goes, TextTemplate{{.kind = Piece::Kind::kOwnedWhere, .owned = of_write}});
    } else {
      edits.insert(write->where_clause.begin + 5,
                   TextTemplate{{.kind = Piece::Kind::kOwnedOpen, .owned = of_write}});
      edits.insert(write->where_clause.end,
                   TextTemplate{{.kind = Piece::Kind::kOwnedClose, .owned = of_write}});
    }
  }
  for (std::size_t i = analyzer.units.size(); i-- > 1;) {
    if (owned[i].empty()) continue;
    const Unit& unit = analyzer.units[i];
    const std::string_view text = unit.statement->text();
    Piece piece{.kind = Piece::Kind::kEither};
    piece.range = unit.ref->name.range;
    piece.owned = owned[i];
    std::uint32_t end = static_cast<std::uint32_t>(text.size());
    while (end > 0 && (text[end - 1] == ';' || text[end - 1] == ' ' || text[end - 1] == '\n')) --end;
    TextTemplate body = of_units[i - 1]->make({0, end});
    piece.inner.push_back({.text = "("});
    piece.inner.insert(piece.inner.end(), body.begin(), body.end());
    piece.inner.push_back({.text = ")"});
    if (!unit.ref->alias.given())
      piece.inner.push_back({.text = " AS " + quote_identifier(unit.ref->name.name())});
    if (unit.parent > 0) {
      // A view in a view: its text is not the client's.
      piece.text = std::string(
          unit.ref->name.range.of(analyzer.units[static_cast<std::size_t>(unit.parent)].statement->text()));
    }
    edits_of(unit.parent).replace(unit.ref->name.range, TextTemplate{piece});
  }
  if (!analyzer.guarded_view.empty())
    analysis.unhideable =
        "rows of the view " + analyzer.guarded_view + " that are on their way cannot be left out here";
  if (!analysis.owned.empty()) analysis.own = edits.make(analyzer.whole);
}

std::optional<Error> hopeless(const Analyzer& analyzer) {
  if (!analyzer.reads_tables.empty())
    return refused(
        "the function " + analyzer.reads_tables + " in a statement over several shards",
        "It may read tables, and would see those of one shard. Declare it IMMUTABLE if it reads none, or say "
        "with = which sharding key the statement is for.");
  if (!analyzer.opaque.empty())
    return refused("over several shards, " + analyzer.opaque + " cannot be looked into",
                   "Name the tables themselves, or say with = which sharding key the statement is for.");
  if (analyzer.modifies)
    return refused(
        "a WITH that writes, over several shards",
        "Run the writes as statements of their own in one transaction, or say with = which sharding key each "
        "is for.");
  return std::nullopt;
}

void made_at_home(Analyzer& analyzer, Analysis& analysis, std::string_view what) {
  const bool refuses = std::holds_alternative<Error>(analysis.several);
  analysis.writes = analysis.home = true;
  analysis.anywhere = false;
  if (analysis.tables.empty() || refuses) return;
  auto gather = gather_of(analyzer, analysis);
  if (!gather) {
    analysis.several = refused(std::string(what) + " over several shards with " + gather.error().message,
                               "Make a table with CREATE TABLE and fill it with INSERT ... SELECT.");
    return;
  }
  gather->writes = true;
  analysis.several = std::move(*gather);
}

namespace {

// Each shard's lines of a COPY stand behind those of another.
bool is_plain(const FanOutTemplate& fan_out) {
  return !fan_out.text && fan_out.merge.kind == Merge::Kind::kConcat && !fan_out.limits.limit &&
         !fan_out.limits.limit_one && !fan_out.limits.offset;
}

}  // namespace

void analyse_query(Analyzer& analyzer, const parser::Query& query, Analysis& analysis, bool copied) {
  const Shape shape = analyzer.query(query, nullptr, nullptr);
  analyzer.finish();
  take_tables(analyzer, analysis);
  TextEdits edits(analyzer.statement().text(), true);
  add_ownership(analyzer, analysis, edits);
  if (analysis.replicated_target) {
    // One shard alone must not have it.
    analysis.tables.clear();
    analysis.point.reset();
    if (auto parts = copied ? std::nullopt : written_first(analyzer, query.with))
      analysis.several = std::move(*parts);
    else
      analysis.several = refused("a WITH that writes to a replicated table",
                                 "Run the write as a statement of its own, in the same transaction.");
    return;
  }
  if (analysis.tables.empty()) {
    if (auto error = sees_one_shard(analyzer)) analysis.several = std::move(*error);
    return;
  }
  if (auto error = hopeless(analyzer)) {
    analysis.several = std::move(*error);
    if (!copied && analyzer.reads_tables.empty() && analyzer.opaque.empty() && !analyzer.into)
      if (auto parts = written_first(analyzer, query.with)) analysis.several = std::move(*parts);
    return;
  }
  if (analyzer.into) return made_at_home(analyzer, analysis, "SELECT INTO");
  // (SELECT ... LIMIT 3) in parentheses: what is in them has the clauses.
  const parser::Query& core = analyzer.top_query() != nullptr ? *analyzer.top_query() : query;
  auto fan_out = fan_out_of(analyzer, core, shape, edits);
  if (fan_out && (!copied || is_plain(*fan_out))) {
    for (const auto& count : {fan_out->limits.limit, fan_out->limits.offset})
      if (count && count->kind == Source::Kind::kParameter) analysis.depends_on_parameters = true;
    fan_out->writes = analysis.writes;
    analysis.several = std::move(*fan_out);
    return;
  }
  if (auto finish = &core == &query ? finish_of(analyzer, analysis, query, shape, edits)
                                    : Result<GatherTemplate>(fail(sqlstate::kNotSupported, "parentheses"))) {
    analysis.several = std::move(*finish);
    return;
  }
  auto gather = gather_of(analyzer, analysis);
  if (gather) {
    analysis.several = std::move(*gather);
    return;
  }
  analysis.several =
      refused("over several shards, " + gather.error().message,
              "Say with = which sharding key the statement is for." +
                  (fan_out ? std::string()
                           : " It cannot be answered shard by shard: " + fan_out.error().message + "."));
}

namespace {

// Rows of copies are locked on the home shard, where their writes begin; who locks them beside a sharded
// table's would lock the copy of that row's shard, and two of them the same row of two copies.
std::optional<Error> locked_elsewhere(const Analyzer& analyzer, const Analysis& analysis) {
  if (analyzer.locked_copy().empty() || analysis.tables.empty()) return std::nullopt;
  return refused(
      "FOR UPDATE of rows of the replicated table " + analyzer.locked_copy() + " beside a sharded one",
      "Say with OF which tables' rows are to be locked, and lock those of the replicated table with a "
      "SELECT of its own.");
}

// The schemas that search_path names before pg_catalog; none, when it does not name that.
std::span<const std::string> before_pg_catalog(const Analyzer& analyzer) {
  const auto& path = analyzer.names().search_path;
  const auto own = std::find(path.begin(), path.end(), "pg_catalog");
  if (own == path.end()) return {};
  return std::span(path).first(static_cast<std::size_t>(own - path.begin()));
}

Error hidden(const std::string& what, const std::string& schema, const std::string& where) {
  return refused(
      what + " of schema " + schema + ", which search_path names before pg_catalog, in a statement " + where,
      "Leave pg_catalog out of search_path or put it first, and write what is meant with its schema.");
}

// Users' operators in PostgreSQL's place: which rows a statement means is not known then. INSERT ... VALUES
// goes by none.
std::optional<Error> hidden_operators(const Analyzer& analyzer) {
  const auto schemas = before_pg_catalog(analyzer);
  if (schemas.empty()) return std::nullopt;
  const bool placed = std::any_of(analyzer.uses.begin(), analyzer.uses.end(), [](const RelationUse& use) {
    return use.kind == Kind::kSharded || (use.kind == Kind::kReplicated && use.target);
  });
  if (!placed || (analyzer.statement().get<parser::Insert>() != nullptr && analyzer.uses.size() == 1))
    return std::nullopt;
  static constexpr std::string_view kOperators[] = {"=",   "<>",   "<", "<=", ">", ">=", "~~", "!~~",
                                                    "~~*", "!~~*", "+", "-",  "*", "/",  "%"};
  for (const std::string& schema : schemas)
    for (const std::string_view name : kOperators)
      if (analyzer.catalog().function(schema, name) != nullptr)
        return hidden("the operator " + std::string(name), schema, "about tables of several shards");
  return std::nullopt;
}

// Users' functions and types in the place of PostgreSQL's: what several shards' answers are together is not
// looked into then, and views, whose texts take PostgreSQL's own for granted, are not opened.
std::optional<Error> hidden_names(const Analyzer& analyzer) {
  const auto schemas = before_pg_catalog(analyzer);
  if (schemas.empty()) return std::nullopt;
  const Catalog& catalog = analyzer.catalog();
  for (const Unit& unit : analyzer.units)
    for (const std::string& word : words_of(unit.statement->text()))
      for (const std::string& schema : schemas) {
        if (catalog.function(schema, word) != nullptr && catalog.function("pg_catalog", word) != nullptr)
          return hidden("the function " + word, schema, "over several shards");
        if (catalog.type(schema, word) != nullptr && catalog.type("pg_catalog", word) != nullptr)
          return hidden("the type " + word, schema, "over several shards");
      }
  return std::nullopt;
}

// A write with triggers that may do anything is for one shard.
void keep_to_one_shard(const Analyzer& analyzer, Analysis& analysis) {
  for (const RelationUse& table : analyzer.written) {
    const auto error = triggers_run_anything(analyzer, table);
    if (!error) continue;
    if (analysis.insert) {
      if (!analysis.insert->unsplittable) analysis.insert->unsplittable = *error;
      return;
    }
    // Where the rows of INSERT ... SELECT go is not known before they are there.
    analysis.pour.reset();
    if (!std::holds_alternative<Error>(analysis.several)) analysis.several = *error;
    return;
  }
}

struct AnalyseBody {
  Analyzer& analyzer;
  Analysis& analysis;

  void operator()(const parser::Query* query) { analyse_query(analyzer, *query, analysis); }
  void operator()(const parser::Insert* insert) { analyse_insert(analyzer, *insert, analysis); }
  void operator()(const parser::Update* update) { analyse_update(analyzer, *update, analysis); }
  void operator()(const parser::Delete* del) { analyse_delete(analyzer, *del, analysis); }
  void operator()(const parser::Merge* merge) { analyse_merge(analyzer, *merge, analysis); }
  template <class Other>
  void operator()(const Other& other) {
    analyse_utility(analyzer, parser::StatementBody(other), analysis);
  }
};

}  // namespace

Result<AnalysisOutcome> analyse(std::shared_ptr<const parser::Statement> statement,
                                const parser::Normaliser& normal, std::uint32_t begin, const NameContext& names,
                                const Catalog& catalog, const shardmap::ShardMap& map) {
  auto analysis = std::make_shared<Analysis>();
  analysis->statement = statement;
  for (const parser::Range& unit : normal.units())
    analysis->units.push_back({unit.begin - begin, unit.end - begin});
  Analyzer analyzer(*statement, normal, begin, names, catalog, map);
  std::visit(AnalyseBody{analyzer, *analysis}, statement->body());
  auto error = written_elsewhere(analyzer);
  if (!error) error = locked_elsewhere(analyzer, *analysis);
  if (!error) error = hidden_operators(analyzer);
  if (error) {
    analysis->fixed.reset();
    analysis->insert.reset();
    analysis->work_out.reset();
    analysis->pour.reset();
    analysis->tables.clear();
    analysis->point.reset();
    analysis->several = std::move(*error);
  } else {
    keep_to_one_shard(analyzer, *analysis);
  }
  if (auto hides = hidden_names(analyzer)) {
    if (analyzer.units.size() > 1) analysis->unhideable = hides->message;
    if (!std::holds_alternative<std::monostate>(analysis->several) &&
        !std::holds_alternative<Error>(analysis->several))
      analysis->several = std::move(*hides);
  }
  place_setval(analyzer, statement->body(), *analysis);
  place_sequence_read(analyzer, statement->body(), *analysis);
  analysis->whole = analyzer.whole;
  const bool unknown_before = std::exchange(analyzer.unknown_names, false);
  analysis->guard = GuardReader(analyzer, *statement).read();
  analyzer.unknown_names = unknown_before;
  analysis->constants = analyzer.constants;
  if (analysis->pour || (!std::holds_alternative<std::monostate>(analysis->several) &&
                         !std::holds_alternative<Error>(analysis->several)))
    analysis->times = one_time_for_all(analyzer);
  if (!analyzer.guarded_view.empty() && !analyzer.view_times.empty() &&
      !std::holds_alternative<std::monostate>(analysis->several))
    analysis->several = refused("over several shards, the view " + analyzer.guarded_view +
                                    ", which says the time and whose tables have row-level security",
                                "Say with = which sharding key the statement is for.");
  analysis->folds = keys_worked_out(analyzer, analysis->times.has_value());
  // A table that is nowhere, beside sharded ones: no shard can say so for all, unless it is read or written on
  // the home shard, where it may be a temporary one.
  if (!analysis->tables.empty() && !std::holds_alternative<GatherTemplate>(analysis->several) &&
      !std::holds_alternative<ReadFirstTemplate>(analysis->several))
    for (const RelationUse& use : analyzer.uses)
      if (use.kind == RelationUse::Kind::kUnknown) {
        AnalysisOutcome outcome;
        outcome.unknown_names = true;
        analysis->fixed.reset();
        analysis->tables.clear();
        analysis->several =
            Error{.sqlstate = "42P01", .message = "relation \"" + use.display + "\" does not exist"};
        outcome.analysis = std::move(analysis);
        return outcome;
      }
  analysis->bytes = sizeof(Analysis) + statement->bytes() + analysis->units.size() * sizeof(parser::Range) +
                    bytes_of(analysis->own);
  for (const TouchedTable& table : analysis->tables) analysis->bytes += bytes_of(table.condition) + 64;
  AnalysisOutcome outcome;
  outcome.pinned = analyzer.pinned;
  outcome.once = analyzer.once;
  outcome.unknown_names = analyzer.unknown_names;
  outcome.analysis = std::move(analysis);
  return outcome;
}

}  // namespace kintsugi::planner
