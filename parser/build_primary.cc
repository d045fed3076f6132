// The operands of expressions: literals, names, parentheses, subqueries, CASE, ARRAY.
#include <charconv>

#include "parser/scanner.h"
#include "parser/tree_builder.h"

namespace kintsugi::parser {

const Expr* TreeBuilder::primary(G::PrimaryContext* c) {
  const Range whole = range(c);
  if (c->lit != nullptr) return literal(c->lit);
  if (c->n != nullptr || c->cn != nullptr || c->fn != nullptr) return named(c);
  if (c->prm != nullptr) {
    auto* made = make<Parameter>();
    const std::string_view digits = written(range(c->prm)).substr(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), made->number);
    statement_.parameters_ = std::max(statement_.parameters_, made->number);
    made->range = range(c->prm);
    return indirect(made, c->ind, 0, whole);
  }
  if (c->tl != nullptr) return typed_literal(c->tl);
  if (c->items != nullptr && (c->lp != nullptr || c->row != nullptr)) return parenthesised(c);
  if (c->row != nullptr) return parenthesised(c);
  if (c->cas != nullptr) return case_expr(c);
  if (c->ex != nullptr) return subquery(Subquery::Form::kExists, c->sub, c->wsub, whole);
  if (c->ar != nullptr && c->al == nullptr) return subquery(Subquery::Form::kArray, c->sub, c->wsub, whole);
  if (c->ar != nullptr) {
    auto* made = const_cast<Array*>(static_cast<const Array*>(array(c->al)));
    made->range = whole;
    return made;
  }
  if (c->un != nullptr) {
    refuse(c->un, "UNIQUE predicate is not yet implemented", {}, sqlstate::kNotSupported);
    return subquery(Subquery::Form::kUnique, c->sub, c->wsub, whole);
  }
  if (c->gr != nullptr) {
    const auto args = exprs(c->items);
    return special(c->gr, {args.begin(), args.end()}, whole);
  }
  if (c->cf != nullptr) return common_function(c->cf);
  return indirect(subquery(Subquery::Form::kScalar, c->sub, nullptr, range(c->sub)), c->ind, 0, whole);
}

const Expr* TreeBuilder::literal(const antlr4::Token* token) {
  auto* made = make<Literal>();
  made->range = range(token);
  switch (type(token)) {
    case G::ICONST: made->literal = LiteralKind::kInteger; break;
    case G::FCONST:
      made->literal =
          at(token)->token().kind == TokenKind::kInteger ? LiteralKind::kInteger : LiteralKind::kNumeric;
      break;
    case G::SCONST: made->literal = LiteralKind::kString; break;
    case G::BCONST: made->literal = LiteralKind::kBits; break;
    case G::XCONST: made->literal = LiteralKind::kHexBits; break;
    case G::K_TRUE: made->literal = LiteralKind::kTrue; break;
    case G::K_FALSE: made->literal = LiteralKind::kFalse; break;
    default: break;
  }
  switch (made->literal) {
    case LiteralKind::kInteger:
    case LiteralKind::kNumeric: made->value = written(made->range); break;
    case LiteralKind::kString:
    case LiteralKind::kBits:
    case LiteralKind::kHexBits: made->value = string_of(token); break;
    default: break;
  }
  return made;
}

const Expr* TreeBuilder::string_literal(const antlr4::Token* token) {
  auto* made = make<Literal>();
  made->literal = LiteralKind::kString;
  made->value = string_of(token);
  made->range = range(token);
  return made;
}

// A column, a function call, or a literal behind the name of its type.
const Expr* TreeBuilder::named(G::PrimaryContext* c) {
  const Range whole = range(c);
  const Name first = c->n != nullptr ? name(c->n) : c->cn != nullptr ? name(c->cn) : name(c->fn);
  std::vector<Name> parts{first};
  std::size_t used = 0;
  bool star = false;
  for (; used < c->ind.size() && !star && (c->ind[used]->field != nullptr || c->ind[used]->star != nullptr);
       ++used) {
    star = c->ind[used]->star != nullptr;
    if (!star) parts.push_back(name(c->ind[used]->field));
  }
  if (c->call == nullptr && c->str == nullptr) {
    if (star && used < c->ind.size()) misplaced_star(c->stop);
    auto* made = make<ColumnRef>();
    made->parts = list(parts);
    made->star = star;
    made->range = between(first.range, used == 0 ? first.range : range(c->ind[used - 1]));
    return indirect(made, c->ind, used, whole);
  }
  if (star || used < c->ind.size()) syntax_error(c->ind[star ? used - 1 : used]->start);
  const QualifiedName function{list(parts), between(first.range, parts.back().range)};
  if (c->call != nullptr && c->sfx->str == nullptr) return call(function, c->call, c->sfx, whole);
  auto* made = make<Cast>();
  auto* as_type = make<TypeName>();
  as_type->name = function;
  as_type->range = function.range;
  if (c->call != nullptr) {
    std::vector<const Expr*> modifiers;
    for (auto* argument_context : c->call->args) {
      if (argument_context->an != nullptr)
        refuse(argument_context->start, "type modifier cannot have parameter name");
      modifiers.push_back(expr(argument_context->e));
    }
    if (c->call->ord != nullptr) refuse(c->call->ord->start, "type modifier cannot have ORDER BY");
    if (c->call->args.empty() || c->call->va != nullptr || c->call->uniq != nullptr) syntax_error(c->sfx->str);
    as_type->modifiers = list(modifiers);
    as_type->range = between(function.range, range(c->call));
  }
  made->form = Cast::Form::kLiteral;
  made->type = as_type;
  made->arg = string_literal(c->call != nullptr ? c->sfx->str : c->str);
  made->range = whole;
  return made;
}

// PostgreSQL notices a * that is not last when it has read the token behind the name.
void TreeBuilder::misplaced_star(const antlr4::Token* last) {
  if (failed_) return;
  failed_ = true;
  error_ = error_at(full_text_, (at(last) + 1)->range(), "improper use of \"*\"");
}

Indirection::Element TreeBuilder::step(G::IndirectionContext* c) {
  Indirection::Element element;
  if (c->field != nullptr) {
    element.field = name(c->field);
  } else if (c->star != nullptr) {
    element.step = Indirection::Step::kStar;
  } else {
    element.step = c->colon != nullptr ? Indirection::Step::kSlice : Indirection::Step::kIndex;
    if (c->low != nullptr) element.low = expr(c->low);
    if (c->high != nullptr) element.high = expr(c->high);
    if (c->low == nullptr && c->colon == nullptr) syntax_error(c->close);
  }
  return element;
}

const Expr* TreeBuilder::indirect(const Expr* base, const std::vector<G::IndirectionContext*>& steps,
                                  std::size_t from, Range whole) {
  if (from >= steps.size()) return base;
  auto* made = make<Indirection>();
  std::vector<Indirection::Element> elements;
  for (std::size_t i = from; i < steps.size(); ++i) elements.push_back(step(steps[i]));
  for (std::size_t i = 0; i + 1 < elements.size(); ++i)
    if (elements[i].step == Indirection::Step::kStar) misplaced_star(steps.back()->stop);
  made->base = base;
  made->steps = list(elements);
  made->range = whole;
  return made;
}

// (a), (a).b, (a, b), ROW (a, b), and OVERLAPS between two of the latter.
const Expr* TreeBuilder::parenthesised(G::PrimaryContext* c) {
  const Range whole = range(c);
  const List<const Expr*> items = exprs(c->items);
  if (c->row == nullptr && items.size() == 1) {
    if (c->over != nullptr) syntax_error(c->ov);
    return indirect(items[0], c->ind, 0, whole);
  }
  if (!c->ind.empty()) syntax_error(c->ind[0]->start);
  auto* made = make<Row>();
  made->explicit_row = c->row != nullptr;
  made->elements = items;
  made->range = whole;
  if (c->over == nullptr) return made;
  made->range = {whole.begin, made->elements.empty() ? whole.end : made->elements.back()->range.end};
  if (items.size() != 2) refuse(c->start, "wrong number of parameters on left side of OVERLAPS expression");
  return overlaps(made, c->over, whole);
}

const Expr* TreeBuilder::row(G::RowValueContext* c) {
  auto* made = make<Row>();
  made->explicit_row = c->row != nullptr;
  made->elements = exprs(c->items);
  made->range = range(c);
  return made;
}

const Expr* TreeBuilder::overlaps(const Expr* left, G::RowValueContext* right, Range whole) {
  const Expr* other = row(right);
  if (right->row == nullptr && right->items->e.size() == 1) syntax_error(right->rp);
  if (static_cast<const Row*>(other)->elements.size() != 2)
    refuse(right->start, "wrong number of parameters on right side of OVERLAPS expression");
  auto* made = make<FuncCall>();
  made->name.parts = list(std::vector<Name>{{"overlaps", whole}});
  made->name.range = whole;
  made->special = true;
  made->args = list(std::vector<Argument>{{{}, left, false}, {{}, other, false}});
  made->range = whole;
  return made;
}

const Expr* TreeBuilder::case_expr(G::PrimaryContext* c) {
  auto* made = make<Case>();
  if (c->arg != nullptr) made->arg = expr(c->arg);
  made->arms = map(c->arms, [this](auto* arm) { return Case::When{expr(arm->cond), expr(arm->res)}; });
  if (c->other != nullptr) made->otherwise = expr(c->other);
  made->range = range(c);
  return made;
}

const Expr* TreeBuilder::array(G::ArrayLiteralContext* c) {
  auto* made = make<Array>();
  made->elements =
      c->rows.empty() ? exprs(c->items) : map(c->rows, [this](auto* inner) { return array(inner); });
  made->range = range(c);
  return made;
}

const Subquery* TreeBuilder::subquery(Subquery::Form form, G::SubqueryContext* sub,
                                      G::WrappedSubqueryContext* wrapped, Range whole) {
  auto* made = make<Subquery>();
  made->form = form;
  made->query = sub != nullptr ? query(sub) : query(wrapped);
  made->range = whole;
  return made;
}

const Expr* TreeBuilder::typed_literal(G::TypedLiteralContext* c) {
  auto* made = make<Cast>();
  made->form = Cast::Form::kLiteral;
  auto* as_type = make<TypeName>();
  if (c->ty != nullptr) {
    *as_type = constant_type(c->ty);
  } else {
    as_type->name = {list(std::vector<Name>{{"interval", range(c->iv)}}), range(c->iv)};
    if (c->fields != nullptr) as_type->interval_fields = lower(range(c->fields));
    if (c->num != nullptr) as_type->modifiers = list(std::vector<const Expr*>{literal(c->num)});
    as_type->range = range(c->iv);
  }
  made->type = as_type;
  made->arg = string_literal(c->str);
  made->range = range(c);
  return made;
}

}  // namespace kintsugi::parser
