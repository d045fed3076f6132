#include "planner/scope.h"

#include <algorithm>

namespace kintsugi::planner {

const ScopeItem* find_item(const Scope& scope, std::string_view alias) {
  for (const ScopeItem& item : scope.items)
    if (item.alias == alias) return &item;
  return nullptr;
}

FoundColumn find_column(const Scope& scope, const parser::ColumnRef& ref) {
  const std::string_view name = ref.column();
  const std::string_view qualifier = ref.qualifier();
  int depth = 0;
  for (const Scope* at = &scope; at != nullptr; at = at->parent, ++depth) {
    if (!qualifier.empty()) {
      const ScopeItem* item = find_item(*at, qualifier);
      if (item == nullptr) continue;
      for (const ScopeColumn& column : item->columns)
        if (column.name == name) return {&column, depth};
      return {};
    }
    const ScopeColumn* found = nullptr;
    for (const ScopeColumn& column : at->visible) {
      if (column.name != name) continue;
      if (found != nullptr) return {};
      found = &column;
    }
    if (found != nullptr) return {found, depth};
    if (!at->known) return {};
  }
  return {};
}

TermId Equalities::root(TermId term) const {
  while (static_cast<std::size_t>(term) < parents_.size() && parents_[static_cast<std::size_t>(term)] != term)
    term = parents_[static_cast<std::size_t>(term)];
  return term;
}

void Equalities::join(TermId a, TermId b) {
  if (a == kNoTerm || b == kNoTerm) return;
  a = root(a);
  b = root(b);
  if (a == b) return;
  const auto size = static_cast<std::size_t>(std::max(a, b)) + 1;
  for (std::size_t i = parents_.size(); i < size; ++i) parents_.push_back(static_cast<TermId>(i));
  parents_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
}

bool Equalities::same(TermId a, TermId b) const {
  return a != kNoTerm && b != kNoTerm && root(a) == root(b);
}

}  // namespace kintsugi::planner
