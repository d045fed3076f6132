// SELECT, VALUES, set operations, WITH.
#include "parser/tree_builder.h"

namespace kintsugi::parser {

Preparable TreeBuilder::preparable(G::PreparableContext* c) {
  Preparable made;
  made.range = range(c);
  const WithClause* clause = with(c->w);
  if (c->q != nullptr) made.query = query(clause, c->q, made.range);
  if (c->ins != nullptr) made.insert = insert(clause, c->ins, made.range);
  if (c->upd != nullptr) made.update = update(clause, c->upd, made.range);
  if (c->del != nullptr) made.del = del(clause, c->del, made.range);
  if (c->mrg != nullptr) made.merge = merge(clause, c->mrg, made.range);
  return made;
}

const Query* TreeBuilder::query(G::QueryContext* c) {
  const WithClause* clause = with(c->w);
  return query(clause, c->q, range(c));
}

const Query* TreeBuilder::query(G::SubqueryContext* c) {
  return query(c->b);
}

const Query* TreeBuilder::query(G::WrappedSubqueryContext* c) {
  return c->sub != nullptr ? query(c->sub) : query(c->wsub);
}

const Query* TreeBuilder::query(G::AnySubqueryContext* c) {
  return c->sub != nullptr ? query(c->sub) : query(c->wsub);
}

const Query* TreeBuilder::query(const WithClause* clause, G::QueryBodyContext* c, Range whole) {
  auto* made = make<Query>();
  made->range = whole;
  made->with = clause;
  made->body = set_expr(c->s);
  made->order_by = order_by(c->ord);
  if (c->ord != nullptr) made->order_clause = range(c->ord);
  if (c->lim != nullptr) limits(c->lim, *made);
  if (c->lock != nullptr) {
    made->locking = locking(c->lock);
    made->locking_clause = range(c->lock);
  }
  check_options(c, *made);
  return made;
}

// A query in parentheses and what stands behind it are one query to PostgreSQL: neither may say a thing twice.
void TreeBuilder::check_options(G::QueryBodyContext* c, const Query& outer) {
  if (outer.with_ties && outer.order_by.empty() && outer.body->kind != SetOperand::Kind::kQuery)
    refuse(nullptr, "WITH TIES cannot be specified without ORDER BY clause");
  if (outer.with_ties)
    for (const Locking& l : outer.locking)
      if (l.wait == Locking::Wait::kSkip)
        refuse(nullptr, "SKIP LOCKED and WITH TIES options cannot be used together");
  if (outer.body->kind != SetOperand::Kind::kQuery) return;
  const Query* inner = outer.body->query;
  for (; inner != nullptr;
       inner = inner->body->kind == SetOperand::Kind::kQuery ? inner->body->query : nullptr) {
    if (c->ord != nullptr && !inner->order_by.empty())
      refuse(c->ord->s[0]->start, "multiple ORDER BY clauses not allowed");
    if (c->lim != nullptr) {
      for (auto* item : c->lim->l) {
        const bool offset = type(item->kind) == G::K_OFFSET;
        const antlr4::Token* where = item->e != nullptr   ? item->e->start
                                     : item->p != nullptr ? item->p->start
                                                          : item->kind;
        if (offset && inner->offset != nullptr) refuse(where, "multiple OFFSET clauses not allowed");
        if (!offset && !inner->limit_clause.empty()) refuse(where, "multiple LIMIT clauses not allowed");
      }
      if (inner->with_ties) refuse(nullptr, "multiple limit options not allowed");
    }
    if (outer.with != nullptr && inner->with != nullptr)
      refuse(static_cast<Rule*>(c->parent)->start, "multiple WITH clauses not allowed");
  }
}

void TreeBuilder::limits(G::LimitClauseContext* c, Query& query) {
  if (c->l.size() > 2) syntax_error(c->l[2]->kind);
  for (auto* item : c->l) {
    const bool offset = type(item->kind) == G::K_OFFSET;
    Range& clause = offset ? query.offset_clause : query.limit_clause;
    if (!clause.empty()) syntax_error(item->kind);
    clause = range(item);
    if (offset) {
      query.offset = expr(item->e);
      continue;
    }
    if (item->comma != nullptr)
      refuse(item->kind, "LIMIT #,# syntax is not supported", "Use separate LIMIT and OFFSET clauses.");
    query.limit_all = item->all != nullptr;
    query.with_ties = item->ties != nullptr;
    if (item->e != nullptr)
      query.limit = expr(item->e);
    else if (item->p != nullptr)
      query.limit = primary(item->p);
    else if (item->num != nullptr)
      query.limit = binary(nullptr, item->sign, nullptr, literal(item->num), range(item->sign, item->num));
    else
      query.limit_one = item->all == nullptr;
  }
}

List<Locking> TreeBuilder::locking(G::LockingClauseContext* c) {
  return map(c->l, [this](auto* item) {
    Locking made;
    const bool update = type(item->w) == G::K_UPDATE;
    made.strength = update
                        ? (item->no != nullptr ? Locking::Strength::kNoKeyUpdate : Locking::Strength::kUpdate)
                        : (item->key != nullptr ? Locking::Strength::kKeyShare : Locking::Strength::kShare);
    if (type(item->wait) == G::K_NOWAIT) made.wait = Locking::Wait::kNoWait;
    if (type(item->wait) == G::K_SKIP) made.wait = Locking::Wait::kSkip;
    made.of = map(item->n, [this](auto* n) {
      if (n->only != nullptr) syntax_error(n->only);
      if (n->star != nullptr) syntax_error(n->star);
      return relation(n->n);
    });
    made.range = range(item);
    return made;
  });
}

const SetOperand* TreeBuilder::set_expr(G::SetExprContext* c) {
  const SetOperand* left = set_term(c->t[0]);
  for (std::size_t i = 0; i < c->op.size(); ++i) left = combine(c->op[i], c->q[i], left, set_term(c->t[i + 1]));
  return left;
}

const SetOperand* TreeBuilder::set_term(G::SetTermContext* c) {
  const SetOperand* left = set_primary(c->t[0]);
  for (std::size_t i = 0; i < c->op.size(); ++i)
    left = combine(c->op[i], c->q[i], left, set_primary(c->t[i + 1]));
  return left;
}

const SetOperand* TreeBuilder::combine(const antlr4::Token* op, G::SetQuantifierContext* q,
                                       const SetOperand* left, const SetOperand* right) {
  auto* made = make<SetOperand>();
  made->kind = type(op) == G::K_UNION       ? SetOperand::Kind::kUnion
               : type(op) == G::K_INTERSECT ? SetOperand::Kind::kIntersect
                                            : SetOperand::Kind::kExcept;
  made->all = type(q->w) == G::K_ALL;
  made->left = left;
  made->right = right;
  made->range = between(left->range, right->range);
  return made;
}

const SetOperand* TreeBuilder::set_primary(G::SetPrimaryContext* c) {
  auto* made = make<SetOperand>();
  made->range = range(c);
  if (c->sel != nullptr) {
    made->select = select(c);
  } else if (c->vals != nullptr) {
    made->kind = SetOperand::Kind::kValues;
    made->values = map(c->vals->rows, [this](auto* row) { return exprs(row->items); });
    made->value_rows = map(c->vals->rows, [this](auto* row) { return range(row); });
  } else if (c->tab != nullptr) {
    made->kind = SetOperand::Kind::kTable;
    auto* table = make<TableRef>();
    *table = relation_ref(c->rel);
    made->table = table;
  } else {
    made->kind = SetOperand::Kind::kQuery;
    made->query = query(c->sub);
  }
  return made;
}

const Select* TreeBuilder::select(G::SetPrimaryContext* c) {
  auto* made = make<Select>();
  made->range = range(c);
  if (c->dist != nullptr) {
    made->distinct = true;
    made->distinct_on = exprs(c->dist->items);
  }
  if (c->tl != nullptr) {
    made->targets = targets(c->tl);
    made->select_list = range(c->tl);
  }
  if (c->into != nullptr) {
    auto* into = make<IntoClause>();
    into->table = relation(c->into->n);
    into->unlogged = type(c->into->kind) == G::K_UNLOGGED;
    into->temporary = c->into->kind != nullptr && !into->unlogged;
    made->into = into;
  }
  if (c->fc != nullptr) {
    made->from = from(c->fc->f);
    made->from_clause = range(c->fc);
  }
  if (c->wh != nullptr) {
    made->where = expr(c->wh->e);
    made->where_clause = range(c->wh);
  }
  if (c->gc != nullptr) {
    made->group_by = map(c->gc->items, [this](auto* item) { return group_item(item); });
    made->group_distinct = type(c->gc->uniq) == G::K_DISTINCT;
    made->group_clause = range(c->gc);
  }
  if (c->hc != nullptr) {
    made->having = expr(c->hc->e);
    made->having_clause = range(c->hc);
  }
  if (c->wc != nullptr) {
    made->windows = map(c->wc->w, [this](auto* w) { return WindowDefinition{name(w->n), window_spec(w->s)}; });
    made->window_clause = range(c->wc);
  }
  return made;
}

List<Target> TreeBuilder::targets(G::TargetListContext* c) {
  return map(c->t, [this](auto* t) {
    Target made;
    made.range = range(t);
    made.star = t->star != nullptr;
    if (t->e != nullptr) made.expr = expr(t->e);
    if (t->lab != nullptr) made.alias = name(t->lab);
    if (t->bare != nullptr) {
      made.alias = name(t->bare);
      check_label(t->e, t->bare->t);
    }
    return made;
  });
}

GroupItem TreeBuilder::group_item(G::GroupItemContext* c) {
  GroupItem made;
  made.range = range(c);
  if (c->empty != nullptr) {
    made.kind = GroupItem::Kind::kEmpty;
  } else if (c->one != nullptr) {
    made.expr = expr(c->one);
    // ROLLUP and CUBE are no functions here.
    const auto* p = c->one->p;
    if (p != nullptr && p->n != nullptr && p->ind.empty() && p->call != nullptr &&
        (type(p->n->t) == G::K_ROLLUP || type(p->n->t) == G::K_CUBE))
      syntax_error(at(p->call->start) + 1);
  } else if (type(c->kind) == G::K_GROUPING) {
    made.kind = GroupItem::Kind::kSets;
    made.sets = map(c->sets, [this](auto* item) { return group_item(item); });
  } else {
    made.kind = type(c->kind) == G::K_CUBE ? GroupItem::Kind::kCube : GroupItem::Kind::kRollup;
    made.exprs = exprs(c->e);
  }
  return made;
}

const WithClause* TreeBuilder::with(G::WithClauseContext* c) {
  if (c == nullptr) return nullptr;
  auto* made = make<WithClause>();
  made->recursive = c->rec != nullptr;
  made->tables = map(c->c, [this](auto* table) { return common_table(table); });
  made->range = range(c);
  return made;
}

const CommonTable* TreeBuilder::common_table(G::CommonTableContext* c) {
  auto* made = make<CommonTable>();
  made->name = name(c->n);
  made->columns = names(c->cols);
  if (c->mat != nullptr)
    made->materialized = c->no != nullptr ? CommonTable::Materialized::kNo : CommonTable::Materialized::kYes;
  if (c->b != nullptr) {
    made->body = preparable(c->b);
  } else {
    made->body.query = query(c->ws);
    made->body.range = range(c->ws);
  }
  made->search = c->se != nullptr;
  made->cycle = c->cy != nullptr;
  made->range = range(c);
  return made;
}

}  // namespace kintsugi::parser
