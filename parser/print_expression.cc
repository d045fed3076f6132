#include "parser/tree_printer.h"

namespace kintsugi::parser {

void TreePrinter::open(std::string_view head) {
  blank();
  out_ += '(';
  out_ += head;
  if (!head.empty()) out_ += ' ';
}

void TreePrinter::name_text(std::string_view text) {
  blank();
  bool plain = !text.empty();
  for (char c : text) plain = plain && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c < 0);
  if (plain) {
    out_ += text;
    return;
  }
  out_ += '"';
  for (char c : text) out_.append(c == '"' ? 2 : 1, c);
  out_ += '"';
}

void TreePrinter::say(const QualifiedName& name) {
  blank();
  for (std::size_t i = 0; i < name.parts.size(); ++i) {
    if (i > 0) out_ += '.';
    TreePrinter part;
    part.name_text(name.parts[i].text);
    out_ += part.take();
  }
}

void TreePrinter::quoted(std::string_view text) {
  blank();
  out_ += '\'';
  for (char c : text) out_.append(c == '\'' ? 2 : 1, c);
  out_ += '\'';
}

void TreePrinter::clause(std::string_view head, const Expr* e) {
  if (e == nullptr) return;
  open(head);
  put(e);
  close();
}

void TreePrinter::clause(std::string_view head, const Name& name) {
  if (name.text.empty()) return;
  open(head);
  say(name);
  close();
}

void TreePrinter::clause(std::string_view head, const QualifiedName& name) {
  if (name.empty()) return;
  open(head);
  say(name);
  close();
}

void TreePrinter::names(std::string_view head, const List<Name>& items) {
  clause(head, items, [this](const Name& n) { say(n); });
}

void TreePrinter::exprs(std::string_view head, const List<const Expr*>& items) {
  clause(head, items, [this](const Expr* e) { put(e); });
}

void TreePrinter::sort(std::string_view head, const List<SortItem>& items) {
  clause(head, items, [this](const SortItem& s) {
    const bool plain = s.direction == SortItem::Direction::kDefault && s.nulls == SortItem::Nulls::kDefault;
    if (!plain) open({});
    put(s.expr);
    flag(s.direction == SortItem::Direction::kAscending, "asc");
    flag(s.direction == SortItem::Direction::kDescending, "desc");
    if (s.direction == SortItem::Direction::kUsing) {
      say("using");
      say(s.using_operator);
    }
    flag(s.nulls == SortItem::Nulls::kFirst, "nulls-first");
    flag(s.nulls == SortItem::Nulls::kLast, "nulls-last");
    if (!plain) close();
  });
}

void TreePrinter::steps(const List<Indirection::Element>& items) {
  using Step = Indirection::Step;
  for (const auto& s : items) {
    if (s.step == Step::kField) clause("field", s.field);
    if (s.step == Step::kStar) say("star");
    if (s.step == Step::kIndex) clause("index", s.low);
    if (s.step != Step::kSlice) continue;
    open("slice");
    clause("from", s.low);
    clause("to", s.high);
    close();
  }
}

void TreePrinter::put(const TypeName& t) {
  open("type");
  flag(t.set_of, "setof");
  say(t.name);
  flag(t.of_column, "of-column");
  for (const Expr* m : t.modifiers) put(m);
  if (!t.interval_fields.empty()) quoted(t.interval_fields);
  for (int i = 0; i < t.dimensions; ++i) say("[]");
  close();
}

void TreePrinter::bound(const FrameBound& b) {
  using Kind = FrameBound::Kind;
  switch (b.kind) {
    case Kind::kUnboundedPreceding: say("unbounded-preceding"); break;
    case Kind::kPreceding: clause("preceding", b.offset); break;
    case Kind::kCurrentRow: say("current-row"); break;
    case Kind::kFollowing: clause("following", b.offset); break;
    case Kind::kUnboundedFollowing: say("unbounded-following"); break;
  }
}

void TreePrinter::put(const WindowSpec& w) {
  open("window");
  if (!w.base.empty()) name_text(w.base);
  exprs("partition", w.partition_by);
  sort("order", w.order_by);
  if (w.frame != WindowSpec::Frame::kNone) {
    open(w.frame == WindowSpec::Frame::kRange  ? "range"
         : w.frame == WindowSpec::Frame::kRows ? "rows"
                                               : "groups");
    bound(w.start);
    bound(w.end);
    if (!w.exclude.empty()) {
      say("exclude");
      say(w.exclude);
    }
    close();
  }
  close();
}

void TreePrinter::call(const FuncCall& f) {
  open(f.special ? "special" : "call");
  say(f.name);
  flag(f.star, "*");
  flag(f.distinct, "distinct");
  for (const Argument& a : f.args) {
    const bool plain = a.name.empty() && !a.variadic;
    if (!plain) open(a.variadic ? "variadic" : "arg");
    if (!a.name.empty()) name_text(a.name);
    put(a.value);
    if (!plain) close();
  }
  sort("order", f.order_by);
  sort("within", f.within_group);
  clause("filter", f.filter);
  if (f.over != nullptr) {
    open("over");
    if (f.over->spec != nullptr)
      put(*f.over->spec);
    else
      name_text(f.over->window);
    close();
  }
  close();
}

void TreePrinter::put(const Expr* e) {
  if (e == nullptr) return say("nothing");
  if (const auto* n = as<Literal>(e)) {
    switch (n->literal) {
      case LiteralKind::kNull: return say("null");
      case LiteralKind::kTrue: return say("true");
      case LiteralKind::kFalse: return say("false");
      case LiteralKind::kString: return quoted(n->value);
      case LiteralKind::kBits:
        say("b");
        out_ += '\'' + std::string(n->value) + '\'';
        return;
      case LiteralKind::kHexBits:
        say("x");
        out_ += '\'' + std::string(n->value) + '\'';
        return;
      default: return say(n->value);
    }
  }
  if (const auto* n = as<Parameter>(e)) return say("$" + std::to_string(n->number));
  if (const auto* n = as<ColumnRef>(e)) {
    say(QualifiedName{n->parts, {}});
    if (n->star) out_ += ".*";
    return;
  }
  if (as<Default>(e) != nullptr) return say("default");
  if (const auto* n = as<FuncCall>(e)) return call(*n);
  if (const auto* n = as<Indirection>(e)) {
    open("of");
    put(n->base);
    steps(n->steps);
  } else if (const auto* op = as<Operator>(e)) {
    open({});
    for (const Name& s : op->schema) out_ += std::string(s.text) + '.';
    out_ += op->op;
    if (op->left != nullptr) put(op->left);
    put(op->right);
  } else if (const auto* b = as<BoolExpr>(e)) {
    open(b->is_or ? "or" : "and");
    for (const Expr* a : b->args) put(a);
  } else if (const auto* no = as<Not>(e)) {
    open("not");
    put(no->arg);
  } else if (const auto* is = as<IsTest>(e)) {
    static constexpr std::string_view kTests[] = {"null", "true", "false", "unknown", "document", "normalized"};
    open(is->negated ? "is-not" : "is");
    say(kTests[static_cast<std::size_t>(is->test)]);
    if (!is->normal_form.empty()) say(is->normal_form);
    put(is->arg);
  } else if (const auto* d = as<DistinctFrom>(e)) {
    open(d->negated ? "not-distinct" : "distinct");
    put(d->left);
    put(d->right);
  } else if (const auto* l = as<Like>(e)) {
    static constexpr std::string_view kForms[] = {"like", "ilike", "similar"};
    open((l->negated ? "not-" : "") + std::string(kForms[static_cast<std::size_t>(l->form)]));
    put(l->arg);
    put(l->pattern);
    clause("escape", l->escape);
  } else if (const auto* t = as<Between>(e)) {
    open(t->negated ? "not-between" : "between");
    flag(t->symmetric, "symmetric");
    put(t->arg);
    put(t->low);
    put(t->high);
  } else if (const auto* in = as<InList>(e)) {
    open(in->negated ? "not-in" : "in");
    put(in->arg);
    for (const Expr* x : in->list) put(x);
  } else if (const auto* q = as<Quantified>(e)) {
    open(std::string(q->negated ? "not-" : "") + std::string(q->op));
    say(q->all ? "all" : "any");
    put(q->arg);
    put(q->array);
  } else if (const auto* s = as<Subquery>(e)) {
    static constexpr std::string_view kForms[] = {"scalar", "exists", "in", "any", "all", "array", "unique"};
    open((s->negated ? "not-" : "") + std::string(kForms[static_cast<std::size_t>(s->form)]));
    if (!s->op.empty()) say(s->op);
    if (s->test != nullptr) put(s->test);
    put(s->query);
  } else if (const auto* c = as<Case>(e)) {
    open("case");
    if (c->arg != nullptr) put(c->arg);
    for (const auto& arm : c->arms) {
      open("when");
      put(arm.when);
      put(arm.then);
      close();
    }
    clause("else", c->otherwise);
  } else if (const auto* a = as<Array>(e)) {
    open("array");
    for (const Expr* x : a->elements) put(x);
  } else if (const auto* r = as<Row>(e)) {
    open("row");
    for (const Expr* x : r->elements) put(x);
  } else if (const auto* k = as<Cast>(e)) {
    open(k->form == Cast::Form::kLiteral ? "literal" : "cast");
    put(k->arg);
    put(*k->type);
  } else if (const auto* co = as<Collate>(e)) {
    open("collate");
    put(co->arg);
    say(co->collation);
  } else if (const auto* z = as<AtTimeZone>(e)) {
    open("at-time-zone");
    put(z->arg);
    put(z->zone);
  }
  close();
}

}  // namespace kintsugi::parser
