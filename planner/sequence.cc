// Sequences of sharded tables. Every shard has one, which counts in the same steps as the others from the
// shard's own number: ALTER SEQUENCE and setval() must leave it so, and mean the same on all of them.
#include <algorithm>

#include "base/sql_quote.h"
#include "planner/read_first.h"
#include "planner/table_definition.h"
#include "planner/utilities.h"
#include "shardmap/sequences.h"

namespace kintsugi::planner {

using parser::as;
using Kind = RelationUse::Kind;
using shardmap::ShardId;

namespace {

constexpr std::uint32_t kInt8 = 20;

// 'name', 'schema.name' or '"Name"', as regclass reads it.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names(1);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      if (quoted && i + 1 < text.size() && text[i + 1] == '"')
        names.back() += text[++i];
      else
        quoted = !quoted;
    } else if (c == '.' && !quoted) {
      names.emplace_back();
    } else if (quoted || c != ' ') {
      names.back() += !quoted && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
  }
  return names;
}

RelationUse relation_named(Analyzer& analyzer, std::string_view text) {
  const std::vector<std::string> names = names_in(text);
  std::vector<parser::Name> parts;
  for (const std::string& name : names) parts.push_back({name, {}});
  const bool before = analyzer.unknown_names;
  RelationUse use = analyzer.resolve({parts, {}});
  analyzer.unknown_names = before;
  return use;
}

const parser::Literal* string_of(const parser::Expr* expr) {
  if (const auto* cast = as<parser::Cast>(expr)) expr = cast->arg;
  const auto* literal = as<parser::Literal>(expr);
  return literal != nullptr && literal->literal == parser::LiteralKind::kString ? literal : nullptr;
}

RelationUse owner_of(Analyzer& analyzer, const Relation& sequence) {
  const std::size_t dot = sequence.owned_by.find('.');
  if (dot == std::string::npos) return {};
  const parser::Name parts[] = {{std::string_view(sequence.owned_by).substr(0, dot), {}},
                                {std::string_view(sequence.owned_by).substr(dot + 1), {}}};
  return analyzer.resolve({parts, {}});
}

// The column whose values the sequence makes.
const Column* column_of(const Relation& owner, const Relation& sequence) {
  const Column* identity = nullptr;
  for (const Column& column : owner.columns) {
    if (column.default_expression.find("nextval(") != std::string::npos &&
        column.default_expression.find(sequence.name) != std::string::npos)
      return &column;
    if (column.identity == 0) continue;
    if (identity != nullptr && sequence.name != owner.name + "_" + column.name + "_seq") continue;
    identity = &column;
  }
  return identity;
}

bool some_sharded_sequence(Analyzer& analyzer) {
  for (const Relation* relation : analyzer.catalog().relations())
    if (relation->kind == RelationKind::kSequence && !relation->owned_by.empty() &&
        owner_of(analyzer, *relation).kind == Kind::kSharded)
      return true;
  return false;
}

// What setval() is about: the sequence of a sharded table; "": another.
std::string sharded_sequence(Analyzer& analyzer, const parser::Expr* named) {
  if (const auto* cast = as<parser::Cast>(named)) named = cast->arg;
  if (const auto* literal = string_of(named)) {
    const RelationUse use = relation_named(analyzer, literal->value);
    if (use.relation == nullptr || use.relation->kind != RelationKind::kSequence) return {};
    return owner_of(analyzer, *use.relation).kind == Kind::kSharded ? use.relation->display() : "";
  }
  const auto* call = as<parser::FuncCall>(named);
  const auto* table = call != nullptr && call->name.name() == "pg_get_serial_sequence" && call->args.size() == 2
                          ? string_of(call->args[0].value)
                          : nullptr;
  if (table != nullptr) {
    const RelationUse use = relation_named(analyzer, table->value);
    return use.kind == Kind::kSharded ? "that " + use.display + " owns" : "";
  }
  return some_sharded_sequence(analyzer) ? "whose name is worked out" : "";
}

// pg_get_serial_sequence('t', 'id')
bool is_serial_sequence(const parser::Expr* named) {
  while (const auto* cast = as<parser::Cast>(named)) named = cast->arg;
  const auto* call = as<parser::FuncCall>(named);
  return call != nullptr && call->name.name() == "pg_get_serial_sequence" && call->args.size() == 2 &&
         string_of(call->args[0].value) != nullptr && string_of(call->args[1].value) != nullptr;
}

std::int64_t next_of(ShardId shard, std::uint32_t step, std::int64_t wanted) {
  const std::int64_t start = shardmap::sequence_start(shard, step);
  if (wanted <= start) return start;
  return start + (wanted - start + step - 1) / step * step;
}

}  // namespace

void note_setval(Analyzer& analyzer, const parser::FuncCall& call) {
  if (call.name.name() != "setval" || call.args.size() < 2 ||
      (!call.name.schema().empty() && call.name.schema() != "pg_catalog"))
    return;
  analyzer.once = true;
  if (analyzer.sets_sequence.empty()) analyzer.sets_sequence = sharded_sequence(analyzer, call.args[0].value);
}

// SELECT setval(sequence, value [, is_called]): every shard's goes on above the value.
void place_setval(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis) {
  if (analyzer.sets_sequence.empty()) return;
  const auto* const* query = std::get_if<const parser::Query*>(&body);
  const parser::Select* select = query == nullptr ? nullptr : (*query)->simple();
  const parser::FuncCall* call = select != nullptr && select->targets.size() == 1
                                     ? as<parser::FuncCall>(select->targets[0].expr)
                                     : nullptr;
  const bool simple = call != nullptr && call->name.name() == "setval" && select->from.empty() &&
                      select->where == nullptr && analyzer.uses.empty();
  analysis.tables.clear();
  analysis.point.reset();
  if (!simple && call != nullptr && call->name.name() == "setval" &&
      (string_of(call->args[0].value) != nullptr || is_serial_sequence(call->args[0].value))) {
    // The value is read first.
    if (auto parts = arguments_first(analyzer, **query, *call, 1)) {
      analysis.several = std::move(*parts);
      analysis.writes = true;
      analysis.anywhere = false;
      analysis.depends_on_parameters |= analyzer.statement().parameters() > 0;
      return;
    }
  }
  if (!simple) {
    analysis.home = true;
    analysis.several = refused("setval() of a sequence " + analyzer.sets_sequence +
                                   ", which counts apart on every shard, in this form",
                               "Send SELECT setval('the sequence', a value) alone; read the value first.");
    return;
  }
  const std::string_view text = analyzer.statement().text();
  const auto own = [&](std::size_t i) { return std::string(call->args[i].value->range.of(text)); };
  const std::string_view alias = select->targets[0].alias.text;
  const std::string made =
      "SELECT CASE WHEN d.done IS NOT NULL THEN v.given END AS " +
      quote_identifier(alias.empty() ? "setval" : alias) + " FROM (SELECT CAST(" + own(1) +
      " AS bigint) AS given, CAST(" + (call->args.size() > 2 ? own(2) : "true") +
      " AS boolean) AS called, CAST(CAST(" + own(0) +
      " AS text) AS regclass) AS sequence) v, LATERAL (SELECT pg_catalog.setval(v.sequence, s.seqstart + "
      "(GREATEST(v.given + CASE WHEN v.called THEN 1 ELSE 0 END - s.seqstart, 0) + s.seqincrement - 1) / "
      "s.seqincrement * s.seqincrement, false) AS done FROM pg_catalog.pg_sequence s WHERE s.seqrelid = "
      "v.sequence) d";
  FanOut plan;
  plan.writes = true;
  plan.merge.kind = Merge::Kind::kOne;
  for (const ShardId shard : replicated_shards(analyzer.map())) plan.tasks.push_back({shard, made});
  analysis.writes = true;
  analysis.fixed = FixedPlan{Plan(std::move(plan))};
}

// SELECT last_value, is_called FROM a sequence of a sharded table, as pg_dump asks: above what all shards have
// given.
void place_sequence_read(Analyzer& analyzer, const parser::StatementBody& body, Analysis& analysis) {
  const auto* const* query = std::get_if<const parser::Query*>(&body);
  const parser::Select* select = query == nullptr ? nullptr : (*query)->simple();
  if (select == nullptr || select->from.size() != 1 || select->where != nullptr || !select->group_by.empty() ||
      select->distinct || !(*query)->order_by.empty() || (*query)->limit != nullptr)
    return;
  const auto* from = as<parser::TableRef>(select->from.front());
  if (from == nullptr) return;
  const RelationUse use = analyzer.resolve(from->name);
  if (use.relation == nullptr || use.relation->kind != RelationKind::kSequence ||
      owner_of(analyzer, *use.relation).kind != Kind::kSharded)
    return;
  FanOut plan;
  plan.merge.kind = Merge::Kind::kFold;
  for (const parser::Target& target : select->targets) {
    const auto* column = as<parser::ColumnRef>(target.expr);
    if (column == nullptr || column->star) return;
    if (column->column() == "is_called")
      plan.merge.columns.push_back({Fold::kOr, 16});
    else if (column->column() == "last_value" || column->column() == "log_cnt")
      plan.merge.columns.push_back({Fold::kMax, kInt8});
    else
      return;
  }
  for (const ShardId shard : replicated_shards(analyzer.map())) plan.tasks.push_back({shard, {}});
  analysis.fixed = FixedPlan{Plan(std::move(plan))};
}

bool Utilities::change_sequence(const parser::AlterTable& alter, const RelationUse& sequence) {
  if (sequence.relation == nullptr || sequence.relation->kind != RelationKind::kSequence) return false;
  const RelationUse owner = owner_of(analyzer_, *sequence.relation);
  if (owner.kind != Kind::kSharded || owner.relation == nullptr) return false;
  const parser::SequenceChange& change = *alter.sequence;
  const Column* column = column_of(*owner.relation, *sequence.relation);
  if (change.steps || (change.restart && !change.restart_value.empty() && column == nullptr)) {
    refuse(refused("ALTER SEQUENCE of " + sequence.display + ", which counts apart on every shard",
                   "RESTART, CACHE and CYCLE can be changed: each shard goes on with its own numbers."));
    return true;
  }
  if (!change.restart || change.restart_value.empty()) return false;
  const std::string_view text = analyzer_.statement().text();
  const std::uint32_t step = shardmap::sequence_step(column->type == kInt8);
  Ddl plan = definition({});
  for (ShardTask& task : plan.tasks)
    task.text =
        edited(text, {0, static_cast<std::uint32_t>(text.size())},
               {{change.restart_value, std::to_string(next_of(task.shard, step, change.restart_with))}});
  fix(std::move(plan));
  return true;
}

// ALTER SEQUENCE ... OWNED BY a sharded table's column, as pg_dump writes it: the other shards get one as well.
bool Utilities::own_sequence(const parser::AlterTable& alter, const RelationUse& sequence) {
  const auto& parts = alter.sequence->owned_by.parts;
  if (parts.size() < 2 || placed(sequence)) return false;
  const RelationUse owner = analyzer_.resolve({parts.first(parts.size() - 1), {}});
  const Column* column = owner.relation == nullptr ? nullptr : owner.relation->column(parts.back().text);
  if (owner.kind != Kind::kSharded || column == nullptr) return false;
  const std::string_view text = analyzer_.statement().text();
  const std::string name(alter.table.name.range.of(text));
  const std::string belongs = " OWNED BY " + std::string(alter.sequence->owned_by.range.of(text));
  const std::uint32_t step = shardmap::sequence_step(column->type == kInt8);
  Ddl plan = definition({});
  const std::string by = std::to_string(step);
  const ShardId home = analyzer_.map().home_shard()->id;
  for (auto& [shard, made] : plan.tasks) {
    const std::string start = std::to_string(shardmap::sequence_start(shard, step));
    made = "DO $kintsugi$ DECLARE last bigint; BEGIN ";
    if (shard != home) made += "CREATE SEQUENCE IF NOT EXISTS " + name + " AS " + column->type_name + "; ";
    made += "ALTER SEQUENCE " + name + belongs + " INCREMENT BY " + by + " START WITH " + start +
            "; SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO last FROM " + name +
            "; PERFORM pg_catalog.setval(" + quote_literal(name) + ", CASE WHEN last < " + start + " THEN " +
            start + " ELSE " + start + " + ((last - " + start + ") / " + by + " + 1) * " + by +
            " END, false); END $kintsugi$";
  }
  fix(std::move(plan));
  return true;
}

}  // namespace kintsugi::planner
