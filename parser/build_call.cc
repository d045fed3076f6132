// Function calls, windows, ORDER BY, and what PostgreSQL gives a syntax of its own.
#include "parser/tree_builder.h"

namespace kintsugi::parser {

const FuncCall* TreeBuilder::call(QualifiedName function, G::CallArgumentsContext* args,
                                  G::CallSuffixContext* suffix, Range whole) {
  auto* made = make<FuncCall>();
  made->name = function;
  made->star = args->star != nullptr;
  made->distinct = type(args->uniq) == G::K_DISTINCT;
  std::vector<Argument> list_of;
  for (auto* a : args->args) list_of.push_back(argument(a));
  if (args->vararg != nullptr) {
    list_of.push_back(argument(args->vararg));
    list_of.back().variadic = true;
  }
  if (args->va != nullptr && args->uniq != nullptr) syntax_error(args->va);
  made->args = list(list_of);
  made->order_by = order_by(args->ord);
  const Range inside = range(args);
  made->args_range = {inside.begin + 1, inside.end - 1};
  made->range = whole;
  if (suffix == nullptr) return made;
  made->within_group = order_by(suffix->within);
  if (suffix->within != nullptr) {
    if (args->ord != nullptr) refuse(suffix->start, "cannot use multiple ORDER BY clauses with WITHIN GROUP");
    if (made->distinct) refuse(suffix->start, "cannot use DISTINCT with WITHIN GROUP");
    if (args->va != nullptr) refuse(suffix->start, "cannot use VARIADIC with WITHIN GROUP");
  }
  if (suffix->filt != nullptr) made->filter = expr(suffix->filt);
  if (suffix->over != nullptr) made->over = over(suffix);
  return made;
}

Argument TreeBuilder::argument(G::ArgumentContext* c) {
  Argument made;
  if (c->an != nullptr) made.name = name(c->an).text;
  made.value = expr(c->e);
  return made;
}

const Over* TreeBuilder::over(G::CallSuffixContext* c) {
  auto* made = make<Over>();
  if (c->wname != nullptr)
    made->window = name(c->wname).text;
  else
    made->spec = window_spec(c->wspec);
  return made;
}

const WindowSpec* TreeBuilder::window_spec(G::WindowSpecContext* c) {
  auto* made = make<WindowSpec>();
  if (c->base != nullptr) made->base = name(c->base).text;
  made->partition_by = exprs(c->part);
  made->order_by = order_by(c->ord);
  made->range = range(c);
  if (c->frame != nullptr) frame(c->frame, *made);
  return made;
}

void TreeBuilder::frame(G::FrameClauseContext* c, WindowSpec& spec) {
  using Kind = FrameBound::Kind;
  const auto bound = [this](G::FrameBoundContext* b) {
    FrameBound made;
    const bool preceding = type(b->dir) == G::K_PRECEDING;
    if (b->e != nullptr) {
      made.kind = preceding ? Kind::kPreceding : Kind::kFollowing;
      made.offset = expr(b->e);
    } else if (type(b->w) == G::K_UNBOUNDED) {
      made.kind = preceding ? Kind::kUnboundedPreceding : Kind::kUnboundedFollowing;
    }
    return made;
  };
  const auto wrong = [this](const Rule* where, const char* message) {
    refuse(where->start, message, {}, "42P20");
  };
  spec.frame = type(c->md) == G::K_RANGE  ? WindowSpec::Frame::kRange
               : type(c->md) == G::K_ROWS ? WindowSpec::Frame::kRows
                                          : WindowSpec::Frame::kGroups;
  spec.start = bound(c->b);
  if (spec.start.kind == Kind::kUnboundedFollowing) wrong(c->b, "frame start cannot be UNBOUNDED FOLLOWING");
  if (c->e == nullptr) {
    if (spec.start.kind == Kind::kFollowing)
      wrong(c->b, "frame starting from following row cannot end with current row");
  } else {
    spec.end = bound(c->e);
    if (spec.end.kind == Kind::kUnboundedPreceding) wrong(c->e, "frame end cannot be UNBOUNDED PRECEDING");
    if (spec.start.kind == Kind::kCurrentRow && spec.end.kind == Kind::kPreceding)
      wrong(c->e, "frame starting from current row cannot have preceding rows");
    if (spec.start.kind == Kind::kFollowing &&
        (spec.end.kind == Kind::kPreceding || spec.end.kind == Kind::kCurrentRow))
      wrong(c->e, "frame starting from following row cannot have preceding rows");
  }
  switch (type(c->ex)) {
    case G::K_CURRENT: spec.exclude = "current row"; break;
    case G::K_GROUP: spec.exclude = "group"; break;
    case G::K_TIES: spec.exclude = "ties"; break;
    case G::K_NO: spec.exclude = "no others"; break;
    default: break;
  }
}

List<SortItem> TreeBuilder::order_by(G::OrderByContext* c) {
  if (c == nullptr) return {};
  return map(c->s, [this](auto* s) { return sort_item(s); });
}

SortItem TreeBuilder::sort_item(G::SortItemContext* c) {
  SortItem made;
  made.expr = expr(c->e);
  if (type(c->dir) == G::K_ASC) made.direction = SortItem::Direction::kAscending;
  if (type(c->dir) == G::K_DESC) made.direction = SortItem::Direction::kDescending;
  if (c->us != nullptr || c->uq != nullptr) {
    made.direction = SortItem::Direction::kUsing;
    made.using_operator = operator_text(c->us != nullptr ? c->us->t : c->uq->op->t);
  }
  if (type(c->nul) == G::K_FIRST) made.nulls = SortItem::Nulls::kFirst;
  if (type(c->nul) == G::K_LAST) made.nulls = SortItem::Nulls::kLast;
  made.range = range(c);
  return made;
}

const FuncCall* TreeBuilder::special(const antlr4::Token* word, const std::vector<const Expr*>& args,
                                     Range whole) {
  auto* made = make<FuncCall>();
  const Range r = range(word);
  made->name = {list(std::vector<Name>{{lower(r), r}}), r};
  made->special = true;
  std::vector<Argument> list_of;
  for (const Expr* e : args)
    if (e != nullptr) list_of.push_back({{}, e, false});
  made->args = list(list_of);
  made->range = whole;
  if (r.end + 1 < whole.end && text_[whole.end - 1] == ')') {
    const auto open = text_.find('(', r.end);
    made->args_range = {static_cast<std::uint32_t>(open) + 1, whole.end - 1};
  }
  return made;
}

const Expr* TreeBuilder::common_function(G::CommonFunctionContext* c) {
  const Range whole = range(c);
  const auto optional = [this](G::ExprContext* e) { return e == nullptr ? nullptr : expr(e); };
  switch (type(c->w)) {
    case G::K_CAST: {
      auto* made = make<Cast>();
      made->arg = expr(c->a);
      made->type = type_name(c->ty);
      made->range = whole;
      return made;
    }
    case G::K_EXTRACT: {
      if (c->field == nullptr) return special(c->w, {}, whole);
      auto* field = make<Literal>();
      field->literal = LiteralKind::kString;
      field->range = range(c->field);
      field->value = type(c->field->t) == G::SCONST ? string_of(c->field->t) : name_of(c->field->t).text;
      return special(c->w, {field, expr(c->a)}, whole);
    }
    case G::K_POSITION: return special(c->w, {bexpr(c->ba), bexpr(c->bb)}, whole);
    case G::K_OVERLAY:
    case G::K_SUBSTRING: {
      const bool sql = c->b != nullptr || c->c != nullptr;
      if (sql && c->args[0]->an != nullptr) syntax_error(c->args[0]->arrow);
      std::vector<const Expr*> args;
      if (c->sim != nullptr) {
        if (type(c->b->op) != G::K_ESCAPE)
          syntax_error(c->stop);
        else
          args = {expr(c->args[0]->e), expr(c->b->l), expr(c->b->r)};
        return special(c->w, args, whole);
      }
      for (auto* a : c->args) args.push_back(expr(a->e));
      args.push_back(optional(c->b));
      args.push_back(optional(c->c));
      args.push_back(optional(c->d));
      return special(c->w, args, whole);
    }
    case G::K_TRIM: {
      std::vector<const Expr*> args{optional(c->a)};
      for (auto* m : c->more) args.push_back(expr(m));
      for (const Expr* e : exprs(c->items)) args.push_back(e);
      return special(c->w, args, whole);
    }
    case G::K_XMLEXISTS: return special(c->w, {primary(c->pa), primary(c->pass->e)}, whole);
    case G::K_XMLFOREST:
    case G::K_XMLELEMENT: {
      std::vector<const Expr*> args;
      for (auto* x : c->xml) args.push_back(expr(x->e));
      for (const Expr* e : exprs(c->items)) args.push_back(e);
      return special(c->w, args, whole);
    }
    default: break;
  }
  if (c->num != nullptr) return special(c->w, {literal(c->num)}, whole);
  std::vector<const Expr*> args{optional(c->a), optional(c->b)};
  for (const Expr* e : exprs(c->items)) args.push_back(e);
  return special(c->w, args, whole);
}

const TypeName* TreeBuilder::type_name(G::TypeNameContext* c) {
  auto* made = make<TypeName>();
  *made = simple_type(c->st);
  made->set_of = c->setof != nullptr;
  made->dimensions = c->ar != nullptr ? 1 : static_cast<int>(c->dims.size());
  made->range = range(c);
  return made;
}

const TypeName* TreeBuilder::func_type(G::FuncTypeContext* c) {
  if (c->ty != nullptr) return type_name(c->ty);
  auto* made = make<TypeName>();
  made->name = qualified(name(c->n), c->attrs);
  made->set_of = c->setof != nullptr;
  made->of_column = true;
  made->range = range(c);
  return made;
}

TypeName TreeBuilder::simple_type(G::SimpleTypeContext* c) {
  if (c->ct != nullptr) return constant_type(c->ct);
  TypeName made;
  made.range = range(c);
  if (c->iv != nullptr) {
    made.name = {list(std::vector<Name>{{"interval", range(c->iv)}}), range(c->iv)};
    if (c->fields != nullptr) made.interval_fields = lower(range(c->fields));
    if (c->num != nullptr) made.modifiers = list(std::vector<const Expr*>{literal(c->num)});
    return made;
  }
  made.name = qualified(name(c->n), c->attrs);
  if (c->mods != nullptr) made.modifiers = exprs(c->mods->items);
  return made;
}

TypeName TreeBuilder::constant_type(G::ConstantTypeContext* c) {
  TypeName made;
  made.range = range(c);
  const auto named_type = [&]() -> std::string_view {
    switch (type(c->n)) {
      case G::K_INT:
      case G::K_INTEGER: return "int4";
      case G::K_SMALLINT: return "int2";
      case G::K_BIGINT: return "int8";
      case G::K_REAL: return "float4";
      case G::K_BOOLEAN: return "bool";
      case G::K_DOUBLE: return "float8";
      case G::K_DECIMAL:
      case G::K_DEC:
      case G::K_NUMERIC: return "numeric";
      case G::K_BIT: return c->var != nullptr ? "varbit" : "bit";
      case G::K_VARCHAR: return "varchar";
      case G::K_CHARACTER:
      case G::K_CHAR:
      case G::K_NCHAR: return c->var != nullptr ? "varchar" : "bpchar";
      case G::K_TIMESTAMP: return type(c->zone) == G::WITH_LA ? "timestamptz" : "timestamp";
      case G::K_TIME: return type(c->zone) == G::WITH_LA ? "timetz" : "time";
      default: break;
    }
    if (c->len == nullptr) return "float8";
    const std::string_view digits = written(range(c->len));
    const std::size_t bits = digits.size() > 4 ? 9999 : std::stoul(std::string(digits));
    if (bits < 1)
      refuse(c->len, "precision for type float must be at least 1 bit", {}, sqlstate::kInvalidParameter);
    if (bits > 53)
      refuse(c->len, "precision for type float must be less than 54 bits", {}, sqlstate::kInvalidParameter);
    return bits <= 24 ? "float4" : "float8";
  };
  made.name = {list(std::vector<Name>{{named_type(), range(c->n)}}), range(c->n)};
  if (c->mods != nullptr) made.modifiers = exprs(c->mods->items);
  if (c->len != nullptr && type(c->n) != G::K_FLOAT)
    made.modifiers = list(std::vector<const Expr*>{literal(c->len)});
  return made;
}

}  // namespace kintsugi::parser
