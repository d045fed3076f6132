#include "planner/make_insert.h"

#include <algorithm>

#include "parser/scanner.h"
#include "planner/assignable.h"

namespace kintsugi::planner {

InsertRows::InsertRows(const InsertTemplate& insert, const Values& values,
                       const std::vector<parser::Range>& units)
    : insert_(insert), values_(values), units_(units) {
  size_ = insert.rows.size();
  if (!insert.group) return;
  const parser::SlotGroup& group = values.normal->groups()[*insert.group];
  if (group.stride > 0)
    grouped_ = group.count / group.stride;
  else
    grouped_ = texts().size() - (insert.rows.size() - insert.group_rows);
  size_ = grouped_ + insert.rows.size() - insert.group_rows;
}

Status InsertRows::key_of(std::size_t row, const shardmap::KeyTypes& types,
                          const std::vector<Constant>& constants, std::string& key) const {
  const bool in_group = row < grouped_;
  const auto& values = insert_.rows[analysed(row)];
  for (std::size_t i = 0; i < types.size(); ++i) {
    const InsertTemplate::Value& value = values[i];
    const std::string& name = insert_.key[i];
    if (value.missing)
      return fail(sqlstate::kKeyMissing,
                  "the sharding key " + name + " is missing in this INSERT into " + insert_.display,
                  "Name the column and give it a value: it has no default.");
    KeyOutcome outcome = KeyOutcome::kUnknown;
    const std::size_t begin = key.size();
    if (value.source)
      outcome = append_source(*value.source, types[i], KeyUse::kStore, values_, constants, key,
                              in_group ? static_cast<std::uint32_t>(row) : 0);
    if (outcome == KeyOutcome::kValue && !store_as(insert_.limits[i], types[i], begin, key))
      outcome = KeyOutcome::kUnknown;
    if (const auto literal =
            value.source && outcome != KeyOutcome::kValue && !value.source->cast
                ? literal_of(*value.source, values_, in_group ? static_cast<std::uint32_t>(row) : 0)
                : std::nullopt)
      if (auto error = unassignable(*literal, types[i], name)) return fail(std::move(*error));
    switch (outcome) {
      case KeyOutcome::kValue: break;
      case KeyOutcome::kNull:
        return fail(sqlstate::kKeyMissing,
                    "the sharding key " + name + " is NULL in this INSERT into " + insert_.display,
                    "Every row of a sharded table needs its key.");
      case KeyOutcome::kUnknown:
        return fail(
            sqlstate::kNotSupported,
            "the sharding key " + name + " of table " + insert_.display + " is worked out in this INSERT",
            "Give it as a literal or a parameter of type " + std::string(shardmap::name_of(types[i])) + ".");
      case KeyOutcome::kInvalid:
      case KeyOutcome::kNoSuch:
        return fail("22P02", "invalid input for the sharding key " + name + " of type " +
                                 std::string(shardmap::name_of(types[i])));
    }
  }
  return {};
}

std::vector<parser::Range> InsertRows::texts() const {
  const std::string_view text = values_.normal->text();
  const auto& units = values_.normal->units();
  std::uint32_t begin = 0;
  if (insert_.group) {
    begin = values_.normal->groups()[*insert_.group].range.begin;
  } else {
    // Nothing of the text is left out of its normal form: its pieces are one to one.
    const auto first = std::find_if(units_.begin(), units_.end(), [&](const parser::Range& unit) {
      return unit.begin == insert_.values_range.begin;
    });
    if (units.size() != units_.size() || first == units_.end()) return {};
    begin = units[static_cast<std::size_t>(first - units_.begin())].begin;
  }
  parser::Scanner scanner(text.substr(0, units.back().end), true);
  scanner.seek(begin);
  std::vector<parser::Range> rows;
  int depth = 0;
  bool row_expected = true;
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) break;
    if (depth == 0) {
      const bool open = parser::is_symbol(text, token, "(");
      if (row_expected ? !open : !parser::is_symbol(text, token, ",")) break;
      if (open) rows.push_back({token.begin, token.end});
      row_expected = !open;
    }
    if (parser::is_symbol(text, token, "(")) ++depth;
    if (parser::is_symbol(text, token, ")") && --depth == 0) rows.back().end = token.end;
  }
  return rows;
}

}  // namespace kintsugi::planner
