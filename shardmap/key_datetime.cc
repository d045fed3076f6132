#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "shardmap/key_payload.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::int64_t kMicrosecondsADay = 86400000000;
constexpr std::int64_t kTimestampMin = -211813488000000000;
constexpr std::int64_t kTimestampEnd = 9223371331200000000;
constexpr std::int64_t kDateMin = -2451545;                // 4714-11-24 BC
constexpr std::int64_t kDateEnd = 2147483494LL - 2451545;  // the day after 5874897-12-31
constexpr std::int64_t kDaysFrom1970To2000 = 10957;

std::int64_t days_of(std::int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<std::int64_t>(day_of_era) - 719468 - kDaysFrom1970To2000;
}

struct Civil {
  std::int64_t year;  // 0 is 1 BC
  unsigned month, day;
};

Civil civil_of(std::int64_t days) {
  days += 719468 + kDaysFrom1970To2000;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted = (5 * day_of_year + 2) / 153;
  const unsigned month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2), month,
          day_of_year - (153 * shifted + 2) / 5 + 1};
}

unsigned days_in_month(std::int64_t year, unsigned month) {
  constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

// Reads left to right; every `take` moves on only when it succeeds.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool take(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void skip_spaces() {
    while (take(' ')) {
    }
  }
  // A number of `least` to `most` decimals.
  std::optional<std::int64_t> number(std::size_t least, std::size_t most) {
    std::size_t size = 0;
    while (size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9') ++size;
    if (size < least || size > most) return std::nullopt;
    std::int64_t value = 0;
    std::from_chars(rest_.data(), rest_.data() + size, value);
    rest_.remove_prefix(size);
    return value;
  }
  std::string_view decimals() {
    std::size_t size = 0;
    while (size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9') ++size;
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool take_era() {
    if (rest_.size() < 2 || (rest_[0] | 32) != 'b' || (rest_[1] | 32) != 'c') return false;
    rest_.remove_prefix(2);
    return true;
  }

 private:
  std::string_view rest_;
};

struct Fields {
  std::int64_t year = 0;
  unsigned month = 0, day = 0;
  std::int64_t microseconds = 0;  // of the day; may be a whole day or a little more
  std::optional<std::int64_t> offset_s;
};

bool read_date(Scanner& scanner, Fields& fields) {
  const auto year = scanner.number(4, 7);
  if (!year || !scanner.take('-')) return false;
  const auto month = scanner.number(1, 2);
  if (!month || !scanner.take('-')) return false;
  const auto day = scanner.number(1, 2);
  if (!day) return false;
  fields.year = *year;
  fields.month = static_cast<unsigned>(*month);
  fields.day = static_cast<unsigned>(*day);
  return true;
}

bool read_time(Scanner& scanner, Fields& fields) {
  const auto hour = scanner.number(1, 2);
  if (!hour || !scanner.take(':')) return false;
  const auto minute = scanner.number(2, 2);
  if (!minute) return false;
  std::int64_t second = 0;
  std::int64_t fraction = 0;
  if (scanner.take(':')) {
    const auto read = scanner.number(2, 2);
    if (!read) return false;
    second = *read;
    if (scanner.take('.')) {
      // PostgreSQL rounds this very way, through a double.
      const std::string decimals = "0." + std::string(scanner.decimals());
      fraction = static_cast<std::int64_t>(std::rint(std::strtod(decimals.c_str(), nullptr) * 1000000));
    }
  }
  if (*minute > 59 || second > 60) return false;
  if (*hour > 24 || (*hour == 24 && (*minute > 0 || second > 0 || fraction > 0))) return false;
  fields.microseconds = ((*hour * 60 + *minute) * 60 + second) * 1000000 + fraction;
  return true;
}

bool read_offset(Scanner& scanner, Fields& fields) {
  if (scanner.take('Z') || scanner.take('z')) {
    fields.offset_s = 0;
    return true;
  }
  const bool east = scanner.peek() == '+';
  if (!east && scanner.peek() != '-') return true;
  scanner.take(scanner.peek());
  auto hours = scanner.number(1, 2);
  std::optional<std::int64_t> minutes = 0;
  std::optional<std::int64_t> seconds = 0;
  if (!hours) {
    const auto both = scanner.number(4, 4);
    if (!both) return false;
    hours = *both / 100;
    minutes = *both % 100;
  } else if (scanner.take(':')) {
    minutes = scanner.number(2, 2);
    if (minutes && scanner.take(':')) seconds = scanner.number(2, 2);
  }
  if (!minutes || !seconds || *hours > 15 || *minutes > 59 || *seconds > 59) return false;
  const std::int64_t offset = (*hours * 60 + *minutes) * 60 + *seconds;
  fields.offset_s = east ? offset : -offset;
  return true;
}

tl::unexpected<Error> unreadable(std::string_view type, std::string_view text) {
  return fail(
      "22007", "\"" + std::string(text) + "\" is not a " + std::string(type) + " in ISO form",
      "A sharding key is read as YYYY-MM-DD, with HH:MM:SS.ffffff and an offset where its type has them.");
}
tl::unexpected<Error> out_of_range(std::string_view type, std::string_view text) {
  return fail("22008", std::string(type) + " out of range: \"" + std::string(text) + "\"");
}

bool finish_era(Scanner& scanner, Fields& fields) {
  scanner.skip_spaces();
  const bool before = scanner.take_era();
  if (!scanner.at_end() || fields.year == 0) return false;
  if (before) fields.year = 1 - fields.year;
  return true;
}

bool valid_day(const Fields& fields) {
  return fields.month >= 1 && fields.month <= 12 && fields.day >= 1 &&
         fields.day <= days_in_month(fields.year, fields.month);
}

std::string padded(std::int64_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

std::string civil_text(const Civil& civil) {
  const std::int64_t year = civil.year > 0 ? civil.year : 1 - civil.year;
  return padded(year, 4) + "-" + padded(civil.month, 2) + "-" + padded(civil.day, 2);
}

}  // namespace

bool date_in_range(std::int32_t days) {
  return days == std::numeric_limits<std::int32_t>::min() || days == std::numeric_limits<std::int32_t>::max() ||
         (days >= kDateMin && days < kDateEnd);
}

bool timestamp_in_range(std::int64_t microseconds) {
  return microseconds == std::numeric_limits<std::int64_t>::min() ||
         microseconds == std::numeric_limits<std::int64_t>::max() ||
         (microseconds >= kTimestampMin && microseconds < kTimestampEnd);
}

Result<std::int32_t> date_from_text(std::string_view whole) {
  const std::string_view text = trim_spaces(whole);
  if (text == "infinity") return std::numeric_limits<std::int32_t>::max();
  if (text == "-infinity") return std::numeric_limits<std::int32_t>::min();
  Scanner scanner(text);
  Fields fields;
  if (!read_date(scanner, fields) || !finish_era(scanner, fields)) return unreadable("date", whole);
  if (!valid_day(fields)) return out_of_range("date", whole);
  const std::int64_t days = days_of(fields.year, fields.month, fields.day);
  if (days < kDateMin || days >= kDateEnd) return out_of_range("date", whole);
  return static_cast<std::int32_t>(days);
}

Result<std::int64_t> timestamp_from_text(std::string_view whole, bool with_zone) {
  const std::string_view type = with_zone ? "timestamp with time zone" : "timestamp";
  const std::string_view text = trim_spaces(whole);
  if (text == "infinity") return std::numeric_limits<std::int64_t>::max();
  if (text == "-infinity") return std::numeric_limits<std::int64_t>::min();
  Scanner scanner(text);
  Fields fields;
  if (!read_date(scanner, fields)) return unreadable(type, whole);
  if (scanner.take('T') || scanner.take('t') || (scanner.peek() == ' ')) {
    scanner.skip_spaces();
    if (scanner.peek() >= '0' && scanner.peek() <= '9') {
      if (!read_time(scanner, fields)) return unreadable(type, whole);
      scanner.skip_spaces();
      if (!read_offset(scanner, fields)) return unreadable(type, whole);
    }
  }
  if (!finish_era(scanner, fields)) return unreadable(type, whole);
  if (!valid_day(fields)) return out_of_range(type, whole);
  if (with_zone && !fields.offset_s) {
    return fail(sqlstate::kNotSupported,
                "\"" + std::string(whole) + "\" means another moment in another session's time zone",
                "Write the offset: 2024-01-31 12:00:00+00.");
  }
  const std::int64_t days = days_of(fields.year, fields.month, fields.day);
  std::int64_t value = 0;
  const std::int64_t shift = with_zone ? *fields.offset_s * 1000000 : 0;
  if (__builtin_mul_overflow(days, kMicrosecondsADay, &value) ||
      __builtin_add_overflow(value, fields.microseconds - shift, &value) || value < kTimestampMin ||
      value >= kTimestampEnd) {
    return out_of_range(type, whole);
  }
  return value;
}

std::string date_to_text(std::int32_t days) {
  if (days == std::numeric_limits<std::int32_t>::max()) return "infinity";
  if (days == std::numeric_limits<std::int32_t>::min()) return "-infinity";
  const Civil civil = civil_of(days);
  return civil_text(civil) + (civil.year > 0 ? "" : " BC");
}

std::string timestamp_to_text(std::int64_t value, bool with_zone) {
  if (value == std::numeric_limits<std::int64_t>::max()) return "infinity";
  if (value == std::numeric_limits<std::int64_t>::min()) return "-infinity";
  std::int64_t days = value / kMicrosecondsADay;
  std::int64_t rest = value % kMicrosecondsADay;
  if (rest < 0) {
    rest += kMicrosecondsADay;
    --days;
  }
  const Civil civil = civil_of(days);
  const std::int64_t second = rest / 1000000;
  std::string text = civil_text(civil) + " " + padded(second / 3600, 2) + ":" + padded(second / 60 % 60, 2) +
                     ":" + padded(second % 60, 2);
  if (rest % 1000000 != 0) {
    text += "." + padded(rest % 1000000, 6);
    while (text.back() == '0') text.pop_back();
  }
  if (with_zone) text += "+00";
  return text + (civil.year > 0 ? "" : " BC");
}

}  // namespace kintsugi::shardmap
