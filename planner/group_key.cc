#include "planner/group_key.h"

#include <algorithm>
#include <set>

namespace kintsugi::planner {
namespace {

using parser::as;

bool inside(parser::Range outer, parser::Range inner) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

// GROUP BY 1, or by the name of a column of the answer.
bool means(const parser::GroupItem& item, std::string_view text, std::size_t position, std::string_view alias) {
  const auto* number = as<parser::Literal>(item.expr);
  if (number != nullptr) return number->range.of(text) == std::to_string(position + 1);
  const auto* name = as<parser::ColumnRef>(item.expr);
  return name != nullptr && name->parts.size() == 1 && name->column() == alias;
}

// Columns of the use that GROUP BY names.
std::set<int> grouped_columns(const Analyzer& analyzer, int index) {
  const RelationUse& use = analyzer.uses[static_cast<std::size_t>(index)];
  const std::string_view text = analyzer.units[static_cast<std::size_t>(use.unit)].statement->text();
  std::set<int> grouped;
  for (const Analyzer::NamedColumn& named : analyzer.named_columns) {
    if (named.use != index) continue;
    for (const parser::GroupItem& item : use.block->group_by) {
      bool names_it = inside(item.range, named.range);
      for (std::size_t i = 0; i < use.block->targets.size() && !names_it; ++i) {
        const parser::Target& target = use.block->targets[i];
        names_it = as<parser::ColumnRef>(target.expr) != nullptr && inside(target.expr->range, named.range) &&
                   means(item, text, i, target.alias.text);
      }
      if (names_it) grouped.insert(named.column);
    }
  }
  return grouped;
}

}  // namespace

bool groups_rely_on_key(const Analyzer& analyzer, int index) {
  const RelationUse& use = analyzer.uses[static_cast<std::size_t>(index)];
  const auto& key = use.relation->primary_key;
  if (key.empty() || use.block == nullptr || use.owner == nullptr || use.block->group_by.empty()) return false;
  const parser::Select& select = *use.block;
  const std::set<int> grouped = grouped_columns(analyzer, index);
  const auto is_grouped = [&](const std::string& name) {
    return std::any_of(grouped.begin(), grouped.end(), [&](int column) {
      return use.relation->columns[static_cast<std::size_t>(column)].name == name;
    });
  };
  if (!std::all_of(key.begin(), key.end(), is_grouped)) return false;
  const auto in_no_aggregate = [&](parser::Range range) {
    const auto& calls = use.owner->aggregate_calls;
    return std::none_of(calls.begin(), calls.end(),
                        [&](const auto* call) { return inside(call->range, range); });
  };
  for (const parser::Target& target : select.targets) {
    const auto* ref = as<parser::ColumnRef>(target.expr);
    if (target.expr == nullptr || (ref != nullptr && ref->star)) return true;
  }
  for (const Analyzer::WholeRow& row : analyzer.whole_rows)
    if (row.ref == use.ref && in_no_aggregate(row.range)) return true;
  return std::any_of(analyzer.named_columns.begin(), analyzer.named_columns.end(),
                     [&](const Analyzer::NamedColumn& named) {
                       return named.use == index && !grouped.contains(named.column) &&
                              !inside(select.from_clause, named.range) &&
                              (select.where == nullptr || !inside(select.where->range, named.range)) &&
                              in_no_aggregate(named.range);
                     });
}

}  // namespace kintsugi::planner
