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
  copies_ |= use.kind == RelationUse::Kind::kReplicated;
  written.push_back(use);
  uses.push_back(std::move(use));
  return static_cast<int>(uses.size()) - 1;
}

void Analyzer::note_target(const FromNode& node) {
  for (int index = node.use_low; index < node.use_high; ++index) {
    RelationUse& use = uses[static_cast<std::size_t>(index)];
    use.target = true;
    copies_ |= use.kind == RelationUse::Kind::kReplicated;
    written.push_back(use);
  }
}

// What stands in FROM under this name, the uses from `low` on, is locked unless FOR UPDATE OF names others
// only.
void Analyzer::note_locked(const parser::Query& query, std::string_view alias, int low) {
  const bool meant =
      std::any_of(query.locking.begin(), query.locking.end(), [&](const parser::Locking& locking) {
        return locking.of.empty() || std::any_of(locking.of.begin(), locking.of.end(),
                                                 [&](const auto& name) { return name.name() == alias; });
      });
  if (!meant) return;
  for (std::size_t use = static_cast<std::size_t>(low); use < uses.size(); ++use)
    if (uses[use].kind == RelationUse::Kind::kReplicated) locked_copy_ = uses[use].display;
}

void Analyzer::note_said(const FromNode& node, const std::vector<const parser::Expr*>& on, Block& block) {
  Block::Said said;
  const parser::Join::Type type = node.join->type;
  if (type == parser::Join::Type::kFull) return;
  const FromNode* extended = type == parser::Join::Type::kLeft    ? node.right.get()
                             : type == parser::Join::Type::kRight ? node.left.get()
                                                                  : &node;
  if (extended != &node) {
    const FromNode& kept = extended == node.right.get() ? *node.left : *node.right;
    said.kept_low = kept.part_low;
    said.kept_high = kept.part_high;
  }
  const FromPart& last = block.parts[extended->part_high - 1];
  said.low = block.parts[extended->part_low].first;
  said.high = last.first + static_cast<int>(last.filled.size());
  for (const parser::Expr* conjunct : on) {
    said.conjunct = conjunct;
    block.said.push_back(said);
  }
  said.conjunct = nullptr;
  for (const auto& [left, right] : node.merged) {
    said.one = left;
    said.other = right;
    block.said.push_back(said);
  }
}

Block* Analyzer::modification(const parser::TableRef& ref, parser::List<const parser::FromItem*> items,
                              const parser::Expr* where) {
  Block* block = new_block(new_scope(nullptr), nullptr);
  auto node = leaf(ref, *block);
  note_target(*node);
  block->scope->visible = node->visible;
  block->scope->known = node->known;
  from(items, where, *block, std::move(node));
  return block;
}

Block* Analyzer::merge(const parser::Merge& merge) {
  Block* block = new_block(new_scope(nullptr), nullptr);
  auto node = leaf(merge.table, *block);
  note_target(*node);
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
