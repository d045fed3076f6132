#include "parser/tree_builder.h"

#include "parser/literals.h"
#include "parser/scanner.h"

namespace kintsugi::parser {

Status TreeBuilder::build(Grammar::StatementContext* c) {
  if (c->b != nullptr) {
    const Preparable p = preparable(c->b);
    if (p.query != nullptr) statement_.body_ = p.query;
    if (p.insert != nullptr) statement_.body_ = p.insert;
    if (p.update != nullptr) statement_.body_ = p.update;
    if (p.del != nullptr) statement_.body_ = p.del;
    if (p.merge != nullptr) statement_.body_ = p.merge;
  } else if (c->own != nullptr) {
    statement_.body_ = own(c->own);
  } else {
    statement_.body_ = utility(c);
    if (std::holds_alternative<std::monostate>(statement_.body_)) statement_.body_ = definition(c);
  }
  if (failed_) return fail(std::move(error_));
  return {};
}

std::string_view TreeBuilder::keep(std::string_view text) {
  if (text.empty()) return {};
  statement_.arena_bytes_ += text.size();
  char* copy = static_cast<char*>(statement_.arena_.allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

std::string_view TreeBuilder::lower(Range r) {
  std::string words;
  for (char c : written(r)) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
    if (blank && (words.empty() || words.back() == ' ')) continue;
    words += blank ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  }
  return words == written(r) ? written(r) : keep(words);
}

void TreeBuilder::syntax_error(const antlr4::Token* token) {
  if (failed_) return;
  failed_ = true;
  error_ = error_at(full_text_, at(token)->range(), "syntax error");
}

void TreeBuilder::refuse(const antlr4::Token* where, std::string message, std::string hint,
                         std::string_view state) {
  if (failed_) return;
  failed_ = true;
  error_ = Error{};
  error_.sqlstate = state;
  error_.message = std::move(message);
  error_.hint = std::move(hint);
  if (where != nullptr) error_.position = character_position(full_text_, at(where)->range().begin);
}

Name TreeBuilder::name_of(const antlr4::Token* token) {
  const GrammarToken* t = at(token);
  Token shifted = t->token();
  shifted.begin -= base_;
  shifted.end -= base_;
  const Range r = shifted.range();
  if (const std::string_view plain = plain_identifier(text_, shifted); !plain.empty()) return {plain, r};
  return {keep(decode_identifier(text_, shifted, t->escape()).value_or(std::string())), r};
}

std::string_view TreeBuilder::string_of(const antlr4::Token* token) {
  const GrammarToken* t = at(token);
  Token shifted = t->token();
  shifted.begin -= base_;
  shifted.end -= base_;
  if (const std::string_view plain = plain_string(text_, shifted); !plain.empty()) return plain;
  auto value = decode_string(text_, shifted, t->escape());
  if (value) return keep(*value);
  if (!failed_) {
    failed_ = true;
    error_ = value.error();
  }
  return {};
}

std::string_view TreeBuilder::operator_text(const antlr4::Token* token) {
  const std::string_view op = written(range(token));
  return op == "!=" ? std::string_view("<>") : op;
}

List<Name> TreeBuilder::names(const G::NameListContext* c) {
  if (c == nullptr) return {};
  return map(c->n, [this](auto* n) { return name(n); });
}

QualifiedName TreeBuilder::qualified(Name first, const std::vector<G::ColLabelContext*>& rest) {
  std::vector<Name> parts{first};
  for (auto* part : rest) parts.push_back(name(part));
  return {list(parts), between(first.range, parts.back().range)};
}

QualifiedName TreeBuilder::any_name(const G::AnyNameContext* c) {
  if (c == nullptr) return {};
  return qualified(name(c->n), c->attrs);
}

QualifiedName TreeBuilder::relation(const G::AnyNameContext* c) {
  QualifiedName found = any_name(c);
  if (found.parts.size() > 3) {
    std::string dotted;
    for (const Name& part : found.parts) dotted.append(dotted.empty() ? "" : ".").append(part.text);
    refuse(c->start, "improper qualified name (too many dotted names): " + dotted);
  }
  return found;
}

QualifiedName TreeBuilder::function_name(const G::AnyFuncNameContext* c) {
  return qualified(c->fn != nullptr ? name(c->fn) : name(c->n), c->attrs);
}

List<Name> TreeBuilder::operator_schema(const G::OperatorNameContext* c) {
  return map(c->schema, [this](auto* n) { return name(n); });
}

}  // namespace kintsugi::parser
