#include "frontend/array_nulls.h"

namespace kintsugi::frontend {

using namespace std::chrono_literals;

bool may_have_null_elements(std::string_view bytes) {
  static constexpr std::string_view kNull = "NULL";
  for (std::size_t at = bytes.find(kNull); at != std::string_view::npos; at = bytes.find(kNull, at + 1)) {
    const char before = at > 0 ? bytes[at - 1] : ' ';
    const char after = at + kNull.size() < bytes.size() ? bytes[at + kNull.size()] : ' ';
    if ((before == '{' || before == ',' || before == ';') && (after == '}' || after == ',' || after == ';'))
      return true;
  }
  return false;
}

Error no_array_nulls() {
  return {.sqlstate = std::string(sqlstate::kNotSupported),
          .message = "an array on its way from one shard to another as text while array_nulls is off",
          .detail = "A NULL in it would be read as a word.",
          .hint = "SET array_nulls = on."};
}

io::Task<Status> array_nulls_on(executor::Backend* backend, io::Waiter* waiter) {
  auto asking = executor::run_control_query(backend, "SHOW array_nulls", waiter, Deadline::in(30s));
  const auto rows = co_await std::move(asking);
  if (!rows) co_return fail(rows.error());
  if (rows->at(0).at(0) != "on") co_return fail(no_array_nulls());
  co_return Status{};
}

}  // namespace kintsugi::frontend
