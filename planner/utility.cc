// COPY, EXPLAIN, cursors, and definitions: on which shards they run, and what the map learns of them.
#include <algorithm>
#include <charconv>

#include "base/sql_quote.h"
#include "planner/analyse.h"
#include "planner/table_definition.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;
using shardmap::ShardId;

namespace {

bool placed(const RelationUse& use) {
  return use.kind == Kind::kSharded || use.kind == Kind::kReplicated;
}

class Utilities {
 public:
  Utilities(Analyzer& analyzer, Analysis& analysis) : analyzer_(analyzer), analysis_(analysis) {}

  void at_home() {
    analysis_.home = true;
    analysis_.writes = true;
  }
  void refuse(Error error) {
    at_home();
    analysis_.several = std::move(error);
  }
  void everywhere(std::string text = {}, bool in_transaction = true) {
    fix(definition(std::move(text), in_transaction));
  }
  Ddl definition(std::string text, bool in_transaction = true) {
    Ddl plan;
    plan.in_transaction = in_transaction;
    for (const ShardId shard : replicated_shards(analyzer_.map())) plan.tasks.push_back({shard, text});
    return plan;
  }
  void fix(Plan plan) {
    analysis_.writes = true;
    analysis_.fixed = FixedPlan{std::move(plan)};
  }
  // All shards do the same to rows: TRUNCATE, LOCK TABLE.
  void write_everywhere() {
    FanOut plan;
    plan.writes = true;
    plan.merge.kind = Merge::Kind::kOne;
    for (const ShardId shard : replicated_shards(analyzer_.map())) plan.tasks.push_back({shard, {}});
    fix(std::move(plan));
  }

  // A temporary table lives on one connection and would hide the table of all shards from there on.
  bool hides_placed(const parser::QualifiedName& name) {
    RelationUse use = analyzer_.resolve(name);
    if (use.table == nullptr && name.schema() == "pg_temp") {
      for (const std::string& schema : analyzer_.names().search_path)
        if (use.table == nullptr) use.table = analyzer_.map().table(schema, name.name());
    }
    if (use.table == nullptr || use.table->kind == shardmap::TableKind::kHome) return false;
    refuse(refused(
        "a temporary table or view with the name of " + use.table->display() + ", which all shards have",
        "Give it another name."));
    return true;
  }

  // Where a relation is: on all shards, or at home. An index and a sequence are where their table is, a view
  // where all it reads is.
  RelationUse where(const parser::QualifiedName& name) {
    RelationUse use = analyzer_.resolve(name);
    if (use.relation == nullptr) return use;
    if (!use.relation->owned_by.empty()) {
      const Relation* owner = analyzer_.catalog().relation_displayed(use.relation->owned_by);
      if (owner != nullptr) {
        const shardmap::Table* table = analyzer_.map().table(owner->schema, owner->name);
        if (table != nullptr && table->kind != shardmap::TableKind::kHome) use.kind = Kind::kReplicated;
      }
    } else if (use.relation->kind == RelationKind::kView && use.relation->query) {
      const auto* query = use.relation->query->get<parser::Query>();
      if (query != nullptr && everywhere_readable(*query)) use.kind = Kind::kReplicated;
    }
    return use;
  }

  // Whether every shard has all tables of the query.
  bool everywhere_readable(const parser::Query& query) {
    Analyzer inner(analyzer_.statement(), analyzer_.normal(), analyzer_.begin(), analyzer_.names(),
                   analyzer_.catalog(), analyzer_.map());
    inner.query(query, nullptr, nullptr);
    return std::none_of(inner.uses.begin(), inner.uses.end(), [](const RelationUse& use) {
      return use.kind == Kind::kHome || use.kind == Kind::kUnknown;
    });
  }

  // The one place of all these relations; an error when they differ.
  void on_relations(parser::List<parser::QualifiedName> names, std::string_view what,
                    bool in_transaction = true) {
    bool some = false;
    bool all = true;
    for (const parser::QualifiedName& name : names) (placed(where(name)) ? some : all) = placed(where(name));
    if (!some) return at_home();
    if (!all)
      return refuse(refused(std::string(what) + " of tables that all shards have together with others",
                            "Write one statement for each kind."));
    everywhere({}, in_transaction);
  }

  void operator()(const parser::Copy* copy);
  void operator()(const parser::Explain* explain);
  void operator()(const parser::DeclareCursor* declare);
  void operator()(const parser::CreateTable* table);
  void operator()(const parser::CreateTableAs* table);
  void operator()(const parser::AlterTable* alter);
  void operator()(const parser::DropObjects* drop);

  void operator()(const parser::Truncate* truncate) {
    bool some = false;
    bool all = true;
    for (const parser::TableRef& table : truncate->tables) {
      const RelationUse use = where(table.name);
      (placed(use) ? some : all) = placed(use);
      if (use.mapping != nullptr && (!use.mapping->hidden().empty() || use.mapping->not_online_count() > 0))
        return refuse(
            refused("TRUNCATE of " + use.display + " while a shardlet of its map moves or is not online",
                    "Wait for the move (SHOW JOBS), or DELETE the rows."));
    }
    if (!some) return at_home();
    if (!all)
      return refuse(refused("TRUNCATE of tables that all shards have together with others",
                            "Write one statement for each kind."));
    write_everywhere();
  }
  void operator()(const parser::LockTable* lock) {
    if (std::any_of(lock->tables.begin(), lock->tables.end(),
                    [&](const parser::TableRef& table) { return placed(where(table.name)); }))
      return write_everywhere();
    at_home();
  }
  void operator()(const parser::CreateIndex* index) {
    const RelationUse use = where(index->table.name);
    if (!placed(use)) return at_home();
    if (auto error = check_unique(*index, use)) return refuse(std::move(*error));
    everywhere({}, !index->concurrently);
  }
  void operator()(const parser::CreateView* view) {
    if (view->temporary && hides_placed(view->name)) return;
    const bool readable = !view->temporary && view->query != nullptr && everywhere_readable(*view->query);
    if (!view->materialized) return readable ? everywhere() : of_home_tables(*view->query, "a view");
    of_home_tables(*view->query, "a materialized view");
  }
  // A definition that only the home shard can have: of nothing that is sharded.
  void of_home_tables(const parser::Query& query, const std::string& what) {
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
  void operator()(const parser::CreateSchema*) { everywhere(); }
  void operator()(const parser::CreateType*) { everywhere(); }
  void operator()(const parser::CreateFunction*) { everywhere(); }
  void operator()(const parser::Grant* grant) {
    if (grant->kind == "table" || grant->kind == "sequence") return on_relations(grant->objects, "GRANT");
    everywhere();
  }
  void operator()(const parser::Comment* comment) {
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
  void operator()(const parser::Vacuum* vacuum) {
    if (vacuum->tables.empty()) return everywhere({}, vacuum->analyze_only);
    if (std::any_of(vacuum->tables.begin(), vacuum->tables.end(),
                    [&](const parser::TableRef& table) { return placed(where(table.name)); }))
      return everywhere({}, vacuum->analyze_only);
    at_home();
  }
  void operator()(const parser::Utility* utility) {
    if (!utility->relation.empty()) return placed(where(utility->relation)) ? everywhere() : at_home();
    static constexpr std::string_view kEverywhere[] = {"create extension",
                                                       "alter extension",
                                                       "create role",
                                                       "alter role",
                                                       "drop role",
                                                       "create user",
                                                       "alter user",
                                                       "create domain",
                                                       "alter domain",
                                                       "create aggregate",
                                                       "create operator",
                                                       "create cast",
                                                       "create collation",
                                                       "alter type",
                                                       "alter function",
                                                       "alter schema",
                                                       "alter default privileges",
                                                       "create procedure",
                                                       "alter procedure"};
    if (std::find(std::begin(kEverywhere), std::end(kEverywhere), utility->head) != std::end(kEverywhere))
      return everywhere();
    at_home();
    if (utility->head != "do") return;
    const auto words = words_of(analyzer_.statement().text());
    for (const shardmap::Table* table : analyzer_.map().tables())
      if (table->kind == shardmap::TableKind::kSharded &&
          std::binary_search(words.begin(), words.end(), table->name))
        refuse(refused("DO that names the sharded table " + table->schema + "." + table->name,
                       "It would see the rows of one shard. Send its statements themselves."));
  }
  void operator()(const parser::Call* call) {
    at_home();
    Block block;
    Scope scope;
    block.scope = &scope;
    analyzer_.no_top();
    analyzer_.expression(call->call, block);
    if (auto error = sees_one_shard(analyzer_)) refuse(std::move(*error));
  }
  template <class Other>
  void operator()(const Other&) {
    at_home();
  }

 private:
  // What CREATE TABLE says of its place, or kintsugi.shard_new_tables.
  std::optional<shardmap::Table> placement(const parser::CreateTable& table, const std::string& schema);

  Analyzer& analyzer_;
  Analysis& analysis_;
};

void Utilities::operator()(const parser::Explain* explain) {
  if (explain->other ||
      (explain->body.query == nullptr && explain->body.insert == nullptr && explain->body.update == nullptr &&
       explain->body.del == nullptr && explain->body.merge == nullptr))
    return at_home();
  if (explain->route) analyzer_.whole = explain->body_range;
  const parser::Preparable& body = explain->body;
  if (body.query != nullptr)
    analyse_query(analyzer_, *body.query, analysis_);
  else if (body.insert != nullptr)
    analyse_insert(analyzer_, *body.insert, analysis_);
  else if (body.update != nullptr)
    analyse_update(analyzer_, *body.update, analysis_);
  else if (body.del != nullptr)
    analyse_delete(analyzer_, *body.del, analysis_);
  else
    analyse_merge(analyzer_, *body.merge, analysis_);
  if (explain->route) return;
  const Error several =
      refused("EXPLAIN of a statement over several shards",
              "EXPLAIN (ROUTE) shows what each shard gets; connect to a shard to see its plan.");
  if (analysis_.insert) analysis_.insert->unsplittable = several;
  if (!std::holds_alternative<std::monostate>(analysis_.several)) analysis_.several = several;
  if (analysis_.fixed) {
    // Of a write to a replicated table every shard's plan is as good.
    analysis_.fixed.reset();
    analysis_.several = std::monostate{};
    at_home();
    if (explain->analyze) analysis_.several = several;
  }
}

void Utilities::operator()(const parser::DeclareCursor* declare) {
  analyse_query(analyzer_, *declare->query, analysis_);
  analysis_.writes = true;
  analysis_.anywhere = false;
  if (analysis_.tables.empty()) analysis_.home = true;
  if (analysis_.tables.empty() || std::holds_alternative<Error>(analysis_.several)) return;
  if (declare->hold) {
    analysis_.several = refused("a cursor WITH HOLD over several shards",
                                "Leave WITH HOLD out and read the rows in the transaction, or say with = which "
                                "sharding key it is for.");
    return;
  }
  // Rows are brought together where the cursor is, whatever the query.
  auto gather = gather_of(analyzer_, analysis_, "kg_" + std::string(declare->name.text));
  if (!gather) {
    analysis_.several = refused("a cursor over several shards with " + gather.error().message,
                                "Say with = which sharding key it is for.");
    return;
  }
  gather->cursor = declare->name.text;
  analysis_.several = std::move(*gather);
}

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
  if (open == std::string::npos || setting.back() != ')') return std::nullopt;
  const auto trimmed = [](std::string text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '"')) text.erase(0, 1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '"')) text.pop_back();
    return text;
  };
  made.map = trimmed(setting.substr(0, open));
  std::string columns = setting.substr(open + 1, setting.size() - open - 2) + ",";
  for (std::size_t at = 0, comma = 0; (comma = columns.find(',', at)) != std::string::npos; at = comma + 1)
    made.key.push_back(trimmed(columns.substr(at, comma - at)));
  for (const std::string& key : made.key)
    if (std::none_of(table.columns.begin(), table.columns.end(),
                     [&](const parser::ColumnDefinition& column) { return column.name.text == key; }))
      return std::nullopt;
  return made;
}

void Utilities::operator()(const parser::CreateTable* table) {
  if (table->temporary) {
    if (!hides_placed(table->name)) at_home();
    return;
  }
  if (!table->partition_of.empty()) return placed(where(table->partition_of)) ? everywhere() : at_home();
  if (std::any_of(table->inherits.begin(), table->inherits.end(),
                  [&](const parser::QualifiedName& parent) { return placed(where(parent)); }))
    return everywhere();
  std::string schema(table->name.schema());
  if (schema.empty())
    for (const std::string& each : analyzer_.names().search_path)
      if (analyzer_.catalog().has_schema(each) || analyzer_.names().search_path.size() == 1) {
        schema = each;
        break;
      }
  if (schema.empty()) schema = "public";
  const auto made = placement(*table, schema);
  if (auto error = check_foreign_keys(analyzer_, *table, made ? &*made : nullptr))
    return refuse(std::move(*error));
  if (!made) return at_home();
  if (made->kind == shardmap::TableKind::kSharded) {
    const shardmap::Mapping* mapping = analyzer_.map().mapping(made->map);
    if (mapping == nullptr)
      return refuse({.sqlstate = std::string(sqlstate::kUndefinedObject),
                     .message = "shard map \"" + made->map + "\" does not exist",
                     .hint = "SHOW SHARD MAPS lists those that are there; CREATE SHARD MAP makes one."});
    if (mapping->key_types().size() != made->key.size())
      return refuse({.sqlstate = std::string(sqlstate::kInvalidParameter),
                     .message = "shard map \"" + made->map + "\" has a key of " +
                                std::to_string(mapping->key_types().size()) + " columns: (" +
                                shardmap::list_of(mapping->key_types()) + ")"});
    for (std::size_t i = 0; i < made->key.size(); ++i) {
      const std::string& key = made->key[i];
      const auto column =
          std::find_if(table->columns.begin(), table->columns.end(),
                       [&](const parser::ColumnDefinition& each) { return each.name.text == key; });
      if (column == table->columns.end()) {
        if (!table->like.empty()) continue;
        return refuse(
            {.sqlstate = "42703", .message = "column \"" + key + "\" named in SHARD BY does not exist"});
      }
      if (column->type == nullptr) continue;
      const auto type = shardmap::key_type_of_oid(analyzer_.type_named(*column->type));
      const auto integer = [](shardmap::KeyType each) {
        return each == shardmap::KeyType::kSmallint || each == shardmap::KeyType::kInt ||
               each == shardmap::KeyType::kBigint;
      };
      const bool fits =
          type && (*type == mapping->key_types()[i] || (integer(*type) && integer(mapping->key_types()[i])));
      if (!fits)
        return refuse({.sqlstate = "42804",
                       .message = "column \"" + key + "\" has not the type of the key of shard map \"" +
                                  made->map + "\", which is " +
                                  std::string(shardmap::name_of(mapping->key_types()[i]))});
    }
  }
  if (made->kind == shardmap::TableKind::kSharded) {
    if (auto error = check_unique(*table, *made)) return refuse(std::move(*error));
    for (const parser::ColumnDefinition& column : table->columns)
      if (auto error = identity_options(column, analyzer_.statement().text())) return refuse(std::move(*error));
  }
  Ddl plan = definition({});
  const std::string_view text = analyzer_.statement().text();
  const parser::Range whole = table->placement != nullptr
                                  ? table->without_placement
                                  : parser::Range{0, static_cast<std::uint32_t>(text.size())};
  for (ShardTask& task : plan.tasks) {
    std::vector<ColumnEdit> edits;
    if (made->kind == shardmap::TableKind::kSharded)
      for (const parser::ColumnDefinition& column : table->columns)
        for (ColumnEdit& edit : apart(column, task.shard, text)) edits.push_back(std::move(edit));
    task.text = edited(text, whole, edits);
  }
  if (analyzer_.catalog().relation(made->schema, made->name) == nullptr || !table->if_not_exists)
    plan.record.push_back(*made);
  fix(std::move(plan));
}

void Utilities::operator()(const parser::CreateTableAs* table) {
  if (table->temporary && hides_placed(table->name)) return;
  if (table->query == nullptr) return at_home();
  of_home_tables(*table->query, "CREATE TABLE AS");
}

void Utilities::operator()(const parser::AlterTable* alter) {
  const RelationUse use = where(alter->table.name);
  if (!placed(use)) return at_home();
  Ddl plan = definition({});
  std::map<ShardId, std::vector<ColumnEdit>> edits;
  for (const parser::AlterCommand& command : alter->commands) {
    using Command = parser::AlterCommand::Kind;
    const bool of_key =
        use.kind == Kind::kSharded && use.table != nullptr &&
        std::find(use.table->key.begin(), use.table->key.end(), command.name.text) != use.table->key.end();
    if (of_key && (command.kind == Command::kDropColumn || command.kind == Command::kSetType ||
                   command.kind == Command::kRenameColumn || command.kind == Command::kDropNotNull))
      return refuse(refused("ALTER TABLE of the sharding key " + std::string(command.name.text),
                            "Make a table with the new key and fill it with INSERT ... SELECT."));
    if (auto error = check_unique(command, use)) return refuse(std::move(*error));
    if (use.kind == Kind::kSharded && command.kind == Command::kAddColumn) {
      const std::string_view text = analyzer_.statement().text();
      if (auto error = identity_options(command.column, text)) return refuse(std::move(*error));
      for (ShardTask& task : plan.tasks)
        for (ColumnEdit& edit : apart(command.column, task.shard, text))
          edits[task.shard].push_back(std::move(edit));
    }
    if (use.table == nullptr) continue;
    if (command.kind == Command::kRenameTo || command.kind == Command::kSetSchema) {
      shardmap::Table renamed = *use.table;
      (command.kind == Command::kRenameTo ? renamed.name : renamed.schema) = command.new_name.text;
      plan.record.push_back(renamed);
      plan.forget.emplace_back(use.table->schema, use.table->name);
    }
  }
  const std::string_view text = analyzer_.statement().text();
  for (ShardTask& task : plan.tasks)
    task.text = edited(text, {0, static_cast<std::uint32_t>(text.size())}, edits[task.shard]);
  fix(std::move(plan));
}

void Utilities::operator()(const parser::DropObjects* drop) {
  static constexpr std::string_view kRelations[] = {
      "table", "index", "sequence", "view", "materialized view", "foreign table"};
  if (!drop->on_table.empty()) return placed(where(drop->on_table)) ? everywhere() : at_home();
  if (std::find(std::begin(kRelations), std::end(kRelations), drop->kind) == std::end(kRelations))
    return everywhere();
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
    analyse_query(analyzer_, *copy->query->query, analysis_);
    if (analysis_.tables.empty()) return;
    auto* fan_out = std::get_if<FanOutTemplate>(&analysis_.several);
    if (file || fan_out == nullptr || fan_out->text || fan_out->merge.kind != Merge::Kind::kConcat ||
        fan_out->limits.limit || fan_out->limits.limit_one || fan_out->limits.offset) {
      analysis_.several =
          refused("COPY of a query over several shards whose answers have to be merged",
                  "Send the query itself, or COPY it without ORDER BY, LIMIT, DISTINCT and aggregates.");
      return;
    }
    fan_out->copy = CopyShape{header, in.format == CopyIn::Format::kBinary};
    return;
  }
  const RelationUse use = where(copy->table.name);
  if (!placed(use)) {
    if (use.relation != nullptr && use.relation->kind == RelationKind::kView && !copy->from) at_home();
    return at_home();
  }
  if (file)
    return refuse(refused("COPY of " + use.display + " with a file of the server",
                          "Use COPY ... FROM STDIN or TO STDOUT (psql's \\copy)."));
  if (!copy->from) {
    if (use.kind == Kind::kReplicated) {
      analysis_.anywhere = true;
      return;
    }
    CopyOut out;
    out.header = header;
    out.binary = in.format == CopyIn::Format::kBinary;
    if (!use.mapping->hidden().empty() || use.mapping->not_online_count() > 0)
      return refuse(refused("COPY of " + use.display + " while a shardlet of its map moves or is not online",
                            "COPY (SELECT ... FROM " + use.display +
                                ") TO STDOUT leaves out the rows that are on their "
                                "way."));
    for (const auto& [shard, entries] : use.mapping->shards()) out.tasks.push_back({shard, {}});
    return fix(std::move(out));
  }
  if (use.kind == Kind::kReplicated) {
    in.shards = replicated_shards(analyzer_.map());
    return fix(std::move(in));
  }
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
  }
  for (const auto& [shard, entries] : use.mapping->shards()) in.shards.push_back(shard);
  fix(std::move(in));
}

}  // namespace

void analyse_utility(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis) {
  std::visit(Utilities(analyzer, analysis), body);
}

}  // namespace kintsugi::planner
