#include "tests/planner/fixture.h"

#include <fstream>
#include <map>
#include <sstream>

namespace kintsugi::planner::testing {
namespace {

using shardmap::Bound;
using shardmap::BoundColumn;
using shardmap::KeyType;
using shardmap::MapKind;
using shardmap::ShardletState;
using shardmap::ShardState;
namespace edit = shardmap::edit;

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

const std::map<std::string_view, std::pair<std::uint32_t, const char*>>& type_facts() {
  static const std::map<std::string_view, std::pair<std::uint32_t, const char*>> facts{
      {"bool", {16, "boolean"}},
      {"bytea", {17, "bytea"}},
      {"int8", {20, "bigint"}},
      {"int2", {21, "smallint"}},
      {"int4", {23, "integer"}},
      {"text", {25, "text"}},
      {"json", {114, "json"}},
      {"jsonb", {3802, "jsonb"}},
      {"float8", {701, "double precision"}},
      {"varchar", {1043, "character varying"}},
      {"date", {1082, "date"}},
      {"timestamp", {1114, "timestamp without time zone"}},
      {"timestamptz", {1184, "timestamp with time zone"}},
      {"numeric", {1700, "numeric"}},
      {"uuid", {2950, "uuid"}},
      {"bigserial", {20, "bigint"}},
      {"serial", {23, "integer"}}};
  return facts;
}

// What stands in AS '...'.
std::string body_of(std::string_view text) {
  const std::size_t quote = text.find(" AS '");
  if (quote == std::string_view::npos) return std::string(text);
  std::string body(text.substr(quote + 5, text.rfind('\'') - quote - 5));
  for (std::size_t at = 0; (at = body.find("''", at)) != std::string::npos; ++at) body.erase(at, 1);
  return body;
}

Column column_of(const parser::ColumnDefinition& definition, const std::string& table, std::string_view text) {
  Column column;
  column.name = definition.name.text;
  const std::string_view type = definition.type->name.name();
  if (const auto found = type_facts().find(type); found != type_facts().end()) {
    column.type = found->second.first;
    column.type_name = found->second.second;
  } else {
    column.type = 90000;
    column.type_name = type;
  }
  if (definition.type->dimensions > 0) {
    column.type = 90001;
    column.type_name += "[]";
  }
  if (column.type == 25 || column.type == 1043) column.collation = "default";
  if (!definition.collation.empty()) column.collation = definition.collation.name();
  if (type == "bigserial" || type == "serial") {
    column.default_expression = "nextval('" + table + "_" + column.name + "_seq'::regclass)";
    column.not_null = true;
  }
  for (const parser::Constraint& constraint : definition.constraints) {
    using Kind = parser::Constraint::Kind;
    if (constraint.kind == Kind::kNotNull || constraint.kind == Kind::kPrimaryKey) column.not_null = true;
    if (constraint.kind == Kind::kDefault) column.default_expression = constraint.expr->range.of(text);
    if (constraint.kind == Kind::kGenerated) column.generated = true;
    if (constraint.kind == Kind::kIdentity) column.identity = constraint.always ? 'a' : 'd';
  }
  return column;
}

}  // namespace

parser::Parser& shared_parser() {
  static thread_local parser::Parser parser;
  return parser;
}

World make_world(const std::string& sql, shardmap::MapPtr map) {
  CatalogBuilder builder;
  shardmap::MapEdit tables;
  builder.add_schema("public");
  builder.add_schema("pg_catalog");
  std::istringstream functions(slurp("tests/planner/functions.txt"));
  for (std::string line; std::getline(functions, line);) {
    std::istringstream fields(line);
    Function function;
    std::string volatility;
    int set = 0;
    fields >> function.schema >> function.name >> function.kinds >> volatility >> set >> function.returns;
    function.volatility = volatility[0];
    function.returns_set = set != 0;
    function.reads_tables = false;
    builder.add_function(std::move(function));
  }
  for (const char* name : {"pg_class", "pg_namespace", "pg_attribute", "pg_type"}) {
    Relation relation;
    relation.oid = 1259;
    relation.schema = "pg_catalog";
    relation.name = name;
    relation.columns = {{"oid", 26, "oid", "", "", true, false, 0},
                        {"relname", 19, "name", "C", "", true, false, 0}};
    builder.add_relation(std::move(relation));
  }
  std::uint32_t oid = 20000;
  for (const parser::Range range : parser::split_statements(sql)) {
    auto statement = shared_parser().parse(sql, range);
    if (!statement)
      throw std::runtime_error(statement.error().to_string() + " in " + std::string(range.of(sql)));
    const std::string_view text = (*statement)->text();
    Relation relation;
    relation.oid = ++oid;
    relation.schema = "public";
    if (const auto* table = (*statement)->get<parser::CreateTable>()) {
      if (!table->name.schema().empty()) relation.schema = table->name.schema();
      relation.name = table->name.name();
      relation.kind = table->partition_by.empty() ? RelationKind::kTable : RelationKind::kPartitioned;
      for (const parser::ColumnDefinition& definition : table->columns) {
        relation.columns.push_back(column_of(definition, relation.name, text));
        for (const parser::Constraint& constraint : definition.constraints)
          if (constraint.kind == parser::Constraint::Kind::kPrimaryKey)
            relation.primary_key = {std::string(definition.name.text)};
      }
      for (const parser::Constraint& constraint : table->constraints)
        if (constraint.kind == parser::Constraint::Kind::kPrimaryKey)
          for (const parser::Name& name : constraint.columns) relation.primary_key.emplace_back(name.text);
      if (!table->partition_of.empty()) {
        relation.is_partition = true;
        relation.parents.push_back("public." + std::string(table->partition_of.name()));
      }
      if (table->placement != nullptr) {
        shardmap::Table placed{
            relation.schema,
            relation.name,
            table->placement->replicated ? shardmap::TableKind::kReplicated : shardmap::TableKind::kSharded,
            std::string(table->placement->map.text),
            {}};
        for (const parser::Name& name : table->placement->columns) placed.key.emplace_back(name.text);
        tables.operations.push_back(edit::PutTable{placed});
      }
      for (const Column& column : relation.columns) {
        if (!column.default_expression.starts_with("nextval(")) continue;
        Relation counter;
        counter.oid = ++oid;
        counter.schema = relation.schema;
        counter.name = relation.name + "_" + column.name + "_seq";
        counter.kind = RelationKind::kSequence;
        counter.owned_by = relation.display();
        builder.add_relation(std::move(counter));
      }
      builder.add_relation(std::move(relation));
    } else if (const auto* view = (*statement)->get<parser::CreateView>()) {
      relation.name = view->name.name();
      relation.kind = RelationKind::kView;
      relation.definition = view->query->range.of(text);
      std::vector<std::string_view> names;
      for (const parser::Name& name : view->columns) names.push_back(name.text);
      for (const std::string_view name : names) relation.columns.push_back({std::string(name), 0, "unknown"});
      builder.add_relation(std::move(relation));
    } else if (const auto* sequence = (*statement)->get<parser::CreateSequence>()) {
      relation.name = sequence->name.name();
      relation.kind = RelationKind::kSequence;
      builder.add_relation(std::move(relation));
    } else if (const auto* index = (*statement)->get<parser::CreateIndex>()) {
      relation.name = index->name.text;
      relation.kind = RelationKind::kIndex;
      relation.owned_by = "public." + std::string(index->table.name.name());
      builder.add_relation(std::move(relation));
    } else if (const auto* function = (*statement)->get<parser::CreateFunction>()) {
      using Volatility = parser::CreateFunction::Volatility;
      Function made{"public", std::string(function->name.name()), "f"};
      made.volatility = function->volatility == Volatility::kImmutable ? 'i'
                        : function->volatility == Volatility::kStable  ? 's'
                                                                       : 'v';
      made.reads_tables = made.volatility != 'i';
      if (made.reads_tables) made.body = body_of(text);
      builder.add_function(std::move(made));
    } else if (const auto* schema = (*statement)->get<parser::CreateSchema>()) {
      builder.add_schema(std::string(schema->name.text));
    } else if (const auto* type = (*statement)->get<parser::CreateType>()) {
      builder.add_type({++oid, "public", std::string(type->name.name()), 'e', 0});
    } else {
      throw std::runtime_error("not for a fixture: " + std::string(text));
    }
  }
  World world;
  world.catalog = builder.finish();
  auto with_tables = shardmap::apply(*map, tables);
  if (!with_tables) throw std::runtime_error(with_tables.error().to_string());
  world.map = *with_tables;
  return world;
}

shardmap::MapPtr golden_map() {
  const auto range = [](const char* map, const char* name, Bound low, Bound high, const char* shard,
                        ShardletState state = ShardletState::kOnline) {
    return edit::CreateShardlet{map, name, std::move(low), std::move(high), {}, shard, state};
  };
  const auto at = [](const char* text) { return Bound{BoundColumn::value(text)}; };
  const Bound min{BoundColumn::min()};
  const Bound max{BoundColumn::max()};
  shardmap::MapEdit made;
  auto& operations = made.operations;
  for (const char* shard : {"s1", "s2", "s3"})
    operations.push_back(edit::CreateShard{shard, "d", "", ShardState::kOnline});
  operations.push_back(edit::CreateMap{"tenants", MapKind::kRange, {KeyType::kBigint}});
  operations.push_back(range("tenants", "t1", min, at("100"), "s1"));
  operations.push_back(range("tenants", "t2", at("100"), at("200"), "s2"));
  operations.push_back(range("tenants", "t3", at("200"), at("300"), "s1"));
  operations.push_back(range("tenants", "t4", at("300"), max, "s3"));
  operations.push_back(edit::CreateMap{"regions", MapKind::kList, {KeyType::kText}});
  operations.push_back(
      edit::CreateShardlet{"regions", "eu", {}, {}, {{"de"}, {"fr"}}, "s2", ShardletState::kOnline});
  operations.push_back(edit::CreateShardlet{"regions", "us", {}, {}, {{"us"}}, "s3", ShardletState::kOnline});
  operations.push_back(edit::CreateMap{"users", MapKind::kHash, {KeyType::kUuid}});
  operations.push_back(range("users", "u1", min, at("-4611686018427387904"), "s1"));
  operations.push_back(range("users", "u2", at("-4611686018427387904"), at("0"), "s2"));
  operations.push_back(range("users", "u3", at("0"), at("4611686018427387904"), "s3"));
  operations.push_back(range("users", "u4", at("4611686018427387904"), max, "s1"));
  operations.push_back(edit::CreateMap{"cells", MapKind::kRange, {KeyType::kInt, KeyType::kText}});
  operations.push_back(range("cells", "c1", {BoundColumn::min(), BoundColumn::min()},
                             {BoundColumn::value("5"), BoundColumn::value("m")}, "s1"));
  operations.push_back(range("cells", "c2", {BoundColumn::value("5"), BoundColumn::value("m")},
                             {BoundColumn::max(), BoundColumn::max()}, "s2"));
  operations.push_back(edit::CreateMap{"states", MapKind::kRange, {KeyType::kInt}});
  operations.push_back(range("states", "open", at("0"), at("10"), "s1"));
  operations.push_back(range("states", "readonly", at("10"), at("20"), "s2", ShardletState::kReadOnly));
  operations.push_back(range("states", "closed", at("20"), at("30"), "s2", ShardletState::kOffline));
  operations.push_back(range("states", "held", at("30"), at("40"), "s3", ShardletState::kHeld));
  operations.push_back(edit::CreateMap{"moves", MapKind::kRange, {KeyType::kInt}});
  operations.push_back(range("moves", "m1", at("0"), at("10"), "s1"));
  operations.push_back(range("moves", "m2", at("10"), at("20"), "s2"));
  operations.push_back(range("moves", "m3", at("20"), at("30"), "s1"));
  operations.push_back(edit::HideRange{"m2", "s1", "job 1"});
  operations.push_back(edit::CreateMap{"days", MapKind::kRange, {KeyType::kDate}});
  operations.push_back(range("days", "old", min, at("2024-01-01"), "s1"));
  operations.push_back(range("days", "new", at("2024-01-01"), max, "s2"));
  auto map = shardmap::apply(*shardmap::ShardMap::empty("golden"), made);
  if (!map) throw std::runtime_error(map.error().to_string());
  return *map;
}

const World& golden_world() {
  static const World world = make_world(slurp("tests/golden/schema.sql"), golden_map());
  return world;
}

Result<AnalysisPtr> Planning::analyse_text(std::string_view text) {
  const auto ranges = parser::split_statements(text);
  if (ranges.size() != 1) return fail(sqlstate::kSyntaxError, "one statement is wanted");
  KG_TRY(auto statement, shared_parser().parse(text, ranges[0]));
  if (!normal.read(text, ranges[0])) return fail(sqlstate::kSyntaxError, "cannot be scanned");
  KG_TRY(outcome, analyse(std::shared_ptr<const parser::Statement>(std::move(statement)), normal,
                          ranges[0].begin, names, *world_.catalog, *world_.map));
  return outcome.analysis;
}

Result<Plan> Planning::plan(std::string_view text) {
  KG_TRY(const AnalysisPtr analysis, analyse_text(text));
  const Values values{&normal, parser::split_statements(text)[0].begin, parameters};
  return make_plan(*analysis, values, *world_.map);
}

std::vector<std::string> Planning::explain(std::string_view text) {
  const auto planned = plan(text);
  if (planned) return lines_of(*planned, *world_.map, "(own text)");
  const Error& error = planned.error();
  std::vector<std::string> lines{"refused " + error.sqlstate + ": " + error.message};
  if (!error.detail.empty()) lines.push_back("  detail: " + error.detail);
  if (!error.hint.empty()) lines.push_back("  hint: " + error.hint);
  return lines;
}

}  // namespace kintsugi::planner::testing
