// Arrays with NULLs in them that go from one shard to another as text. While array_nulls is off PostgreSQL
// reads the word NULL in them as a word.
#pragma once

#include <string_view>

#include "base/io/task.h"
#include "executor/backend.h"

namespace kintsugi::frontend {

// Whether some value in `bytes` may be the text of such an array; now and then true of what is none.
[[nodiscard]] bool may_have_null_elements(std::string_view bytes);

[[nodiscard]] Error no_array_nulls();

// That error when array_nulls is off there. For a connection that is ready; any thread's, with its waiter.
io::Task<Status> array_nulls_on(executor::Backend* backend, io::Waiter* waiter);

}  // namespace kintsugi::frontend
