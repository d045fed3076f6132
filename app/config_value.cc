#include "app/config_value.h"

#include <array>
#include <charconv>
#include <optional>
#include <regex>

#include "app/listen_address.h"
#include "base/dsn_text.h"
#include "base/suggest.h"
#include "executor/dsn.h"

namespace kintsugi::app {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t size;
};

// Largest first, for printing.
constexpr std::array<Unit, 5> kDurations = {
    {{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit, 5> kSizes = {{{"TB", std::int64_t{1} << 40},
                                         {"GB", std::int64_t{1} << 30},
                                         {"MB", std::int64_t{1} << 20},
                                         {"kB", std::int64_t{1} << 10},
                                         {"B", 1}}};

template <class T>
struct Choice {
  std::string_view name;
  T value;
};
constexpr std::array<Choice<PoolMode>, 2> kPoolModes = {
    {{"transaction", PoolMode::kTransaction}, {"session", PoolMode::kSession}}};
constexpr std::array<Choice<log::Level>, 4> kLogLevels = {{{"debug", log::Level::kDebug},
                                                           {"info", log::Level::kInfo},
                                                           {"warning", log::Level::kWarning},
                                                           {"error", log::Level::kError}}};
constexpr const auto& choices_of(PoolMode) {
  return kPoolModes;
}
constexpr const auto& choices_of(log::Level) {
  return kLogLevels;
}

template <class T>
std::vector<std::string> choice_names() {
  std::vector<std::string> names;
  for (const auto& choice : choices_of(T{})) names.emplace_back(choice.name);
  return names;
}

std::optional<std::int64_t> parse_whole(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// "10s", "10 s"; a bare 0 needs no unit.
template <std::size_t N>
std::optional<std::int64_t> parse_with_unit(std::string_view text, const std::array<Unit, N>& units) {
  std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string_view::npos) {
    return parse_whole(text) == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  auto number = parse_whole(text.substr(0, digits));
  if (!number) return std::nullopt;
  std::string_view name = text.substr(text.find_first_not_of(' ', digits));
  for (const Unit& unit : units) {
    if (!same_letters(name, unit.name)) continue;
    std::int64_t product = 0;
    if (__builtin_mul_overflow(*number, unit.size, &product)) return std::nullopt;
    return product;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string print_with_unit(std::int64_t value, const std::array<Unit, N>& units) {
  if (value == 0) return "0";
  for (const Unit& unit : units) {
    if (value % unit.size == 0) return std::to_string(value / unit.size) + std::string(unit.name);
  }
  return std::to_string(value);
}

std::string range_of(const ValueRule& rule, const std::function<std::string(std::int64_t)>& print) {
  bool bounded = rule.most != std::numeric_limits<std::int64_t>::max();
  if (!bounded) return "from " + print(rule.least);
  return "from " + print(rule.least) + " to " + print(rule.most);
}

bool is_scram_verifier(const std::string& text) {
  static const std::regex shape(
      R"(SCRAM-SHA-256\$[0-9]{1,9}:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=)");
  return std::regex_match(text, shape);
}

bool fits_text(const std::string& text, const ValueRule& rule) {
  if (text.find('\0') != std::string::npos) return false;
  if (text.empty()) return rule.may_be_empty;
  switch (rule.text) {
    case Text::kName: return text.size() <= 63;
    case Text::kAddress: return parse_listen_address(text).has_value();
    case Text::kScram: return is_scram_verifier(text);
    case Text::kStore: {
      if (text.starts_with("sqlite:")) return text.size() > std::string_view("sqlite:").size();
      return text.starts_with("postgresql://") || text.starts_with("postgres://");
    }
    case Text::kDsn: return executor::Dsn::parse(text).has_value();
    case Text::kAny:
    case Text::kPath:
    case Text::kSecret: return true;
  }
  return false;
}

std::string allowed_text(const ValueRule& rule) {
  switch (rule.text) {
    case Text::kName: return "a name of 1 to 63 bytes";
    case Text::kAddress: return "host:port, as 127.0.0.1:6432 or [::1]:6432 or localhost:0";
    case Text::kScram: return "a verifier as PostgreSQL stores it, SCRAM-SHA-256$<iterations>:<salt>$<keys>";
    case Text::kStore: return "sqlite:FILE or postgresql://user@host/database";
    case Text::kPath: return rule.may_be_empty ? "a file, or empty" : "a file";
    case Text::kDsn: return "a libpq connection string with a dbname, as host=db1 dbname=app user=app";
    case Text::kAny:
    case Text::kSecret: return rule.may_be_empty ? "any text" : "any text that is not empty";
  }
  return "";
}

template <class T>
Status store_choice(T& place, std::string_view text, const std::string& allowed) {
  for (const auto& choice : choices_of(T{})) {
    if (choice.name != text) continue;
    place = choice.value;
    return {};
  }
  return fail("F0000", allowed + did_you_mean(text, choice_names<T>()));
}

template <class T>
std::string print_choice(T value) {
  for (const auto& choice : choices_of(T{})) {
    if (choice.value == value) return toml_string(choice.name);
  }
  return toml_string("");
}

// One overload set a purpose, picked by the type that the slot points to.
struct Parse {
  const ValueRule& rule;
  std::string_view text;
  std::string allowed;

  Status operator()(std::string* place) const {
    std::string value(text);
    if (!fits_text(value, rule)) return fail("F0000", allowed);
    *place = std::move(value);
    return {};
  }
  Status operator()(bool* place) const {
    if (text != "true" && text != "false") return fail("F0000", allowed);
    *place = text == "true";
    return {};
  }
  Status operator()(int* place) const { return number(parse_whole(text), place); }
  Status operator()(std::int64_t* place) const { return number(parse_with_unit(text, kSizes), place); }
  Status operator()(milliseconds* place) const {
    std::int64_t value = 0;
    KG_CHECK(number(parse_with_unit(text, kDurations), &value));
    *place = milliseconds(value);
    return {};
  }
  Status operator()(PoolMode* place) const { return store_choice(*place, text, allowed); }
  Status operator()(log::Level* place) const { return store_choice(*place, text, allowed); }

  template <class Number>
  Status number(std::optional<std::int64_t> value, Number* place) const {
    if (!value || *value < rule.least || *value > rule.most) return fail("F0000", allowed);
    *place = static_cast<Number>(*value);
    return {};
  }
};

struct Print {
  const ValueRule& rule;

  std::string operator()(const std::string* place) const {
    if (place->empty()) return toml_string("");
    if (is_secret(rule)) return toml_string("(hidden)");
    if (rule.text == Text::kDsn || rule.text == Text::kStore) return toml_string(without_password(*place));
    return toml_string(*place);
  }
  std::string operator()(const bool* place) const { return *place ? "true" : "false"; }
  std::string operator()(const int* place) const { return std::to_string(*place); }
  std::string operator()(const std::int64_t* place) const {
    return toml_string(print_with_unit(*place, kSizes));
  }
  std::string operator()(const milliseconds* place) const {
    return toml_string(print_with_unit(place->count(), kDurations));
  }
  std::string operator()(const PoolMode* place) const { return print_choice(*place); }
  std::string operator()(const log::Level* place) const { return print_choice(*place); }
};

struct Allowed {
  const ValueRule& rule;

  std::string operator()(const std::string*) const { return allowed_text(rule); }
  std::string operator()(const bool*) const { return "true or false"; }
  std::string operator()(const int*) const {
    return "a whole number " + range_of(rule, [](std::int64_t value) { return std::to_string(value); });
  }
  std::string operator()(const std::int64_t*) const {
    return "a size in B, kB, MB, GB or TB " +
           range_of(rule, [](std::int64_t value) { return print_with_unit(value, kSizes); });
  }
  std::string operator()(const milliseconds*) const {
    return "a duration in ms, s, min, h or d " +
           range_of(rule, [](std::int64_t value) { return print_with_unit(value, kDurations); });
  }
  std::string operator()(const PoolMode*) const { return listed(choice_names<PoolMode>()); }
  std::string operator()(const log::Level*) const { return listed(choice_names<log::Level>()); }
};

}  // namespace

Status parse_value(Slot slot, const ValueRule& rule, std::string_view text) {
  return std::visit(Parse{rule, text, allowed_in(slot, rule)}, slot);
}

std::string print_value(Slot slot, const ValueRule& rule) {
  return std::visit(Print{rule}, slot);
}

std::string allowed_in(Slot slot, const ValueRule& rule) {
  return std::visit(Allowed{rule}, slot);
}

bool is_secret(const ValueRule& rule) {
  return rule.text == Text::kSecret || rule.text == Text::kScram;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < ' ' || c == 0x7f) {
      static constexpr char kHex[] = "0123456789ABCDEF";
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

}  // namespace kintsugi::app
