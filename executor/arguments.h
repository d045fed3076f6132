// The arguments of SQL's EXECUTE as PostgreSQL takes them: cast as an assignment to the types of the
// parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/backend.h"

namespace kintsugi::executor {

// Their values as text, one row. `arguments`: what stands between the parentheses, in the client's words. For a
// backend that has nothing outstanding; nothing of it stays behind. An ErrorResponse is the error returned and
// leaves the connection usable (and its transaction failed); anything else that goes wrong marks it broken.
io::Task<Result<Rows>> cast_arguments(Backend* backend, std::string arguments, std::vector<std::uint32_t> types,
                                      io::Waiter* waiter, Deadline deadline);

}  // namespace kintsugi::executor
