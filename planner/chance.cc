#include "planner/chance.h"

#include <algorithm>
#include <functional>

namespace kintsugi::planner {

using parser::as;
using parser::Expr;

namespace {

template <std::size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Aggregates of pg_catalog whose answer is the same in any order of rows; the second, but for the last digits
// of floating point numbers.
constexpr std::string_view kAnyOrder[] = {"count",           "min",       "max",
                                          "bool_and",        "bool_or",   "every",
                                          "bit_and",         "bit_or",    "bit_xor",
                                          "range_agg",       "rank",      "dense_rank",
                                          "percent_rank",    "cume_dist", "range_intersect_agg",
                                          "percentile_disc", "regr_count"};
constexpr std::string_view kAnyOrderButDigits[] = {
    "sum",      "avg",        "stddev",    "stddev_pop", "stddev_samp", "variance",       "var_pop",
    "var_samp", "corr",       "covar_pop", "covar_samp", "regr_avgx",   "regr_avgy",      "regr_intercept",
    "regr_r2",  "regr_slope", "regr_sxx",  "regr_sxy",   "regr_syy",    "percentile_cont"};
// The answer for a row is that for all its peers.
constexpr std::string_view kByPeers[] = {"rank", "dense_rank", "percent_rank", "cume_dist"};

bool is_float(std::uint32_t type) {
  return type == 700 || type == 701;
}

class ChanceFinder {
 public:
  ChanceFinder(const parser::Select& select, const parser::Query* owner, const Block& block, Analyzer& analyzer,
               bool copies)
      : select_(select), owner_(owner), block_(block), analyzer_(analyzer), copies_(copies) {}

  std::string why() {
    // Functions and VALUES alone come in their own order.
    if (std::none_of(block_.parts.begin(), block_.parts.end(),
                     [](const FromPart& part) { return part.stored; }))
      return {};
    if (auto why = of_aggregates(); !why.empty()) return why;
    if (auto why = of_windows(); !why.empty()) return why;
    if (!select_.distinct_on.empty()) {
      RowsTold rows(analyzer_, block_);
      for (const Expr* expr : select_.distinct_on) rows.tell(output(expr));
      if (owner_ != nullptr) tell_order(rows, owner_->order_by);
      if (!chosen(rows)) return "DISTINCT ON without an ORDER BY that tells its rows apart";
    }
    return of_limit();
  }

 private:
  bool holds(RowsTold& rows) {
    const bool all = rows.all();
    if (all && rows.by_literals()) analyzer_.once = true;
    return all;
  }
  // Either the rows are told apart, or what is shown of them is the same.
  bool chosen(RowsTold& rows) {
    if (holds(rows)) return true;
    return std::all_of(select_.targets.begin(), select_.targets.end(), [&](const parser::Target& target) {
      return target.expr != nullptr && rows.told(target.expr);
    });
  }

  // 2, or the name of an output, is that output.
  const Expr* output(const Expr* expr) const {
    if (const auto* literal = as<parser::Literal>(expr);
        literal != nullptr && literal->literal == parser::LiteralKind::kInteger) {
      const std::size_t place = std::strtoul(std::string(literal->value).c_str(), nullptr, 10);
      for (std::size_t i = 0; i < place && i < select_.targets.size(); ++i)
        if (select_.targets[i].expr == nullptr) return expr;
      return place >= 1 && place <= select_.targets.size() ? select_.targets[place - 1].expr : expr;
    }
    const auto* ref = as<parser::ColumnRef>(expr);
    if (ref == nullptr || ref->parts.size() != 1) return expr;
    for (const parser::Target& target : select_.targets)
      if (target.expr != nullptr && target.alias.text == ref->column()) return target.expr;
    return expr;
  }
  void tell_order(RowsTold& rows, parser::List<parser::SortItem> items) const {
    for (const parser::SortItem& item : items) rows.tell(output(item.expr));
  }
  // False: its groups are not plain.
  bool tell_groups(RowsTold& rows) const {
    for (const parser::GroupItem& item : select_.group_by) {
      if (item.kind != parser::GroupItem::Kind::kExpr) return false;
      rows.tell(output(item.expr));
    }
    return true;
  }

  [[nodiscard]] bool may_be_float(const Expr* expr) const {
    if (expr == nullptr) return false;
    if (const auto* row = as<parser::Cast>(expr)) {
      const std::uint32_t type = row->type == nullptr ? 0 : analyzer_.type_named(*row->type);
      return type == 0 || is_float(type);
    }
    if (as<parser::Literal>(expr) != nullptr) return false;
    const std::uint32_t type = analyzer_.type_of(expr, *block_.scope).oid;
    if (type != 0) return is_float(type);
    if (const auto* node = as<parser::Operator>(expr))
      return node->op == "^" || node->left == nullptr ? true
                                                      : may_be_float(node->left) || may_be_float(node->right);
    if (const auto* either = as<parser::Case>(expr))
      return may_be_float(either->otherwise) ||
             std::any_of(either->arms.begin(), either->arms.end(),
                         [&](const auto& arm) { return may_be_float(arm.then); });
    if (const auto* call = as<parser::FuncCall>(expr)) {
      static constexpr std::string_view kAsTheirs[] = {"coalesce", "greatest", "least",
                                                       "nullif",   "abs",      "round"};
      return !among(kAsTheirs, call->name.name()) ||
             std::any_of(call->args.begin(), call->args.end(),
                         [&](const parser::Argument& arg) { return may_be_float(arg.value); });
    }
    return true;
  }

  // Whether the aggregate is the same in any order of the rows.
  [[nodiscard]] bool any_order(const parser::FuncCall& call) const {
    const Function* function = analyzer_.function_of(call);
    if (call.star) return true;
    if (function == nullptr || function->schema != "pg_catalog") return false;
    const std::string_view name = call.name.name();
    if (among(kAnyOrder, name)) return true;
    if (!among(kAnyOrderButDigits, name)) return false;
    return !copies_ || std::none_of(call.args.begin(), call.args.end(),
                                    [&](const parser::Argument& arg) { return may_be_float(arg.value); });
  }

  std::string of_aggregates() {
    for (const parser::FuncCall* call : block_.aggregate_calls) {
      if (any_order(*call)) continue;
      // array_agg(DISTINCT x) is in the order of x.
      if (call->distinct && call->order_by.empty() && call->within_group.empty() && call->args.size() <= 2)
        continue;
      RowsTold rows(analyzer_, block_);
      tell_groups(rows);
      for (const parser::SortItem& item : call->order_by) rows.tell(item.expr);
      const bool same = !call->order_by.empty() &&
                        std::all_of(call->args.begin(), call->args.end(),
                                    [&](const parser::Argument& arg) { return rows.told(arg.value); });
      if (!holds(rows) && !same)
        return std::string(call->name.name()) + "() without an ORDER BY that tells its rows apart";
    }
    return {};
  }

  std::string of_windows() {
    for (const parser::FuncCall* call : block_.window_calls) {
      const std::string_view name = call->name.name();
      if (among(kByPeers, name)) continue;
      const parser::WindowSpec* spec = call->over->spec;
      RowsTold rows(analyzer_, block_);
      bool plain = spec != nullptr && spec->base.empty();
      const auto tell = [&](const parser::WindowSpec& each) {
        for (const Expr* expr : each.partition_by) rows.tell(expr);
        for (const parser::SortItem& item : each.order_by) rows.tell(item.expr);
      };
      const std::string_view base = spec == nullptr ? call->over->window : std::string_view(spec->base);
      const parser::WindowSpec* named = nullptr;
      for (const parser::WindowDefinition& window : select_.windows)
        if (window.name.text == base) named = window.spec;
      if (spec != nullptr) tell(*spec);
      if (named != nullptr) tell(*named);
      plain |= named != nullptr && named->base.empty();
      const parser::WindowSpec* frame = spec != nullptr ? spec : named;
      const bool by_peers = any_order(*call) && frame != nullptr &&
                            frame->frame != parser::WindowSpec::Frame::kRows &&
                            (named == nullptr || named->frame != parser::WindowSpec::Frame::kRows);
      if ((plain && by_peers) || holds(rows)) continue;
      return "the window of " + std::string(name) + "() without an ORDER BY that tells its rows apart";
    }
    return {};
  }

  std::string of_limit() {
    if (owner_ == nullptr) return {};
    for (const parser::Locking& locking : owner_->locking)
      if (copies_ || locking.wait == parser::Locking::Wait::kSkip) return "rows that are locked";
    const auto* offset = as<parser::Literal>(owner_->offset);
    const bool from_first = owner_->offset == nullptr || (offset != nullptr && offset->value == "0");
    const bool some = owner_->limit != nullptr || owner_->limit_one || !from_first;
    if (from_first && owner_->offset != nullptr) analyzer_.once = true;
    if (!some || (owner_->with_ties && from_first)) return {};
    const bool groups = block_.aggregates || !select_.group_by.empty() || select_.having != nullptr;
    if (groups && select_.group_by.empty()) return {};
    RowsTold rows(analyzer_, block_);
    tell_order(rows, owner_->order_by);
    bool same = false;
    if (groups) {
      rows.all();
      same = std::all_of(select_.group_by.begin(), select_.group_by.end(), [&](const parser::GroupItem& item) {
        return item.kind == parser::GroupItem::Kind::kExpr && rows.told(output(item.expr));
      });
      // GROUP BY lower(name) ORDER BY lower(name)
      same |= ordered_by_groups();
    } else {
      same = chosen(rows);
    }
    return same ? std::string() : "LIMIT or OFFSET without an ORDER BY that tells its rows apart";
  }

  [[nodiscard]] bool ordered_by_groups() const {
    const std::string_view text = analyzer_.statement().text();
    return std::all_of(select_.group_by.begin(), select_.group_by.end(), [&](const parser::GroupItem& item) {
      if (item.kind != parser::GroupItem::Kind::kExpr) return false;
      const Expr* group = output(item.expr);
      return std::any_of(owner_->order_by.begin(), owner_->order_by.end(), [&](const parser::SortItem& sort) {
        const Expr* by = output(sort.expr);
        return by == group || (by->range.end <= text.size() && group->range.end <= text.size() &&
                               by->range.of(text) == group->range.of(text));
      });
    });
  }

  const parser::Select& select_;
  const parser::Query* owner_;
  const Block& block_;
  Analyzer& analyzer_;
  bool copies_;
};

bool returns_set(const Expr* expr, const Analyzer& analyzer) {
  const auto* call = as<parser::FuncCall>(expr);
  if (call == nullptr) {
    if (const auto* node = as<parser::Operator>(expr))
      return returns_set(node->left, analyzer) || returns_set(node->right, analyzer);
    if (const auto* cast = as<parser::Cast>(expr)) return returns_set(cast->arg, analyzer);
    return as<parser::Indirection>(expr) != nullptr;
  }
  const Function* function = analyzer.function_of(*call);
  if (!call->special && (function == nullptr || function->returns_set)) return true;
  return std::any_of(call->args.begin(), call->args.end(),
                     [&](const parser::Argument& arg) { return returns_set(arg.value, analyzer); });
}

}  // namespace

std::string chance_of(const parser::Select& select, const parser::Query* owner, const Block& block,
                      Analyzer& analyzer, bool copies) {
  return ChanceFinder(select, owner, block, analyzer, copies).why();
}

std::vector<FromPart::Key> keys_of(const parser::Select& select, const Block& block, Analyzer& analyzer,
                                   const std::vector<ScopeColumn>& columns) {
  using Key = FromPart::Key;
  for (const parser::Target& target : select.targets)
    if (target.expr != nullptr && returns_set(target.expr, analyzer)) return {};
  const bool groups = block.aggregates || !select.group_by.empty() || select.having != nullptr;
  std::vector<Key> keys;
  // Where the values of such origins stand in the answer.
  const auto places_of = [&](const std::vector<int>& origins) -> std::optional<Key> {
    Key key{{}, false, false};
    for (const int origin : origins) {
      const auto at = std::find_if(columns.begin(), columns.end(),
                                   [&](const ScopeColumn& column) { return column.origin == origin; });
      if (origin < 0 || at == columns.end()) return std::nullopt;
      key.places.push_back(static_cast<int>(at - columns.begin()));
    }
    return key;
  };
  const auto origin_of = [&](const Expr* expr) {
    if (const auto* literal = as<parser::Literal>(expr);
        literal != nullptr && literal->literal == parser::LiteralKind::kInteger) {
      const std::size_t place = std::strtoul(std::string(literal->value).c_str(), nullptr, 10);
      return place >= 1 && place <= columns.size() ? columns[place - 1].origin : -1;
    }
    const auto* ref = as<parser::ColumnRef>(expr);
    const FoundColumn found = ref == nullptr || ref->star ? FoundColumn{} : find_column(*block.scope, *ref);
    return found.column != nullptr && found.depth == 0 ? found.column->origin : -1;
  };
  if (groups) {
    std::vector<int> origins;
    for (const parser::GroupItem& item : select.group_by)
      origins.push_back(item.kind == parser::GroupItem::Kind::kExpr ? origin_of(item.expr) : -1);
    if (auto key = places_of(origins)) {
      key->nulls_alike = true;
      keys.push_back(std::move(*key));
    }
    return keys;
  }
  if (!select.distinct_on.empty()) {
    std::vector<int> origins;
    for (const Expr* expr : select.distinct_on) origins.push_back(origin_of(expr));
    if (auto key = places_of(origins)) {
      key->nulls_alike = true;
      keys.push_back(std::move(*key));
    }
  }
  if (select.distinct) {
    Key key{{}, true, false};
    for (std::size_t i = 0; i < columns.size(); ++i) key.places.push_back(static_cast<int>(i));
    keys.push_back(std::move(key));
  }
  for (const FromPart& part : block.parts)
    for (const Key& key : part.keys) {
      std::vector<int> origins;
      for (const int place : key.places) origins.push_back(part.first + place);
      auto places = places_of(origins);
      if (!places) continue;
      RowsTold rows(analyzer, block);
      for (std::size_t i = 0; i < block.parts.size(); ++i)
        if (&block.parts[i] == &part) rows.tell_part(i);
      if (!rows.all()) continue;
      places->nulls_alike = key.nulls_alike;
      places->by_literals = key.by_literals || rows.by_literals();
      keys.push_back(std::move(*places));
    }
  if (block.parts.empty()) keys.push_back({{}, true, false});
  return keys;
}

std::vector<FromPart::Key> keys_of_values(const parser::SetOperand& values) {
  std::vector<FromPart::Key> keys;
  if (values.values.size() <= 1) return {{{}, true, false}};
  const std::size_t width = values.values[0].size();
  for (std::size_t column = 0; column < width; ++column) {
    std::set<std::pair<parser::LiteralKind, std::string_view>> seen;
    bool distinct = true;
    for (const auto& row : values.values) {
      const auto* literal = column < row.size() ? as<parser::Literal>(row[column]) : nullptr;
      distinct &= literal != nullptr &&
                  (literal->literal == parser::LiteralKind::kInteger ||
                   literal->literal == parser::LiteralKind::kString) &&
                  literal->literal == as<parser::Literal>(values.values[0][column])->literal &&
                  (literal->literal == parser::LiteralKind::kString || !literal->value.starts_with('0') ||
                   literal->value.size() == 1) &&
                  seen.emplace(literal->literal, literal->value).second;
      if (!distinct) break;
    }
    if (distinct) keys.push_back({{static_cast<int>(column)}, false, true});
  }
  return keys;
}

}  // namespace kintsugi::planner
