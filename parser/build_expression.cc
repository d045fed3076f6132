// Operators and what may be their operands.
#include "parser/tree_builder.h"

namespace kintsugi::parser {
namespace {

// A chain of operators longer than this would overflow the stack of whoever walks the tree; PostgreSQL refuses
// such too.
constexpr std::size_t kLongestChain = 5000;

bool is_comparison(std::size_t type) {
  switch (type) {
    case Grammar::LT:
    case Grammar::GT:
    case Grammar::EQ:
    case Grammar::LESS_EQUALS:
    case Grammar::GREATER_EQUALS:
    case Grammar::NOT_EQUALS: return true;
    default: return false;
  }
}

bool is_like_group(std::size_t type) {
  switch (type) {
    case Grammar::K_IN:
    case Grammar::K_BETWEEN:
    case Grammar::K_SIMILAR:
    case Grammar::K_LIKE:
    case Grammar::K_ILIKE:
    case Grammar::LIKE_ANY: return true;
    default: return false;
  }
}

// PostgreSQL's table of precedences; 0 for what is no operator.
int precedence(std::size_t type) {
  switch (type) {
    case Grammar::K_OR: return 1;
    case Grammar::K_AND: return 2;
    case Grammar::K_NOT: return 3;
    case Grammar::K_IS: return 4;
    case Grammar::K_OPERATOR: return 10;
    case Grammar::PLUS:
    case Grammar::MINUS: return 11;
    case Grammar::STAR:
    case Grammar::SLASH:
    case Grammar::PERCENT: return 12;
    case Grammar::CARET: return 13;
    case Grammar::K_AT: return 14;
    case Grammar::K_COLLATE: return 15;
    default: return is_comparison(type) ? 5 : is_like_group(type) ? 6 : 0;
  }
}

bool is_is_group(std::size_t type) {
  return type == Grammar::K_IS || type == Grammar::K_ISNULL || type == Grammar::K_NOTNULL;
}

}  // namespace

// The left operands are walked in a loop, so that a long chain does not grow the stack.
const Expr* TreeBuilder::expr(G::ExprContext* c) {
  std::vector<G::ExprContext*> chain;
  G::ExprContext* leaf = c;
  for (; leaf->l != nullptr; leaf = leaf->l) chain.push_back(leaf);
  const Expr* node = nullptr;
  if (leaf->p != nullptr) {
    node = primary(leaf->p);
  } else if (type(leaf->op) == G::K_DEFAULT) {
    auto* made = make<Default>();
    made->range = range(leaf);
    node = made;
  } else if (type(leaf->op) == G::K_NOT) {
    auto* made = make<Not>();
    made->arg = expr(leaf->r);
    made->range = range(leaf);
    node = made;
  } else {
    node = binary(leaf->q, leaf->op, nullptr, expr(leaf->r), range(leaf));
  }
  std::size_t depth = 0;
  while (!chain.empty()) {
    G::ExprContext* next = chain.back();
    const std::size_t op = type(next->op);
    if (op == G::K_AND || op == G::K_OR) {
      std::vector<const Expr*> args;
      if (const auto* same = as<BoolExpr>(node);
          same != nullptr && same->is_or == (op == G::K_OR) && next->l->p == nullptr)
        args.assign(same->args.begin(), same->args.end());
      else
        args.push_back(node);
      for (; !chain.empty() && type(chain.back()->op) == op; chain.pop_back()) {
        next = chain.back();
        args.push_back(expr(next->r));
      }
      auto* made = make<BoolExpr>();
      made->is_or = op == G::K_OR;
      made->args = list(args);
      made->range = range(next);
      node = made;
      continue;
    }
    chain.pop_back();
    if (++depth > kLongestChain) {
      refuse(nullptr, "stack depth limit exceeded", "The expression chains too many operators.", "54001");
      return node;
    }
    node = apply(next, node);
  }
  return node;
}

// Refuses what PostgreSQL's precedences refuse: chains of operators that are not associative.
void TreeBuilder::check_chain(G::ExprContext* c) {
  const std::size_t op = type(c->op);
  const std::size_t left = c->l->p == nullptr && c->l->r != nullptr && c->l->l != nullptr ? type(c->l->op) : 0;
  const antlr4::Token* first = c->neg != nullptr && op != G::K_IS ? c->neg : c->op;
  if (is_comparison(op) || op == G::CMP_ANY) {
    if (is_comparison(left)) syntax_error(c->op);
  } else if (is_like_group(op)) {
    if (is_like_group(left)) syntax_error(first);
    for (G::ExprContext* r = c->r; r != nullptr; r = r->l)
      if (is_like_group(type(r->op))) return syntax_error(r->neg != nullptr ? r->neg : r->op);
  } else if (is_is_group(op)) {
    if (left == G::K_IS) syntax_error(c->op);
  }
}

const Expr* TreeBuilder::apply(G::ExprContext* c, const Expr* left) {
  check_chain(c);
  const Range whole = range(c);
  switch (type(c->op)) {
    case G::TYPECAST: {
      auto* made = make<Cast>();
      made->form = Cast::Form::kTypecast;
      made->arg = left;
      made->type = type_name(c->ty);
      made->range = whole;
      return made;
    }
    case G::K_COLLATE: {
      auto* made = make<Collate>();
      made->arg = left;
      made->collation = any_name(c->coll);
      made->range = whole;
      return made;
    }
    case G::K_AT: {
      auto* made = make<AtTimeZone>();
      made->arg = left;
      made->zone = expr(c->r);
      made->range = whole;
      return made;
    }
    case G::K_ESCAPE: syntax_error(c->op); return left;  // LIKE and SIMILAR take theirs themselves
    case G::K_IN: {
      if (c->il->items == nullptr) {
        auto* made = const_cast<Subquery*>(subquery(Subquery::Form::kIn, c->il->sub, c->il->wsub, whole));
        made->test = left;
        made->negated = c->neg != nullptr;
        return made;
      }
      auto* made = make<InList>();
      made->arg = left;
      made->negated = c->neg != nullptr;
      made->list = exprs(c->il->items);
      made->list_range = range(c->il);
      made->range = whole;
      return made;
    }
    case G::K_BETWEEN: {
      auto* made = make<Between>();
      made->arg = left;
      made->negated = c->neg != nullptr;
      made->symmetric = type(c->sym) == G::K_SYMMETRIC;
      made->low = bexpr(c->low);
      made->high = expr(c->r);
      made->range = whole;
      return made;
    }
    case G::K_SIMILAR: return like(c, left, Like::Form::kSimilar);
    case G::K_LIKE: return like(c, left, Like::Form::kLike);
    case G::K_ILIKE: return like(c, left, Like::Form::kILike);
    case G::OP_ANY:
    case G::OPERATOR_ANY:
    case G::CMP_ANY:
    case G::LIKE_ANY: return quantified(c, left);
    case G::K_IS:
    case G::K_ISNULL:
    case G::K_NOTNULL: return is_test(c, left);
    default: return binary(c->q, c->op, left, expr(c->r), whole);
  }
}

const Expr* TreeBuilder::like(G::ExprContext* c, const Expr* left, Like::Form form) {
  auto* made = make<Like>();
  made->form = form;
  made->negated = c->neg != nullptr;
  made->arg = left;
  if (type(c->r->op) == G::K_ESCAPE) {
    made->pattern = expr(c->r->l);
    made->escape = expr(c->r->r);
  } else {
    made->pattern = expr(c->r);
  }
  made->range = range(c);
  return made;
}

const Expr* TreeBuilder::quantified(G::ExprContext* c, const Expr* left) {
  const bool all = type(c->qf->w) == G::K_ALL;
  const std::size_t op = type(c->op);
  std::string_view symbol = operator_text(c->op);
  if (op == G::LIKE_ANY) symbol = lower(range(c->op));
  if (op == G::OPERATOR_ANY) symbol = operator_text(c->on->op->t);
  const List<Name> schema = op == G::OPERATOR_ANY ? operator_schema(c->on) : List<Name>{};
  if (c->qf->e == nullptr) {
    auto* made = const_cast<Subquery*>(
        subquery(all ? Subquery::Form::kAll : Subquery::Form::kAny, c->qf->sub, c->qf->wsub, range(c)));
    made->test = left;
    made->op = symbol;
    made->schema = schema;
    made->negated = c->neg != nullptr;
    return made;
  }
  auto* made = make<Quantified>();
  made->all = all;
  made->negated = c->neg != nullptr;
  made->op = symbol;
  made->schema = schema;
  made->arg = left;
  made->array = expr(c->qf->e);
  made->range = range(c);
  return made;
}

const Expr* TreeBuilder::is_test(G::ExprContext* c, const Expr* left) {
  if (c->r != nullptr) {
    auto* made = make<DistinctFrom>();
    made->negated = c->neg != nullptr;
    made->left = left;
    made->right = expr(c->r);
    made->range = range(c);
    return made;
  }
  auto* made = make<IsTest>();
  made->arg = left;
  made->negated = c->neg != nullptr || type(c->op) == G::K_NOTNULL;
  made->range = range(c);
  switch (type(c->what)) {
    case G::K_TRUE: made->test = IsTest::Test::kTrue; break;
    case G::K_FALSE: made->test = IsTest::Test::kFalse; break;
    case G::K_UNKNOWN: made->test = IsTest::Test::kUnknown; break;
    case G::K_DOCUMENT: made->test = IsTest::Test::kDocument; break;
    case G::K_NORMALIZED: made->test = IsTest::Test::kNormalized; break;
    default: break;
  }
  if (c->form != nullptr) made->normal_form = lower(range(c->form));
  return made;
}

const Expr* TreeBuilder::bexpr(G::BexprContext* c) {
  if (c->p != nullptr) return primary(c->p);
  const Range whole = range(c);
  const Expr* left = c->l == nullptr ? nullptr : bexpr(c->l);
  if (c->ty != nullptr) {
    auto* made = make<Cast>();
    made->form = Cast::Form::kTypecast;
    made->arg = left;
    made->type = type_name(c->ty);
    made->range = whole;
    return made;
  }
  if (type(c->op) == G::K_IS) {
    if (c->l->r != nullptr && type(c->l->op) == G::K_IS) syntax_error(c->op);
    if (c->r == nullptr) {
      auto* made = make<IsTest>();
      made->test = IsTest::Test::kDocument;
      made->negated = c->neg != nullptr;
      made->arg = left;
      made->range = whole;
      return made;
    }
    auto* made = make<DistinctFrom>();
    made->negated = c->neg != nullptr;
    made->left = left;
    made->right = bexpr(c->r);
    made->range = whole;
    return made;
  }
  if (c->l != nullptr && is_comparison(type(c->op)) && c->l->r != nullptr && is_comparison(type(c->l->op)))
    syntax_error(c->op);
  return binary(c->q, c->op, left, bexpr(c->r), whole);
}

const Expr* TreeBuilder::binary(const G::QualifiedOpContext* q, const antlr4::Token* op, const Expr* left,
                                const Expr* right, Range whole) {
  auto* made = make<Operator>();
  if (q == nullptr) {
    made->op = operator_text(op);
    made->op_range = range(op);
  } else {
    made->op = operator_text(q->on != nullptr ? q->on->op->t : q->op);
    made->op_range = range(q);
    if (q->on != nullptr) made->schema = operator_schema(q->on);
  }
  made->left = left;
  made->right = right;
  made->range = whole;
  return made;
}

// A label without AS may be a word that is also an operator (`SELECT a AND FROM t`), but only where PostgreSQL,
// which looks ahead one token, has not already taken it for one: behind `a OR b`, AND binds to b.
void TreeBuilder::check_label(G::ExprContext* c, const antlr4::Token* label) {
  const std::size_t word = type(label);
  const bool escape = word == G::K_ESCAPE;
  const int own = word == G::K_NOT ? 0 : precedence(word);
  if (own == 0 && !escape) return;
  for (; c != nullptr && c->r != nullptr; c = c->r) {
    const std::size_t op = type(c->op);
    if (escape) {
      if (op == G::K_LIKE || op == G::K_ILIKE || op == G::K_SIMILAR) return syntax_error(at(label) + 1);
      continue;
    }
    const int before = c->q != nullptr ? 10 : c->l == nullptr && op != G::K_NOT ? 16 : precedence(op);
    if (before < own) return syntax_error(at(label) + 1);
    if (before == own && (own == 4 || own == 6)) return syntax_error(label);
  }
}

List<const Expr*> TreeBuilder::exprs(G::ExprListContext* c) {
  if (c == nullptr) return {};
  return map(c->e, [this](auto* e) { return expr(e); });
}

}  // namespace kintsugi::parser
