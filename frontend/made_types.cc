#include "frontend/made_types.h"

#include <algorithm>
#include <charconv>

#include "base/sql_quote.h"
#include "parser/scanner.h"

namespace kintsugi::frontend {
namespace {

constexpr std::uint32_t kText = 25;

class Spelling {
 public:
  Spelling(std::vector<std::string> names, bool standard_strings)
      : names_(std::move(names)), standard_strings_(standard_strings) {}

  void operator()(std::string& text) const {
    std::string made;
    std::size_t copied = 0;
    parser::Scanner scanner(text, standard_strings_);
    for (;;) {
      const parser::Token token = scanner.next();
      if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) break;
      if (token.kind != parser::TokenKind::kParameter) continue;
      const std::string_view word = token.of(text);
      std::size_t number = 0;
      std::from_chars(word.data() + 1, word.data() + word.size(), number);
      if (number == 0 || number > names_.size() || names_[number - 1].empty()) continue;
      made.append(text, copied, token.begin - copied);
      made.append("(").append(word).append("::").append(names_[number - 1]).append(")");
      copied = token.end;
    }
    if (copied == 0) return;
    text = made.append(text, copied);
  }

  void operator()(std::vector<planner::ShardTask>& tasks) const {
    for (planner::ShardTask& task : tasks) (*this)(task.text);
  }

 private:
  std::vector<std::string> names_;  // of each parameter; "": it stays as it is
  bool standard_strings_;
};

// A part of a text may end within a string: where these are cut, none does.
void spell(const Spelling& spelling, planner::Plan* plan) {
  if (auto* fan_out = std::get_if<planner::FanOut>(plan)) {
    spelling(fan_out->tasks);
  } else if (auto* gather = std::get_if<planner::Gather>(plan)) {
    for (planner::GatheredRelation& relation : gather->relations) spelling(relation.tasks);
    spelling(gather->text);
  } else if (auto* pour = std::get_if<planner::Pour>(plan)) {
    spelling(pour->source);
    spelling(pour->head);
    spelling(pour->tail);
  } else if (auto* first = std::get_if<planner::ReadFirst>(plan)) {
    for (planner::ReadFirst::Read& read : first->reads) spelling(read.query);
    for (std::string& part : first->parts) spelling(part);
  } else if (auto* copy = std::get_if<planner::CopyOut>(plan)) {
    spelling(copy->tasks);
  } else if (auto* route = std::get_if<planner::Route>(plan)) {
    spelling(route->text);
  }
}

}  // namespace

Status spell_made_types(planner::Plan* plan, Run* run, const planner::Catalog& catalog, bool standard_strings) {
  if (std::ranges::all_of(run->types, is_built_in)) return {};
  std::vector<std::string> names(run->types.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (is_built_in(run->types[i])) continue;
    const planner::Type* type = catalog.type(run->types[i]);
    const bool binary =
        i < run->bind.values.size() && run->bind.values[i].binary && !run->bind.values[i].is_null;
    // The binary form of an enum's value is its text, and of others it is not.
    if (type == nullptr || (binary && type->kind != 'e')) {
      return fail(
          sqlstate::kNotSupported,
          "parameter $" + std::to_string(i + 1) + " of a statement over several shards, " +
              (type == nullptr ? "whose type is not known" : "of the type " + type->name + ", in binary"),
          "Send its value as text, or as a built-in type that the statement casts.");
    }
    names[i] = quote_identifier(type->schema) + "." + quote_identifier(type->name);
    run->types[i] = kText;
  }
  const Spelling spelling(std::move(names), standard_strings);
  spelling(run->text);
  spell(spelling, plan);
  return {};
}

}  // namespace kintsugi::frontend
