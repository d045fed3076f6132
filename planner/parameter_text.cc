#include "planner/parameter_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/sql_quote.h"
#include "parser/scanner.h"
#include "shardmap/key_encoding.h"
#include "shardmap/key_type.h"

namespace kintsugi::planner {
namespace {

struct BuiltIn {
  std::uint32_t oid;
  std::string_view name;
};
constexpr BuiltIn kTypes[] = {{16, "bool"},          {17, "bytea"},      {19, "name"},     {20, "int8"},
                              {21, "int2"},          {23, "int4"},       {25, "text"},     {26, "oid"},
                              {114, "json"},         {700, "float4"},    {701, "float8"},  {1042, "bpchar"},
                              {1043, "varchar"},     {1082, "date"},     {1083, "time"},   {1114, "timestamp"},
                              {1184, "timestamptz"}, {1186, "interval"}, {1266, "timetz"}, {1700, "numeric"},
                              {2950, "uuid"},        {3802, "jsonb"}};
constexpr std::uint32_t kFloat4 = 700, kFloat8 = 701, kUnknown = 705;

Error not_worked_out(std::size_t number) {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "the parameter $" + std::to_string(number) +
                     " has a type or a form in which it cannot be worked out where this statement belongs",
          .hint = "Send it as text and of a built-in type, or give the sharding key itself."};
}

template <class Float, class Bits>
std::string float_text(std::string_view bytes) {
  Bits bits = 0;
  for (const char c : bytes) bits = static_cast<Bits>(bits << 8 | static_cast<unsigned char>(c));
  const auto value = std::bit_cast<Float>(bits);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

// The text form of what came in binary; none: not read here.
std::optional<std::string> text_of(const Parameter& parameter) {
  constexpr std::uint32_t kTheSame[] = {19, 114, kUnknown, 1042};  // in both forms
  if (!parameter.binary ||
      std::find(std::begin(kTheSame), std::end(kTheSame), parameter.type) != std::end(kTheSame))
    return std::string(parameter.bytes);
  if (parameter.type == kFloat4 && parameter.bytes.size() == 4)
    return float_text<float, std::uint32_t>(parameter.bytes);
  if (parameter.type == kFloat8 && parameter.bytes.size() == 8)
    return float_text<double, std::uint64_t>(parameter.bytes);
  const auto type = shardmap::key_type_of_oid(parameter.type);
  if (!type) return std::nullopt;
  std::string key;
  if (!shardmap::append_binary(*type, parameter.type, parameter.bytes, key)) return std::nullopt;
  const auto value = shardmap::decode_bound({*type}, key);
  if (!value) return std::nullopt;
  return value->front().text;
}

Result<std::string> literal_of(std::size_t number, const Parameter& parameter) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const BuiltIn& each) { return each.oid == parameter.type; });
  const bool known = type != std::end(kTypes);
  // Not described yet: nobody runs this before it is.
  if (parameter.type == 0 && parameter.binary) return std::string("(NULL)");
  if (!known && parameter.type != 0 && parameter.type != kUnknown) return fail(not_worked_out(number));
  const std::string cast = known ? "::pg_catalog." + std::string(type->name) : std::string();
  if (parameter.null) return "(NULL" + cast + ")";
  const auto text = text_of(parameter);
  if (!text) return fail(not_worked_out(number));
  return "(" + quote_literal(*text) + cast + ")";
}

}  // namespace

Result<std::string> with_parameters(std::string_view expression, std::span<const Parameter> parameters) {
  std::string made;
  std::uint32_t at = 0;
  parser::Scanner scanner(expression);
  for (;;) {
    const parser::Token token = scanner.next();
    if (token.kind == parser::TokenKind::kEnd || token.kind == parser::TokenKind::kError) break;
    if (token.kind != parser::TokenKind::kParameter) continue;
    std::size_t number = 0;
    std::from_chars(expression.data() + token.begin + 1, expression.data() + token.end, number);
    if (number < 1 || number > parameters.size()) continue;  // PostgreSQL says so
    KG_TRY(const std::string literal, literal_of(number, parameters[number - 1]));
    made.append(expression.substr(at, token.begin - at)).append(literal);
    at = token.end;
  }
  made.append(expression.substr(at));
  return made;
}

}  // namespace kintsugi::planner
