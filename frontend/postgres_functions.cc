#include "frontend/postgres_functions.h"

#include <algorithm>
#include <iterator>

namespace kintsugi::frontend {
namespace {

constexpr std::string_view kFunctions[] = {
#include "frontend/postgres_functions.def"
};
static_assert(std::ranges::is_sorted(kFunctions));

}  // namespace

bool is_postgres_function(std::string_view name) {
  return std::binary_search(std::begin(kFunctions), std::end(kFunctions), name);
}

}  // namespace kintsugi::frontend
