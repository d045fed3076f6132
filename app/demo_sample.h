// The sample of the demo: a small shop platform, some tenants with users, orders and order items. The same rows
// every time, so that documents and tests can name them.
#pragma once

#include <string_view>

namespace kintsugi::app {

// One script for psql, to run in one transaction as the owner of the database.
[[nodiscard]] std::string_view demo_sample_sql();

}  // namespace kintsugi::app
