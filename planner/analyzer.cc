#include "planner/analyzer.h"

namespace kintsugi::planner {

Analyzer::Analyzer(const parser::Statement& statement, const parser::Normaliser& normal, std::uint32_t begin,
                   const NameContext& names, const Catalog& catalog, const shardmap::ShardMap& map)
    : statement_(statement), normal_(normal), begin_(begin), names_(names), catalog_(catalog), map_(map) {
  units.push_back({&statement, nullptr, -1, {}});
  whole = {0, static_cast<std::uint32_t>(statement.text().size())};
}

int Analyzer::target(const parser::TableRef& ref) {
  RelationUse use = resolve(ref.name);
  use.ref = &ref;
  use.unit = unit_;
  use.target = true;
  uses.push_back(std::move(use));
  return static_cast<int>(uses.size()) - 1;
}

Block* Analyzer::modification(const parser::TableRef& ref, parser::List<const parser::FromItem*> items,
                              const parser::Expr* where) {
  Block* block = new_block(new_scope(nullptr), nullptr);
  auto node = leaf(ref, *block);
  for (int use = node->use_low; use < node->use_high; ++use) uses[static_cast<std::size_t>(use)].target = true;
  block->scope->visible = node->visible;
  block->scope->known = node->known;
  from(items, where, *block, std::move(node));
  return block;
}

Block* Analyzer::merge(const parser::Merge& merge) {
  Block* block = new_block(new_scope(nullptr), nullptr);
  auto node = leaf(merge.table, *block);
  for (int use = node->use_low; use < node->use_high; ++use) uses[static_cast<std::size_t>(use)].target = true;
  block->scope->visible = node->visible;
  block->scope->known = node->known;
  const TermId low = node->low;
  const TermId high = node->high;
  from(parser::List<const parser::FromItem*>(&merge.source, 1), nullptr, *block, std::move(node));
  std::vector<const parser::Expr*> all;
  conjuncts(merge.on, all);
  for (const parser::Expr* conjunct : all) {
    records_.push_back({conjunct, block->scope, low, high, unit_});
    walk(conjunct, *block);
  }
  return block;
}

}  // namespace kintsugi::planner
