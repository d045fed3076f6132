// Definitions: which shards get them, and what the map learns of them.
#include <algorithm>
#include <map>

#include "base/sql_quote.h"
#include "base/suggest.h"
#include "planner/key_constraints.h"
#include "planner/serial_type.h"
#include "planner/table_definition.h"
#include "planner/utilities.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;
using shardmap::ShardId;

void Utilities::operator()(const parser::CreateIndex* index) {
  const RelationUse use = where(index->table.name);
  if (!placed(use)) return at_home();
  if (auto error = check_unique(*index, use)) return refuse(std::move(*error));
  everywhere({}, !index->concurrently);
}

void Utilities::operator()(const parser::CreateView* view) {
  if (view->temporary && hides_placed(view->name)) return;
  const bool readable = !view->temporary && view->query != nullptr && everywhere_readable(*view->query);
  if (!view->materialized) return readable ? everywhere() : of_home_tables(*view->query, "a view");
  of_home_tables(*view->query, "a materialized view");
}

void Utilities::of_home_tables(const parser::Query& query, const std::string& what) {
  Analyzer inner(analyzer_.statement(), analyzer_.normal(), analyzer_.begin(), analyzer_.names(),
                 analyzer_.catalog(), analyzer_.map());
  inner.query(query, nullptr, nullptr);
  if (std::any_of(inner.uses.begin(), inner.uses.end(),
                  [](const RelationUse& use) { return use.kind == Kind::kSharded; }))
    return refuse(
        refused(what + " of a sharded table that the home shard alone would have",
                "Make a table with CREATE TABLE and fill it with INSERT ... SELECT, or leave the tables of "
                "the home shard out."));
  at_home();
}

void Utilities::operator()(const parser::Grant* grant) {
  if (grant->kind == "table" || grant->kind == "sequence") return on_relations(grant->objects, "GRANT");
  everywhere();
}

void Utilities::operator()(const parser::Comment* comment) {
  static constexpr std::string_view kRelations[] = {
      "table", "index", "sequence", "view", "materialized view", "foreign table"};
  if (std::find(std::begin(kRelations), std::end(kRelations), comment->kind) != std::end(kRelations))
    return placed(where(comment->object)) ? everywhere() : at_home();
  if (comment->kind == "column") {
    // table.column
    const auto parts = comment->object.parts;
    if (parts.size() < 2) return at_home();
    parser::QualifiedName table = comment->object;
    table.parts = parts.subspan(0, parts.size() - 1);
    return placed(where(table)) ? everywhere() : at_home();
  }
  at_home();
}

// A statement about the parent is about the children's rows as well, those of a job that moves its rows
// included, which would come to lie in the parent.
Error Utilities::inherits(const std::string& placed) {
  return refused(
      "inheritance of tables (INHERITS) with " + placed + ", which is sharded or replicated",
      "Use partitions (PARTITION BY, PARTITION OF), or separate tables and a view of their UNION ALL.");
}

constexpr std::uint32_t kInt8 = 20;

std::optional<shardmap::Table> Utilities::placement(const parser::CreateTable& table,
                                                    const std::string& schema) {
  shardmap::Table made{schema, std::string(table.name.name()), shardmap::TableKind::kSharded, {}, {}};
  if (table.placement != nullptr) {
    if (table.placement->replicated) made.kind = shardmap::TableKind::kReplicated;
    made.map = table.placement->map.text;
    for (const parser::Name& column : table.placement->columns) made.key.emplace_back(column.text);
    return made;
  }
  // tenants(tenant_id), for tables that have that column.
  const std::string& setting = analyzer_.names().shard_new_tables;
  const std::size_t open = setting.find('(');
  if (open == std::string::npos || setting.back() != ')') return std::nullopt;  // refused before
  made.map = unquote_identifier(setting.substr(0, open));
  std::string columns = setting.substr(open + 1, setting.size() - open - 2) + ",";
  for (std::size_t at = 0, comma = 0; (comma = columns.find(',', at)) != std::string::npos; at = comma + 1)
    made.key.push_back(unquote_identifier(columns.substr(at, comma - at)));
  for (const std::string& key : made.key)
    if (std::none_of(table.columns.begin(), table.columns.end(),
                     [&](const parser::ColumnDefinition& column) { return column.name.text == key; }))
      return std::nullopt;
  return made;
}

void Utilities::operator()(const parser::CreateTable* table) {
  if (table->temporary) {
    if (table->placement != nullptr)
      return refuse(refused(
          "a temporary table that is sharded or replicated",
          "Leave TEMPORARY out; or leave its placing out: then it is this session's own, on one shard."));
    if (!hides_placed(table->name)) at_home();
    return;
  }
  if (!table->partition_of.empty()) return make_partition(*table, where(table->partition_of));
  for (const parser::QualifiedName& parent : table->inherits)
    if (const RelationUse use = where(parent); placed(use)) return refuse(inherits(use.display));
  if (const std::string& setting = analyzer_.names().shard_new_tables;
      table->placement == nullptr && !setting.empty() &&
      (setting.find('(') == std::string::npos || !setting.ends_with(')')))
    return refuse({.sqlstate = std::string(sqlstate::kInvalidParameter),
                   .message = "kintsugi.shard_new_tables is \"" + setting + "\", which names no map and column",
                   .hint = "SET kintsugi.shard_new_tables = 'map(column)', or RESET it."});
  for (const parser::ColumnDefinition& column : table->columns)
    if (auto error = worked_out_elsewhere(column.constraints)) return refuse(std::move(*error));
  if (auto error = worked_out_elsewhere(table->constraints)) return refuse(std::move(*error));
  const std::string schema = schema_of_new(table->name);
  const auto made = placement(*table, schema);
  if (auto error = check_foreign_keys(analyzer_, *table, made ? &*made : nullptr))
    return refuse(std::move(*error));
  if (!made) return at_home_forgetting(schema, table->name.name());
  if (!table->inherits.empty()) return refuse(inherits(made->display()));
  if (made->kind == shardmap::TableKind::kSharded)
    if (auto error = key_does_not_fit(*table, *made)) return refuse(std::move(*error));
  make_table(*table, *made);
}

// Its own constraints are looked at as if they were added to the whole.
void Utilities::make_partition(const parser::CreateTable& table, const RelationUse& parent) {
  if (!placed(parent)) return at_home();
  const auto misplaced = [&](parser::Constraint constraint,
                             const parser::Name* column) -> std::optional<Error> {
    if (column != nullptr) constraint.columns = {column, 1};
    parser::AlterCommand adding;
    adding.kind = parser::AlterCommand::Kind::kAddConstraint;
    adding.constraint = constraint;
    if (auto error = worked_out_elsewhere(constraint.expr)) return error;
    if (auto error = check_unique(adding, parent)) return error;
    if (auto error = check_key_constraints(analyzer_, adding, parent)) return error;
    return check_foreign_keys(analyzer_, adding, parent);
  };
  for (const parser::Constraint& each : table.constraints)
    if (auto error = misplaced(each, nullptr)) return refuse(std::move(*error));
  for (const parser::ColumnDefinition& column : table.columns) {
    for (const parser::Constraint& each : column.constraints)
      if (auto error = misplaced(each, &column.name)) return refuse(std::move(*error));
    const Column* known = parent.relation == nullptr ? nullptr : parent.relation->column(column.name.text);
    if (auto error =
            moment_of_definition(column.constraints, known == nullptr ? 0 : known->type, column.name.text))
      return refuse(std::move(*error));
  }
  everywhere();
}

// A default or CHECK that calls a function which reads what is not all there, or writes one copy.
std::optional<Error> Utilities::worked_out_elsewhere(parser::List<parser::Constraint> constraints) {
  for (const parser::Constraint& constraint : constraints)
    if (auto error = worked_out_elsewhere(constraint.expr)) return error;
  return std::nullopt;
}

std::optional<Error> Utilities::worked_out_elsewhere(const parser::Expr* expr) {
  if (expr == nullptr) return std::nullopt;
  Block block;
  Scope scope;
  block.scope = &scope;
  analyzer_.expression(expr, block);
  const std::string& what = analyzer_.reads_sharded.empty() ? analyzer_.writes_copies : analyzer_.reads_sharded;
  if (what.empty()) return std::nullopt;
  return refused("a default or CHECK that calls the function " + what,
                 "It would run on the shard of the row. Give the value in the statements that write.");
}

std::string Utilities::schema_of_new(const parser::QualifiedName& name) const {
  if (!name.schema().empty()) return std::string(name.schema());
  const auto& path = analyzer_.names().search_path;
  for (const std::string& each : path)
    if (analyzer_.catalog().has_schema(each) || path.size() == 1) return each;
  return "public";
}

void Utilities::at_home_forgetting(const std::string& schema, std::string_view name) {
  const shardmap::Table* known = analyzer_.map().table(schema, name);
  if (known == nullptr || analyzer_.catalog().relation(schema, name) != nullptr) return at_home();
  Ddl plan;
  plan.tasks.push_back({analyzer_.map().home_shard()->id, {}});
  plan.forget.emplace_back(schema, std::string(name));
  fix(std::move(plan));
}

std::optional<Error> Utilities::key_does_not_fit(const parser::CreateTable& table,
                                                 const shardmap::Table& made) {
  const shardmap::Mapping* mapping = analyzer_.map().mapping(made.map);
  if (mapping == nullptr) {
    std::vector<std::string> maps;
    for (const shardmap::Mapping* each : analyzer_.map().mappings()) maps.push_back(each->name());
    const std::string meant = nearest(made.map, maps);
    return Error{.sqlstate = std::string(sqlstate::kUndefinedObject),
                 .message = "shard map \"" + made.map + "\" does not exist",
                 .hint = (meant.empty() ? "" : "Did you mean \"" + meant + "\"? ") +
                         "SHOW SHARD MAPS lists those that are there; CREATE SHARD MAP makes one."};
  }
  if (mapping->key_types().size() != made.key.size())
    return Error{.sqlstate = std::string(sqlstate::kInvalidParameter),
                 .message = "shard map \"" + made.map + "\" has a key of " +
                            std::to_string(mapping->key_types().size()) + " columns: (" +
                            shardmap::list_of(mapping->key_types()) + ")"};
  for (std::size_t i = 0; i < made.key.size(); ++i) {
    const std::string& key = made.key[i];
    const auto column =
        std::find_if(table.columns.begin(), table.columns.end(),
                     [&](const parser::ColumnDefinition& each) { return each.name.text == key; });
    if (column == table.columns.end()) {
      if (!table.like.empty()) continue;
      return Error{.sqlstate = "42703", .message = "column \"" + key + "\" named in SHARD BY does not exist"};
    }
    if (column->type == nullptr) continue;
    const auto serial = serial_type(column->type->name.name());
    const auto type = shardmap::key_type_of_oid(serial ? serial->oid : analyzer_.type_named(*column->type));
    const auto integer = [](shardmap::KeyType each) {
      return each == shardmap::KeyType::kSmallint || each == shardmap::KeyType::kInt ||
             each == shardmap::KeyType::kBigint;
    };
    const bool fits =
        type && (*type == mapping->key_types()[i] || (integer(*type) && integer(mapping->key_types()[i])));
    if (!fits)
      return Error{.sqlstate = "42804",
                   .message = "column \"" + key + "\" has not the type of the key of shard map \"" + made.map +
                              "\", which is " + std::string(shardmap::name_of(mapping->key_types()[i]))};
    if (!column->type->modifiers.empty() && *type != shardmap::KeyType::kText)
      return refused("a sharding key " + key + " with a precision, which rounds what is written into it",
                     "Make it a plain " + std::string(shardmap::name_of(*type)) + ".");
    if (std::any_of(column->constraints.begin(), column->constraints.end(), [](const parser::Constraint& each) {
          return each.kind == parser::Constraint::Kind::kGenerated;
        }))
      return refused("a sharding key " + key + " that is generated from other columns",
                     "Make it a plain column, and give its value in INSERT.");
  }
  return std::nullopt;
}

void Utilities::make_table(const parser::CreateTable& table, const shardmap::Table& made) {
  const std::string_view text = analyzer_.statement().text();
  const bool sharded = made.kind == shardmap::TableKind::kSharded;
  for (const parser::ColumnDefinition& column : table.columns) {
    const std::uint32_t type = column.type == nullptr ? 0 : analyzer_.type_named(*column.type);
    if (auto error = moment_of_definition(column.constraints, type, column.name.text))
      return refuse(std::move(*error));
  }
  if (sharded) {
    if (auto error = check_unique(table, made)) return refuse(std::move(*error));
    if (auto error = check_key_constraints(analyzer_, table, made)) return refuse(std::move(*error));
    for (const parser::ColumnDefinition& column : table.columns)
      if (auto error = identity_options(column, text)) return refuse(std::move(*error));
  }
  Ddl plan = definition({});
  const parser::Range whole = table.placement != nullptr
                                  ? table.without_placement
                                  : parser::Range{0, static_cast<std::uint32_t>(text.size())};
  for (ShardTask& task : plan.tasks) {
    std::vector<ColumnEdit> edits;
    if (sharded)
      for (const parser::ColumnDefinition& column : table.columns)
        for (ColumnEdit& edit : apart(column, task.shard, text)) edits.push_back(std::move(edit));
    task.text = edited(text, whole, edits);
  }
  if (analyzer_.catalog().relation(made.schema, made.name) == nullptr || !table.if_not_exists)
    plan.record.push_back(made);
  fix(std::move(plan));
}

void Utilities::operator()(const parser::CreateTableAs* table) {
  if (table->temporary && hides_placed(table->name)) return;
  if (table->query == nullptr) return at_home();
  analyse_query(analyzer_, *table->query, analysis_);
  made_at_home(analyzer_, analysis_, "CREATE TABLE AS");
}

void Utilities::operator()(const parser::AlterTable* alter) {
  using Command = parser::AlterCommand::Kind;
  const RelationUse use = where(alter->table.name);
  if (alter->sequence != nullptr && own_sequence(*alter, use)) return;
  for (const parser::AlterCommand& command : alter->commands)
    if (auto error = check_foreign_keys(analyzer_, command, use)) return refuse(std::move(*error));
  for (const parser::AlterCommand& command : alter->commands) {
    if (command.kind == Command::kSetDefault)
      if (auto error = worked_out_elsewhere(command.expr)) return refuse(std::move(*error));
    if (auto error = worked_out_elsewhere(command.constraint.expr)) return refuse(std::move(*error));
    if (auto error = worked_out_elsewhere(command.column.constraints)) return refuse(std::move(*error));
  }
  Ddl plan = definition({});
  for (const parser::AlterCommand& command : alter->commands)
    if (auto error = check_partition(command, use, plan)) return refuse(std::move(*error));
  if (!placed(use)) return at_home();
  if (alter->sequence != nullptr && change_sequence(*alter, use)) return;
  std::map<ShardId, std::vector<ColumnEdit>> edits;
  Filling filling(analyzer_.statement().text());
  for (const parser::AlterCommand& command : alter->commands) {
    const bool of_key =
        use.kind == Kind::kSharded && use.table != nullptr &&
        std::find(use.table->key.begin(), use.table->key.end(), command.name.text) != use.table->key.end();
    if (of_key && (command.kind == Command::kDropColumn || command.kind == Command::kSetType ||
                   command.kind == Command::kRenameColumn || command.kind == Command::kDropNotNull))
      return refuse(refused("ALTER TABLE of the sharding key " + std::string(command.name.text),
                            "Make a table with the new key and fill it with INSERT ... SELECT."));
    if (auto error = check_unique(command, use)) return refuse(std::move(*error));
    if (auto error = check_key_constraints(analyzer_, command, use)) return refuse(std::move(*error));
    if (auto error = default_of_moment(command, use)) return refuse(std::move(*error));
    if (auto error = filled_apart(command, use, *alter, filling)) return refuse(std::move(*error));
    if (use.kind == Kind::kSharded && command.kind == Command::kAddColumn) {
      const std::string_view text = analyzer_.statement().text();
      if (auto error = identity_options(command.column, text)) return refuse(std::move(*error));
      for (ShardTask& task : plan.tasks)
        for (ColumnEdit& edit : apart(command.column, task.shard, text))
          edits[task.shard].push_back(std::move(edit));
    }
    if (use.kind == Kind::kSharded && command.kind == Command::kAlterIdentity && command.steps)
      return refuse(identity_with_options(command.name.text));
    if (use.kind == Kind::kSharded && command.kind == Command::kAddIdentity) {
      const Column* column = use.relation == nullptr ? nullptr : use.relation->column(command.name.text);
      for (ShardTask& task : plan.tasks) {
        auto edit = identity_apart(command, column != nullptr && column->type == kInt8, task.shard,
                                   analyzer_.statement().text());
        if (!edit) return refuse(std::move(edit).error());
        edits[task.shard].push_back(std::move(*edit));
      }
    }
    const bool moves = command.kind == Command::kRenameTo || command.kind == Command::kSetSchema;
    const bool recorded = use.table != nullptr && use.relation != nullptr &&
                          use.table->schema == use.relation->schema && use.table->name == use.relation->name;
    if (!moves || !recorded) continue;
    shardmap::Table renamed = *use.table;
    (command.kind == Command::kRenameTo ? renamed.name : renamed.schema) = command.new_name.text;
    plan.record.push_back(renamed);
    plan.forget.emplace_back(use.table->schema, use.table->name);
  }
  if (!filling.times.empty()) return fill_at_one_time(std::move(filling));
  const std::string_view text = analyzer_.statement().text();
  for (ShardTask& task : plan.tasks)
    task.text = edited(text, {0, static_cast<std::uint32_t>(text.size())}, edits[task.shard]);
  fix(std::move(plan));
}

// A partition is placed as what it belongs to; when it leaves, it stays so, and one that comes must be so.
std::optional<Error> Utilities::check_partition(const parser::AlterCommand& command, const RelationUse& table,
                                                Ddl& plan) {
  using Command = parser::AlterCommand::Kind;
  if (command.kind == Command::kInherit || command.kind == Command::kNoInherit) {
    const RelationUse parent = where(command.partition);
    if (placed(table)) return inherits(table.display);
    return placed(parent) ? std::optional(inherits(parent.display)) : std::nullopt;
  }
  if (command.kind != Command::kAttachPartition && command.kind != Command::kDetachPartition)
    return std::nullopt;
  const RelationUse part = where(command.partition);
  if (part.relation == nullptr || part.relation->kind == RelationKind::kIndex) return std::nullopt;
  if (command.kind == Command::kDetachPartition) {
    if (!placed(table) || table.table == nullptr) return std::nullopt;
    shardmap::Table own = *table.table;
    own.schema = part.relation->schema;
    own.name = part.relation->name;
    plan.record.push_back(std::move(own));
    // DETACH ... CONCURRENTLY runs outside transactions only.
    if (command.concurrently) plan.in_transaction = false;
    return std::nullopt;
  }
  const bool same =
      part.kind == table.kind && (part.table == nullptr) == (table.table == nullptr) &&
      (part.table == nullptr || (part.table->map == table.table->map && part.table->key == table.table->key));
  if (!same)
    return refused(
        "ATTACH PARTITION of " + part.display + ", which is not placed as " + table.display + " is",
        "Make it with CREATE TABLE ... PARTITION OF, or place it first with ALTER TABLE ... SHARD BY "
        "or REPLICATED.");
  if (part.table != nullptr) plan.forget.emplace_back(part.table->schema, part.table->name);
  return std::nullopt;
}

// The tables of a schema that are placed, as the open transaction has left them.
static std::vector<shardmap::Table> placed_in(const Analyzer& analyzer, std::string_view schema) {
  const NameContext& names = analyzer.names();
  std::vector<shardmap::Table> tables;
  for (const shardmap::Table* table : analyzer.map().tables()) {
    const bool changed = std::ranges::count(names.gone_tables, std::pair(table->schema, table->name)) > 0 ||
                         std::ranges::any_of(names.new_tables, [table](const NameContext::NewTable& fresh) {
                           return fresh.table.schema == table->schema && fresh.table.name == table->name;
                         });
    if (table->schema == schema && !changed) tables.push_back(*table);
  }
  for (const NameContext::NewTable& fresh : names.new_tables)
    if (fresh.table.schema == schema && fresh.table.kind != shardmap::TableKind::kHome)
      tables.push_back(fresh.table);
  return tables;
}

void Utilities::rename_schema(const parser::Name& from, const parser::Name& to) {
  Ddl plan = definition({});
  for (shardmap::Table& table : placed_in(analyzer_, from.text)) {
    plan.forget.emplace_back(table.schema, table.name);
    table.schema = to.text;
    plan.record.push_back(std::move(table));
  }
  fix(std::move(plan));
}

void Utilities::operator()(const parser::DropObjects* drop) {
  static constexpr std::string_view kRelations[] = {
      "table", "index", "sequence", "view", "materialized view", "foreign table"};
  if (!drop->on_table.empty()) return placed(where(drop->on_table)) ? everywhere() : at_home();
  static constexpr std::string_view kAtHome[] = {"publication", "server",       "database",
                                                 "tablespace",  "subscription", "foreign data wrapper"};
  if (std::find(std::begin(kAtHome), std::end(kAtHome), drop->kind) != std::end(kAtHome)) return at_home();
  if (std::find(std::begin(kRelations), std::end(kRelations), drop->kind) == std::end(kRelations))
    return drop_of_all(*drop);
  bool some = false;
  bool all = true;
  Ddl plan = definition({}, !drop->concurrently);
  for (const parser::QualifiedName& name : drop->names) {
    const RelationUse use = where(name);
    (placed(use) ? some : all) = placed(use);
    if (drop->kind == "table" && use.table != nullptr &&
        (use.relation == nullptr ||
         (use.relation->schema == use.table->schema && use.relation->name == use.table->name)))
      plan.forget.emplace_back(use.table->schema, use.table->name);
  }
  if (!some) return at_home();
  if (!all)
    return refuse(refused("DROP of tables that all shards have together with others",
                          "Write one statement for each kind."));
  fix(std::move(plan));
}

// Of what every shard has, or may have.
void Utilities::drop_of_all(const parser::DropObjects& drop) {
  Ddl plan = definition({});
  if (drop.kind == "schema") {
    for (const parser::QualifiedName& name : drop.names)
      for (const shardmap::Table& table : placed_in(analyzer_, name.name()))
        plan.forget.emplace_back(table.schema, table.name);
  } else if (drop.kind == "statistics" && !drop.if_exists && !drop.names.empty()) {
    // Those of a table of the home shard are there alone, and no catalogue is read for them.
    const std::string_view text = analyzer_.statement().text();
    const std::uint32_t at = drop.names.front().range.begin;
    for (ShardTask& task : plan.tasks)
      if (task.shard != analyzer_.map().home_shard()->id)
        task.text = std::string(text.substr(0, at)) + "IF EXISTS " + std::string(text.substr(at));
  }
  fix(std::move(plan));
}

}  // namespace kintsugi::planner
