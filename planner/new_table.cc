#include "planner/new_table.h"

#include <algorithm>

#include "planner/analyzer.h"
#include "planner/serial_type.h"

namespace kintsugi::planner {
namespace {

using parser::AlterCommand;
using parser::ColumnDefinition;
using parser::Constraint;

class Reader {
 public:
  Reader(const parser::Statement& statement, const NameContext& names, const Catalog& catalog)
      : text_(statement.text()),
        map_(shardmap::ShardMap::empty("")),
        analyzer_(statement, normal_, 0, names, catalog, *map_) {}

  void set_type(Column& column, const parser::TypeName& type) {
    column.type_name = type.range.of(text_);
    column.type = analyzer_.type_named(type);
    if (const auto serial = serial_type(type.name.name())) {
      column.type = serial->oid;
      column.type_name = serial->type;
      column.identity = 'd';
      column.not_null = true;
    }
    const bool text = column.type == 25 || column.type == 1042 || column.type == 1043;
    column.collation = text ? "default" : "";
  }

  void add(Relation& relation, const ColumnDefinition& definition) {
    Column column;
    column.name = definition.name.text;
    if (definition.type != nullptr) set_type(column, *definition.type);
    if (!definition.collation.empty()) column.collation = definition.collation.name();
    for (const Constraint& each : definition.constraints) {
      switch (each.kind) {
        case Constraint::Kind::kNotNull: column.not_null = true; break;
        case Constraint::Kind::kDefault: column.default_expression = each.expr->range.of(text_); break;
        case Constraint::Kind::kGenerated: column.generated = true; break;
        case Constraint::Kind::kIdentity:
          column.identity = each.always ? 'a' : 'd';
          column.not_null = true;
          break;
        case Constraint::Kind::kPrimaryKey:
          column.not_null = true;
          relation.primary_key = {column.name};
          break;
        case Constraint::Kind::kUnique: relation.unique_keys.push_back({column.name}); break;
        default: break;
      }
    }
    relation.columns.push_back(std::move(column));
  }

  static void add(Relation& relation, const Constraint& constraint) {
    std::vector<std::string> columns;
    for (const parser::Name& name : constraint.columns) columns.emplace_back(name.text);
    if (columns.empty()) return;
    if (constraint.kind == Constraint::Kind::kPrimaryKey)
      relation.primary_key = std::move(columns);
    else if (constraint.kind == Constraint::Kind::kUnique)
      relation.unique_keys.push_back(std::move(columns));
  }

  void apply(Relation& relation, const AlterCommand& command) {
    using Command = AlterCommand::Kind;
    const auto at = std::find_if(relation.columns.begin(), relation.columns.end(),
                                 [&](const Column& column) { return column.name == command.name.text; });
    if (command.kind == Command::kAddColumn && at == relation.columns.end())
      return add(relation, command.column);
    if (command.kind == Command::kAddConstraint) return add(relation, command.constraint);
    if (command.kind == Command::kRenameTo) relation.name = command.new_name.text;
    if (command.kind == Command::kSetSchema) relation.schema = command.new_name.text;
    if (at == relation.columns.end()) return;
    switch (command.kind) {
      case Command::kDropColumn: relation.columns.erase(at); break;
      case Command::kSetType: set_type(*at, *command.type); break;
      case Command::kSetDefault: at->default_expression = command.expr->range.of(text_); break;
      case Command::kDropDefault: at->default_expression.clear(); break;
      case Command::kSetNotNull: at->not_null = true; break;
      case Command::kDropNotNull: at->not_null = false; break;
      case Command::kRenameColumn: at->name = command.new_name.text; break;
      default: break;
    }
  }

 private:
  std::string_view text_;
  parser::Normaliser normal_;
  shardmap::MapPtr map_;
  Analyzer analyzer_;
};

}  // namespace

std::shared_ptr<const Relation> relation_made_by(const parser::Statement& create, const shardmap::Table& table,
                                                 const NameContext& names, const Catalog& catalog) {
  const auto* made = create.get<parser::CreateTable>();
  if (made == nullptr || !made->like.empty() || !made->inherits.empty() || !made->of_type.empty())
    return nullptr;
  Reader reader(create, names, catalog);
  auto relation = std::make_shared<Relation>();
  relation->schema = table.schema;
  relation->name = table.name;
  relation->kind = made->partition_by.empty() ? RelationKind::kTable : RelationKind::kPartitioned;
  for (const ColumnDefinition& column : made->columns) reader.add(*relation, column);
  for (const Constraint& constraint : made->constraints) Reader::add(*relation, constraint);
  return relation;
}

std::shared_ptr<const Relation> relation_changed_by(const parser::Statement& alter, const Relation& before,
                                                    const NameContext& names, const Catalog& catalog) {
  const auto* change = alter.get<parser::AlterTable>();
  if (change == nullptr) return nullptr;
  Reader reader(alter, names, catalog);
  auto relation = std::make_shared<Relation>(before);
  for (const AlterCommand& command : change->commands) reader.apply(*relation, command);
  return relation;
}

}  // namespace kintsugi::planner
