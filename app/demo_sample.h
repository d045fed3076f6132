// The sample of the demo: a small shop platform, some tenants with users, orders and order items. The same rows
// every time, so that documents and tests can name them.
#pragma once

#include <string_view>
#include <utility>

namespace kintsugi::app {

inline constexpr int kDemoTenants = 20;

// Of `parts` parts with about as many tenants each, part `i` begins with this tenant; the first with 1.
[[nodiscard]] constexpr int demo_part_begins(int i, int parts) {
  return 1 + kDemoTenants * i / parts;
}

// The tables and their columns that say whose a row is, a table before those that refer to it.
inline constexpr std::pair<const char*, const char*> kDemoTables[] = {
    {"tenants", "id"}, {"users", "tenant_id"}, {"orders", "tenant_id"}, {"order_items", "tenant_id"}};

// One script for psql, to run in one transaction as the owner of the database.
[[nodiscard]] std::string_view demo_sample_sql();

}  // namespace kintsugi::app
