// INSERT, UPDATE, DELETE, MERGE.
#include "parser/tree_builder.h"

namespace kintsugi::parser {

AssignTarget TreeBuilder::assign_target(G::AssignTargetContext* c) {
  return {name(c->n), map(c->ind, [this](auto* i) { return step(i); }), range(c)};
}

List<SetClause> TreeBuilder::set_clauses(G::SetClausesContext* c) {
  return map(c->s, [this](auto* s) {
    SetClause made;
    made.targets = map(s->t, [this](auto* t) { return assign_target(t); });
    made.multiple = s->many != nullptr;
    made.value = expr(s->e);
    made.range = range(s);
    return made;
  });
}

const Insert* TreeBuilder::insert(const WithClause* clause, G::InsertBodyContext* c, Range whole) {
  auto* made = make<Insert>();
  made->with = clause;
  made->range = whole;
  made->table.name = relation(c->rel);
  made->table.range = range(c->rel);
  if (c->al != nullptr) {
    made->table.alias = {name(c->al), {}, range(c->al)};
    made->table.range.end = range(c->al).end;
  }
  made->columns = map(c->cols, [this](auto* t) { return assign_target(t); });
  if (c->lp != nullptr) made->columns_range = range(c->lp, c->rp);
  if (c->over != nullptr) made->overriding = type(c->over) == G::K_USER ? "user" : "system";
  if (c->q != nullptr) made->source = query(c->q);
  if (c->oc != nullptr) {
    auto* conflict = make<OnConflict>();
    conflict->do_update = c->oc->upd != nullptr;
    conflict->target = map(c->oc->p, [this](auto* p) { return index_element(p); });
    if (c->oc->wh != nullptr) conflict->target_where = expr(c->oc->wh->e);
    if (c->oc->cn != nullptr) conflict->constraint = name(c->oc->cn);
    if (c->oc->s != nullptr) conflict->set = set_clauses(c->oc->s);
    if (c->oc->dw != nullptr) conflict->where = expr(c->oc->dw->e);
    conflict->range = range(c->oc);
    made->on_conflict = conflict;
  }
  if (c->ret != nullptr) {
    made->returning = targets(c->ret->t);
    made->returning_clause = range(c->ret);
  }
  return made;
}

const Update* TreeBuilder::update(const WithClause* clause, G::UpdateBodyContext* c, Range whole) {
  auto* made = make<Update>();
  made->with = clause;
  made->range = whole;
  made->table = relation_ref(c->rel);
  if (c->al != nullptr) made->table.alias = {name(c->al), {}, range(c->al)};
  if (c->al2 != nullptr) made->table.alias = {name(c->al2), {}, range(c->al2)};
  if (made->table.alias.given()) made->table.range.end = made->table.alias.range.end;
  made->set = set_clauses(c->s);
  made->set_clause = range(c->s);
  if (c->fc != nullptr) {
    made->from = from(c->fc->f);
    made->from_clause = range(c->fc);
  }
  if (c->wh != nullptr) {
    if (c->wh->e != nullptr) made->where = expr(c->wh->e);
    if (c->wh->cursor != nullptr) made->current_of = name(c->wh->cursor);
    made->where_clause = range(c->wh);
  }
  if (c->ret != nullptr) {
    made->returning = targets(c->ret->t);
    made->returning_clause = range(c->ret);
  }
  return made;
}

const Delete* TreeBuilder::del(const WithClause* clause, G::DeleteBodyContext* c, Range whole) {
  auto* made = make<Delete>();
  made->with = clause;
  made->range = whole;
  made->table = relation_ref(c->rel);
  if (c->al != nullptr) made->table.alias = {name(c->al), {}, range(c->al)};
  if (c->al2 != nullptr) made->table.alias = {name(c->al2), {}, range(c->al2)};
  if (made->table.alias.given()) made->table.range.end = made->table.alias.range.end;
  if (!c->u.empty()) {
    made->using_items = from(c->u);
    made->using_clause = range(c->us, c->u.back()->stop);
  }
  if (c->wh != nullptr) {
    if (c->wh->e != nullptr) made->where = expr(c->wh->e);
    if (c->wh->cursor != nullptr) made->current_of = name(c->wh->cursor);
    made->where_clause = range(c->wh);
  }
  if (c->ret != nullptr) {
    made->returning = targets(c->ret->t);
    made->returning_clause = range(c->ret);
  }
  return made;
}

const Merge* TreeBuilder::merge(const WithClause* clause, G::MergeBodyContext* c, Range whole) {
  auto* made = make<Merge>();
  made->with = clause;
  made->range = whole;
  made->table = relation_ref(c->rel);
  if (c->al != nullptr) made->table.alias = {name(c->al), {}, range(c->al)};
  if (c->al2 != nullptr) made->table.alias = {name(c->al2), {}, range(c->al2)};
  made->source = from_item(c->src);
  made->on = expr(c->e);
  made->when = map(c->w, [this](auto* w) {
    MergeWhen arm;
    arm.matched = w->no == nullptr;
    arm.range = range(w);
    if (w->cond != nullptr) arm.condition = expr(w->cond);
    if (w->upd != nullptr) {
      arm.action = MergeWhen::Action::kUpdate;
      arm.set = set_clauses(w->s);
      if (!arm.matched) syntax_error(w->upd);
    } else if (w->del != nullptr) {
      arm.action = MergeWhen::Action::kDelete;
      if (!arm.matched) syntax_error(w->del);
    } else if (w->ins != nullptr) {
      arm.action = MergeWhen::Action::kInsert;
      arm.columns = map(w->cols, [this](auto* t) { return assign_target(t); });
      arm.values = exprs(w->items);
      if (arm.matched) syntax_error(w->ins);
    }
    return arm;
  });
  return made;
}

IndexElement TreeBuilder::index_element(G::IndexElementContext* c) {
  IndexElement made;
  made.range = range(c);
  if (c->n != nullptr) made.column = name(c->n);
  if (c->wf != nullptr) made.expr = windowless(c->wf);
  if (c->e != nullptr) made.expr = expr(c->e);
  made.collation = any_name(c->coll);
  made.operator_class = any_name(c->opc);
  if (type(c->dir) == G::K_ASC) made.direction = SortItem::Direction::kAscending;
  if (type(c->dir) == G::K_DESC) made.direction = SortItem::Direction::kDescending;
  if (type(c->nul) == G::K_FIRST) made.nulls = SortItem::Nulls::kFirst;
  if (type(c->nul) == G::K_LAST) made.nulls = SortItem::Nulls::kLast;
  return made;
}

}  // namespace kintsugi::parser
