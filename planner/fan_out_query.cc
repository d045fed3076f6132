// Tier 2: a query that each shard answers for itself, and how their answers become one.
#include <algorithm>
#include <charconv>

#include "base/sql_quote.h"
#include "planner/analyse.h"

namespace kintsugi::planner {

using parser::as;
using Kind = Distribution::Kind;

Order order_of(std::uint32_t type, std::string_view collation) {
  switch (type) {
    case 16:    // boolean
    case 17:    // bytea
    case 20:    // bigint
    case 21:    // smallint
    case 23:    // integer
    case 26:    // oid
    case 1700:  // numeric
    case 2950:  // uuid
      return Order::kVisible;
    case 700:   // real
    case 701:   // double precision
    case 1082:  // date
    case 1083:  // time
    case 1114:  // timestamp
    case 1184:  // timestamptz
      return Order::kBinaryOnly;
    case 25:
    case 1043: return collation == "C" || collation == "POSIX" ? Order::kVisible : Order::kNo;
    default: return Order::kNo;
  }
}

namespace {

tl::unexpected<Error> no(std::string why) {
  return fail(sqlstate::kNotSupported, std::move(why));
}

// SELECT's own text with hidden columns and another LIMIT.
class QueryMerger {
 public:
  QueryMerger(Analyzer& analyzer, const parser::Query& query, const Shape& shape, const TextEdits& ownership)
      : analyzer_(analyzer), query_(query), shape_(shape), edits_(ownership), select_(query.simple()) {}

  Result<FanOutTemplate> make() {
    if (analyzer_.system_value == "tableoid") return no("tableoid is another number on each shard");
    for (const RelationUse& use : analyzer_.uses)
      if (use.kind == RelationUse::Kind::kHome) return no("it names a table that is on the home shard alone");
    Block* block = select_ != nullptr ? analyzer_.top_block() : nullptr;
    if (block != nullptr) {
      if (!block->problem.empty()) return no(block->problem);
      if (block->from.kind != Kind::kSharded) return no(block->from.why);
    }
    bool distinct = false;
    if (shape_.distribution.kind != Kind::kSharded) {
      if (block == nullptr) return no(shape_.distribution.why);
      const bool groups = block->aggregates || !select_->group_by.empty() || select_->having != nullptr;
      if (groups) return fold(*block);
      distinct = select_->distinct && select_->distinct_on.empty() && block->window_calls.empty();
      if (!distinct) return no(shape_.distribution.why);
    }
    if (!analyzer_.one_place.empty())
      return no("the function " + analyzer_.one_place + " means something on one shard only");
    KG_CHECK(limits());
    if (!query_.order_by.empty() || distinct) {
      if (!shape_.known) return no("the columns of the result are not known");
      made_.merge.kind = Merge::Kind::kOrdered;
      for (const parser::SortItem& item : query_.order_by) KG_CHECK(sort_by(item, distinct));
    }
    if (distinct) KG_CHECK(all_columns_in_order());
    if (!hidden_.empty()) {
      KG_CHECK(grouped_positions());
      TextTemplate columns;
      int number = 0;
      for (const Hidden& each : hidden_) {
        columns.push_back({.text = ", "});
        columns.push_back({.kind = Piece::Kind::kOwn, .range = each.range});
        if (!each.text.empty()) columns.back() = {.text = each.text};
        // A name of its own: under the column's, ORDER BY could mean either.
        columns.push_back(
            {.text = (each.bytes ? " COLLATE \"C\" AS kg_h" : " AS kg_h") + std::to_string(++number)});
      }
      edits_.insert(select_->select_list.end, std::move(columns));
      made_.merge.hidden_columns = static_cast<int>(hidden_.size());
      // Hidden ones stand behind the visible ones.
      for (SortKey& key : made_.merge.keys)
        if (key.column < 0) key.column = static_cast<int>(shape_.columns.size()) - key.column - 1;
      edited_ = true;
    }
    return finish();
  }

 private:
  struct Hidden {
    parser::Range range;
    std::string text;
    bool bytes = false;
  };

  Result<FanOutTemplate> finish() {
    if (edited_) made_.text = edits_.make(analyzer_.whole);
    return std::move(made_);
  }

  // One row from each shard.
  Result<FanOutTemplate> fold(const Block& block) {
    if (!select_->group_by.empty() || select_->having != nullptr || select_->distinct ||
        !select_->distinct_on.empty() || !block.window_calls.empty() || !query_.order_by.empty() ||
        query_.limit != nullptr || query_.limit_one || query_.offset != nullptr)
      return no("its groups are made of rows of several shards");
    if (!analyzer_.one_place.empty() || block.row_volatile)
      return no("a volatile function beside an aggregate");
    made_.merge.kind = Merge::Kind::kFold;
    for (const parser::Target& target : select_->targets) {
      const auto column = folded(target.expr, block);
      if (!column) return no("an aggregate whose parts cannot be put together by the router");
      made_.merge.columns.push_back(*column);
    }
    return finish();
  }

  std::optional<FoldColumn> folded(const parser::Expr* expr, const Block& block) {
    if (as<parser::Literal>(expr) != nullptr) return FoldColumn{Fold::kFirst, 0};
    const auto* call = as<parser::FuncCall>(expr);
    if (call == nullptr || !analyzer_.is_aggregate(*call) || !call->order_by.empty() ||
        !call->within_group.empty())
      return std::nullopt;
    const Function* function = analyzer_.function_of(*call);
    if (function == nullptr || function->schema != "pg_catalog") return std::nullopt;
    const std::string_view name = call->name.name();
    if (call->distinct) {
      // Distinct keys of one shard are on no other.
      if (name != "count" || call->args.size() != 1) return std::nullopt;
      const TermId term = analyzer_.term_of(call->args[0].value, *block.scope);
      if (term == kNoTerm || !analyzer_.covers_any({term}, block.from, block.equalities)) return std::nullopt;
    }
    if (name == "count") return FoldColumn{Fold::kSum, 20};
    const std::uint32_t type = analyzer_.type_of(call, *block.scope).oid;
    if (name == "sum") {
      const std::uint32_t arg =
          call->args.size() == 1 ? analyzer_.type_of(call->args[0].value, *block.scope).oid : 0;
      if (arg == 21 || arg == 23) return FoldColumn{Fold::kSum, 20};
      if (arg == 20) return FoldColumn{Fold::kSum, 1700};
      return std::nullopt;
    }
    if (name == "min" || name == "max") {
      const auto arg = analyzer_.type_of(call->args.empty() ? nullptr : call->args[0].value, *block.scope);
      if (type == 0 || order_of(type, arg.collation) == Order::kNo) return std::nullopt;
      return FoldColumn{name == "min" ? Fold::kMin : Fold::kMax, type};
    }
    if (name == "bool_and" || name == "every") return FoldColumn{Fold::kAnd, 16};
    if (name == "bool_or") return FoldColumn{Fold::kOr, 16};
    return std::nullopt;
  }

  Status limits() {
    if (query_.with_ties) return no("WITH TIES over several shards");
    const bool limited = query_.limit != nullptr || query_.limit_one;
    if ((limited || query_.offset != nullptr) && analyzer_.locks)
      return no("FOR UPDATE with LIMIT over several shards would lock other rows than those that are returned");
    made_.limits.limit_one = query_.limit_one;
    if (query_.limit != nullptr) {
      made_.limits.limit = analyzer_.source_of(query_.limit);
      if (!made_.limits.limit) return no("LIMIT is an expression");
    }
    if (query_.offset == nullptr) return {};
    made_.limits.offset = analyzer_.source_of(query_.offset);
    if (!made_.limits.offset) return no("OFFSET is an expression");
    edits_.replace(query_.offset_clause, TextTemplate{});
    if (limited)
      edits_.replace(query_.limit_clause, TextTemplate{{.text = "LIMIT "}, {.kind = Piece::Kind::kLimit}});
    edited_ = true;
    return {};
  }

  // GROUP BY 3 means a column of the client's, not a hidden one.
  [[nodiscard]] Status grouped_positions() const {
    for (const parser::GroupItem& item : select_->group_by) {
      const auto* literal = as<parser::Literal>(item.expr);
      if (literal == nullptr || literal->literal != parser::LiteralKind::kInteger) continue;
      if (std::strtoul(std::string(literal->value).c_str(), nullptr, 10) > shape_.columns.size())
        return no("GROUP BY a position that is not there");
    }
    return {};
  }

  // The output column that an ORDER BY item names, or -1.
  [[nodiscard]] Result<int> named_output(const parser::Expr* expr) const {
    if (const auto* literal = as<parser::Literal>(expr)) {
      if (literal->literal != parser::LiteralKind::kInteger) return no("ORDER BY a constant");
      int position = 0;
      std::from_chars(literal->value.data(), literal->value.data() + literal->value.size(), position);
      if (position < 1 || static_cast<std::size_t>(position) > shape_.columns.size())
        return no("ORDER BY a position that is not there");
      return position - 1;
    }
    const auto* ref = as<parser::ColumnRef>(expr);
    if (ref == nullptr || ref->parts.size() != 1) return -1;
    int found = -1;
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      if (shape_.columns[i].name != ref->column()) continue;
      if (found >= 0) return no("ORDER BY a name that several columns of the result have");
      found = static_cast<int>(i);
    }
    return found;
  }

  // Where an output column is written in the select list; none for one that a star stands for.
  [[nodiscard]] const parser::Expr* written(int column) const {
    if (select_ == nullptr) return nullptr;
    int at = 0;
    for (const parser::Target& target : select_->targets) {
      const auto* ref = as<parser::ColumnRef>(target.expr);
      const Scope& scope = *analyzer_.top_block()->scope;
      if (target.expr == nullptr) {
        at += static_cast<int>(scope.visible.size());
      } else if (ref != nullptr && ref->star) {
        const ScopeItem* item = find_item(scope, ref->qualifier());
        at += item == nullptr ? 0 : static_cast<int>(item->columns.size());
      } else if (at++ == column) {
        return target.expr;
      }
      if (at > column) return nullptr;
    }
    return nullptr;
  }

  // Text that gives an output column once more.
  Result<Hidden> again(int column) const {
    if (const parser::Expr* expr = written(column)) {
      if (analyzer_.top_block()->row_volatile) return no("ORDER BY what a volatile function gives");
      return Hidden{whole(expr), {}, false};
    }
    const ScopeColumn& wanted = shape_.columns[static_cast<std::size_t>(column)];
    if (select_ != nullptr)
      for (const ScopeItem& item : analyzer_.top_block()->scope->items)
        for (const ScopeColumn& each : item.columns)
          if (each.use == wanted.use && each.column == wanted.column && each.name == wanted.name &&
              wanted.use >= 0)
            return Hidden{{}, quote_identifier(item.alias) + "." + quote_identifier(each.name), false};
    return no("ORDER BY a column that cannot be named again");
  }

  // With the parentheses that an expression may need: ranges are without those around it.
  static parser::Range whole(const parser::Expr* expr) { return expr->range; }

  Result<int> hide(Hidden hidden) {
    if (select_ == nullptr) return no("ORDER BY over UNION by a type that needs a hidden column");
    if (select_->select_list.empty()) return no("ORDER BY without columns");
    hidden_.push_back(std::move(hidden));
    return -static_cast<int>(hidden_.size());
  }

  Status sort_by(const parser::SortItem& item, bool distinct) {
    SortKey key;
    using Direction = parser::SortItem::Direction;
    if (item.direction == Direction::kUsing && item.using_operator != "<" && item.using_operator != ">")
      return no("ORDER BY USING an operator");
    key.descending = item.direction == Direction::kDescending ||
                     (item.direction == Direction::kUsing && item.using_operator == ">");
    key.nulls_first = item.nulls == parser::SortItem::Nulls::kDefault
                          ? key.descending
                          : item.nulls == parser::SortItem::Nulls::kFirst;
    KG_TRY(int column, named_output(item.expr));
    Analyzer::ExprType type;
    if (column < 0 && select_ != nullptr) {
      // The same expression in the select list.
      for (std::size_t i = 0; i < shape_.columns.size() && column < 0; ++i)
        if (const parser::Expr* expr = written(static_cast<int>(i));
            expr != nullptr &&
            expr->range.of(analyzer_.statement().text()) == item.expr->range.of(analyzer_.statement().text()))
          column = static_cast<int>(i);
    }
    if (column >= 0) {
      const ScopeColumn& output = shape_.columns[static_cast<std::size_t>(column)];
      type = {output.type, output.collation};
      for (const Type* each = analyzer_.catalog().type(type.oid); each != nullptr && each->kind == 'd';
           each = analyzer_.catalog().type(type.oid))
        type.oid = each->base;
    } else {
      if (select_ == nullptr || distinct)
        return no("ORDER BY something that is not among the columns of the result");
      type = analyzer_.type_of(item.expr, *analyzer_.top_block()->scope);
    }
    const Order order = order_of(type.oid, type.collation);
    if (order == Order::kNo) return no("ORDER BY a type or collation that only PostgreSQL can order");
    key.type = type.oid;
    if (column < 0) {
      if (analyzer_.top_block()->row_volatile) return no("ORDER BY what a volatile function gives");
      KG_TRY(key.column, hide({whole(item.expr), {}, false}));
    } else if (order == Order::kBinaryOnly) {
      KG_TRY(Hidden same, again(column));
      KG_TRY(key.column, hide(std::move(same)));
    } else {
      key.column = column;
    }
    sorted_.push_back(column);
    made_.merge.keys.push_back(key);
    return {};
  }

  // DISTINCT: rows that are equal stand beside each other once all columns are sorted by.
  Status all_columns_in_order() {
    made_.merge.distinct = true;
    std::string more;
    for (std::size_t i = 0; i < shape_.columns.size(); ++i) {
      if (std::find(sorted_.begin(), sorted_.end(), static_cast<int>(i)) != sorted_.end()) continue;
      const ScopeColumn& column = shape_.columns[i];
      const Order order = order_of(column.type, column.collation);
      const bool text =
          order == Order::kNo && (column.type == 25 || column.type == 1043) && column.collation == "default";
      if (order == Order::kNo && !text)
        return no("DISTINCT over a type or collation that only PostgreSQL can order");
      SortKey key{static_cast<int>(i), column.type, false, false};
      if (order == Order::kBinaryOnly || text) {
        KG_TRY(Hidden same, again(static_cast<int>(i)));
        if (text && same.text.empty() && !simple(written(static_cast<int>(i))))
          return no("DISTINCT over a text expression");
        same.bytes = text;
        KG_TRY(key.column, hide(std::move(same)));
      }
      made_.merge.keys.push_back(key);
      // Under "C" the hidden column is what the shard orders by; it has the next place behind the others.
      const std::size_t position = text ? shape_.columns.size() + hidden_.size() : i + 1;
      more += (more.empty() ? "" : ", ") + std::to_string(position);
    }
    if (more.empty()) return {};
    if (query_.order_by.empty())
      edits_.insert(query_.body->range.end, " ORDER BY " + more);
    else
      edits_.insert(query_.order_clause.end, ", " + more);
    edited_ = true;
    return {};
  }

  static bool simple(const parser::Expr* expr) { return as<parser::ColumnRef>(expr) != nullptr; }

  Analyzer& analyzer_;
  const parser::Query& query_;
  const Shape& shape_;
  TextEdits edits_;
  const parser::Select* select_;
  FanOutTemplate made_;
  std::vector<Hidden> hidden_;
  std::vector<int> sorted_;
  bool edited_ = false;
};

}  // namespace

Result<FanOutTemplate> fan_out_of(Analyzer& analyzer, const parser::Query& query, const Shape& shape,
                                  const TextEdits& ownership) {
  return QueryMerger(analyzer, query, shape, ownership).make();
}

}  // namespace kintsugi::planner
