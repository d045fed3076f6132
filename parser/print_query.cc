#include "parser/tree_printer.h"

namespace kintsugi::parser {

void TreePrinter::alias(const Alias& a) {
  if (!a.given()) return;
  open("as");
  say(a.name);
  for (const Name& c : a.columns) say(c);
  close();
}

void TreePrinter::table(const TableRef& t) {
  const bool plain = !t.only && !t.alias.given() && t.sample == nullptr;
  if (!plain) open("table");
  flag(t.only, "only");
  say(t.name);
  alias(t.alias);
  if (t.sample != nullptr) {
    open("sample");
    say(t.sample->method);
    for (const Expr* e : t.sample->args) put(e);
    clause("repeatable", t.sample->repeatable);
    close();
  }
  if (!plain) close();
}

void TreePrinter::put(const FromItem& f) {
  if (const auto* t = as<TableRef>(&f)) return table(*t);
  if (const auto* s = as<SubqueryRef>(&f)) {
    open(s->lateral ? "lateral-subquery" : "subquery");
    put(s->query);
    alias(s->alias);
  } else if (const auto* c = as<FunctionRef>(&f)) {
    open(c->lateral ? "lateral-function" : "function");
    flag(c->rows_from, "rows-from");
    for (const Expr* e : c->functions) put(e);
    flag(c->with_ordinality, "with-ordinality");
    alias(c->alias);
    clause("columns", c->columns, [this](const ColumnDefinitionItem& d) {
      say(d.name);
      put(*d.type);
    });
  } else if (const auto* j = as<Join>(&f)) {
    static constexpr std::string_view kTypes[] = {"join", "left-join", "right-join", "full-join", "cross-join"};
    open((j->natural ? "natural-" : "") + std::string(kTypes[static_cast<std::size_t>(j->type)]));
    put(*j->left);
    put(*j->right);
    names("using", j->using_columns);
    clause("on", j->on);
    alias(j->alias);
  }
  close();
}

void TreePrinter::targets(std::string_view head, const List<Target>& items) {
  clause(head, items, [this](const Target& t) {
    if (t.star) return say("*");
    if (t.alias.text.empty()) return put(t.expr);
    open("as");
    put(t.expr);
    say(t.alias);
    close();
  });
}

void TreePrinter::from(std::string_view head, const List<const FromItem*>& items) {
  clause(head, items, [this](const FromItem* f) { put(*f); });
}

void TreePrinter::group(const GroupItem& item) {
  using Kind = GroupItem::Kind;
  switch (item.kind) {
    case Kind::kExpr: return put(item.expr);
    case Kind::kEmpty: return say("()");
    case Kind::kRollup: return exprs("rollup", item.exprs);
    case Kind::kCube: return exprs("cube", item.exprs);
    case Kind::kSets: return clause("sets", item.sets, [this](const GroupItem& g) { group(g); });
  }
}

void TreePrinter::put(const Select& s) {
  open("select");
  flag(s.distinct, "distinct");
  exprs("on", s.distinct_on);
  targets("targets", s.targets);
  if (s.into != nullptr) clause("into", s.into->table);
  from("from", s.from);
  clause("where", s.where);
  clause(s.group_distinct ? "group-distinct" : "group", s.group_by, [this](const GroupItem& g) { group(g); });
  clause("having", s.having);
  clause("windows", s.windows, [this](const WindowDefinition& w) {
    say(w.name);
    put(*w.spec);
  });
  close();
}

void TreePrinter::put(const SetOperand& s) {
  using Kind = SetOperand::Kind;
  switch (s.kind) {
    case Kind::kSelect: return put(*s.select);
    case Kind::kValues:
      return clause("values", s.values, [this](const List<const Expr*>& row) {
        open({});
        for (const Expr* e : row) put(e);
        close();
      });
    case Kind::kTable:
      open("table");
      table(*s.table);
      return close();
    case Kind::kQuery: return put(s.query);
    case Kind::kUnion: open(s.all ? "union-all" : "union"); break;
    case Kind::kIntersect: open(s.all ? "intersect-all" : "intersect"); break;
    case Kind::kExcept: open(s.all ? "except-all" : "except"); break;
  }
  put(*s.left);
  put(*s.right);
  close();
}

void TreePrinter::with(const WithClause* clause_node) {
  if (clause_node == nullptr) return;
  open(clause_node->recursive ? "with-recursive" : "with");
  for (const CommonTable* t : clause_node->tables) {
    open({});
    say(t->name);
    names("columns", t->columns);
    flag(t->materialized == CommonTable::Materialized::kYes, "materialized");
    flag(t->materialized == CommonTable::Materialized::kNo, "not-materialized");
    put(t->body);
    flag(t->search, "search");
    flag(t->cycle, "cycle");
    close();
  }
  close();
}

void TreePrinter::put(const Query* q) {
  if (q == nullptr) return say("nothing");
  const bool plain = q->with == nullptr && q->order_by.empty() && q->limit_clause.empty() &&
                     q->offset == nullptr && q->locking_clause.empty();
  if (plain) return put(*q->body);
  open("query");
  with(q->with);
  put(*q->body);
  sort("order", q->order_by);
  clause("limit", q->limit);
  flag(q->limit_all, "limit-all");
  flag(q->limit_one, "limit-one");
  flag(q->with_ties, "with-ties");
  clause("offset", q->offset);
  clause("lock", q->locking, [this](const Locking& l) {
    static constexpr std::string_view kStrengths[] = {"key-share", "share", "no-key-update", "update"};
    say(kStrengths[static_cast<std::size_t>(l.strength)]);
    for (const QualifiedName& n : l.of) say(n);
    flag(l.wait == Locking::Wait::kSkip, "skip-locked");
    flag(l.wait == Locking::Wait::kNoWait, "nowait");
  });
  close();
}

void TreePrinter::put(const Preparable& p) {
  if (p.query != nullptr) put(p.query);
  if (p.insert != nullptr) put(p.insert);
  if (p.update != nullptr) put(p.update);
  if (p.del != nullptr) put(p.del);
  if (p.merge != nullptr) put(p.merge);
}

void TreePrinter::columns(const List<AssignTarget>& items) {
  clause("columns", items, [this](const AssignTarget& t) {
    if (t.steps.empty()) return say(t.column);
    open("of");
    say(t.column);
    steps(t.steps);
    close();
  });
}

void TreePrinter::assign(std::string_view head, const List<SetClause>& items) {
  clause(head, items, [this](const SetClause& s) {
    open("=");
    if (s.multiple)
      columns(s.targets);
    else
      say(s.targets[0].column), steps(s.targets[0].steps);
    put(s.value);
    close();
  });
}

void TreePrinter::index_elements(std::string_view head, const List<IndexElement>& items) {
  clause(head, items, [this](const IndexElement& e) {
    if (e.expr != nullptr)
      put(e.expr);
    else
      say(e.column);
    flag(e.direction == SortItem::Direction::kDescending, "desc");
  });
}

void TreePrinter::put(const Insert* n) {
  open("insert");
  with(n->with);
  table(n->table);
  columns(n->columns);
  if (!n->overriding.empty()) {
    say("overriding");
    say(n->overriding);
  }
  if (n->source == nullptr)
    say("default-values");
  else
    put(n->source);
  if (n->on_conflict != nullptr) {
    const OnConflict& c = *n->on_conflict;
    open("on-conflict");
    index_elements("target", c.target);
    clause("target-where", c.target_where);
    clause("constraint", c.constraint);
    if (!c.do_update) say("nothing");
    assign("set", c.set);
    clause("where", c.where);
    close();
  }
  targets("returning", n->returning);
  close();
}

void TreePrinter::put(const Update* n) {
  open("update");
  with(n->with);
  table(n->table);
  assign("set", n->set);
  from("from", n->from);
  clause("where", n->where);
  clause("current-of", n->current_of);
  targets("returning", n->returning);
  close();
}

void TreePrinter::put(const Delete* n) {
  open("delete");
  with(n->with);
  table(n->table);
  from("using", n->using_items);
  clause("where", n->where);
  clause("current-of", n->current_of);
  targets("returning", n->returning);
  close();
}

void TreePrinter::put(const Merge* n) {
  open("merge");
  with(n->with);
  table(n->table);
  put(*n->source);
  clause("on", n->on);
  for (const MergeWhen& w : n->when) {
    open(w.matched ? "matched" : "not-matched");
    clause("and", w.condition);
    switch (w.action) {
      case MergeWhen::Action::kUpdate: assign("update", w.set); break;
      case MergeWhen::Action::kDelete: say("delete"); break;
      case MergeWhen::Action::kNothing: say("nothing"); break;
      case MergeWhen::Action::kInsert:
        open("insert");
        columns(w.columns);
        if (w.values.empty()) say("default-values");
        for (const Expr* e : w.values) put(e);
        close();
        break;
    }
    close();
  }
  close();
}

}  // namespace kintsugi::parser
