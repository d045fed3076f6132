// What all parts of the tree share. A tree is a plain value: nodes without behaviour that live in the arena of
// their Statement (statement.h), hold views of its text, and never change once parsed; any number of threads
// may read one. Every node bears the range of the statement's text it was read from, so that a rewrite is an
// edit of that text.
#pragma once

#include <span>
#include <string_view>

#include "parser/token.h"

namespace kintsugi::parser {

// Elements in the order of the text; it lives as long as the Statement.
template <class T>
using List = std::span<const T>;

// A name as PostgreSQL means it: unquoted or folded, cut to 63 bytes.
struct Name {
  std::string_view text;
  Range range;
  friend bool operator==(const Name& a, const Name& b) { return a.text == b.text; }
};

// relation, schema.relation or database.schema.relation; also the name of a function or a type.
struct QualifiedName {
  List<Name> parts;
  Range range;

  [[nodiscard]] std::string_view name() const { return parts.empty() ? std::string_view{} : parts.back().text; }
  [[nodiscard]] std::string_view schema() const {
    return parts.size() < 2 ? std::string_view{} : parts[parts.size() - 2].text;
  }
  [[nodiscard]] bool empty() const { return parts.empty(); }
};

// `as<FuncCall>(expr)`: the node when it is of that type, else nullptr. For Expr, FromItem and Body.
template <class Derived, class Base>
[[nodiscard]] const Derived* as(const Base* node) {
  return node != nullptr && node->kind == Derived::kKind ? static_cast<const Derived*>(node) : nullptr;
}

}  // namespace kintsugi::parser
