// FROM: tables, subqueries, functions, joins.
#include "parser/tree_builder.h"

namespace kintsugi::parser {

List<const FromItem*> TreeBuilder::from(const std::vector<G::FromItemContext*>& items) {
  return map(items, [this](auto* item) { return from_item(item); });
}

const FromItem* TreeBuilder::from_item(G::FromItemContext* c) {
  const FromItem* item = from_primary(c->f);
  for (auto* tail : c->j) item = join(item, tail, c->start);
  return item;
}

const FromItem* TreeBuilder::join(const FromItem* left, G::JoinTailContext* c, const antlr4::Token* first) {
  auto* made = make<Join>();
  made->left = left;
  made->right = c->f != nullptr ? from_primary(c->f) : from_item(c->i);
  made->natural = type(c->w) == G::K_NATURAL;
  if (type(c->w) == G::K_CROSS) made->type = Join::Type::kCross;
  switch (c->jt == nullptr ? 0 : type(c->jt->t)) {
    case G::K_LEFT: made->type = Join::Type::kLeft; break;
    case G::K_RIGHT: made->type = Join::Type::kRight; break;
    case G::K_FULL: made->type = Join::Type::kFull; break;
    default: break;
  }
  made->using_columns = names(c->cols);
  if (c->al != nullptr) made->using_alias = name(c->al).text;
  if (c->e != nullptr) made->on = expr(c->e);
  made->range = {range(first).begin, range(c).end};
  return made;
}

const FromItem* TreeBuilder::from_primary(G::FromPrimaryContext* c) {
  const Range whole = range(c);
  if (c->sub != nullptr) {
    auto* made = make<SubqueryRef>();
    made->query = query(c->sub);
    made->alias = alias(c->a);
    made->lateral = c->lat != nullptr;
    made->range = whole;
    if (c->a == nullptr) {
      const bool values = made->query->body->kind == SetOperand::Kind::kValues;
      refuse(c->sub->start,
             values ? "VALUES in FROM must have an alias" : "subquery in FROM must have an alias",
             values ? "For example, FROM (VALUES ...) [AS] foo." : "For example, FROM (SELECT ...) [AS] foo.");
    }
    return made;
  }
  if (c->inner != nullptr) {
    const FromItem* inner = from_item(c->inner);
    if (inner->kind != FromKind::kJoin) syntax_error(c->rp);
    if (c->a == nullptr) return inner;
    if (inner->alias.given()) syntax_error(c->a->start);
    const auto* joined = as<Join>(inner);
    if (joined == nullptr) return inner;
    auto* made = make<Join>();
    *made = *joined;
    made->alias = alias(c->a);
    made->range = whole;
    return made;
  }
  if (c->fn != nullptr || c->xml != nullptr) return from_function(c);
  auto* made = make<TableRef>();
  made->name = relation(c->only != nullptr ? c->on : c->tn);
  made->only = c->only != nullptr;
  made->alias = alias(c->a);
  if (c->ts != nullptr) made->sample = sample(c->ts);
  made->range = whole;
  return made;
}

const FromItem* TreeBuilder::from_function(G::FromPrimaryContext* c) {
  auto* made = make<FunctionRef>();
  made->lateral = c->lat != nullptr;
  made->with_ordinality = c->ordi != nullptr;
  made->range = range(c);
  if (c->xml != nullptr) {
    auto* call_node = make<FuncCall>();
    call_node->name = {list(std::vector<Name>{{"xmltable", range(c->xml->start)}}), range(c->xml->start)};
    call_node->special = true;
    call_node->args =
        list(std::vector<Argument>{{{}, primary(c->xml->p), false}, {{}, primary(c->xml->pass->e), false}});
    call_node->range = range(c->xml);
    made->functions = list(std::vector<const Expr*>{call_node});
    made->alias = alias(c->a);
    return made;
  }
  if (c->fn->call != nullptr) {
    made->functions = list(std::vector<const Expr*>{windowless(c->fn->call)});
  } else {
    made->rows_from = true;
    made->functions = map(c->fn->rows, [this](auto* item) { return windowless(item->call); });
  }
  if (c->fa != nullptr) {
    if (c->fa->n != nullptr) made->alias = {name(c->fa->n), names(c->fa->cols), range(c->fa)};
    made->columns = column_aliases(c->fa->defs);
  }
  return made;
}

const Expr* TreeBuilder::windowless(G::WindowlessCallContext* c) {
  if (c->cf != nullptr) return common_function(c->cf);
  if (c->sfx->start != nullptr && c->sfx->stop != nullptr &&
      c->sfx->start->getStartIndex() <= c->sfx->stop->getStartIndex())
    syntax_error(c->sfx->start);
  return call(qualified(c->fn != nullptr ? name(c->fn) : name(c->n), c->attrs), c->args, nullptr, range(c));
}

List<ColumnDefinitionItem> TreeBuilder::column_aliases(const std::vector<G::ColumnAliasContext*>& c) {
  return map(c, [this](auto* item) {
    return ColumnDefinitionItem{name(item->n), type_name(item->ty), any_name(item->coll)};
  });
}

Alias TreeBuilder::alias(G::TableAliasContext* c) {
  if (c == nullptr) return {};
  return {name(c->n), names(c->cols), range(c)};
}

const TableSample* TreeBuilder::sample(G::TableSampleContext* c) {
  auto* made = make<TableSample>();
  made->method = function_name(c->n);
  made->args = exprs(c->items);
  if (c->rep != nullptr) made->repeatable = expr(c->rep);
  return made;
}

TableRef TreeBuilder::relation_ref(G::RelationNameContext* c) {
  TableRef made;
  made.name = relation(c->n);
  made.only = c->only != nullptr;
  made.range = range(c);
  return made;
}

}  // namespace kintsugi::parser
