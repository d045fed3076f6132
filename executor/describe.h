// Asks a shard what a statement's parameters and columns are, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/backend.h"

namespace kintsugi::executor {

struct StatementDescription {
  std::vector<std::uint32_t> parameter_types;
  std::string row_description;  // the body of RowDescription; empty: no rows
};

// For a backend that has nothing outstanding. Uses its unnamed statement. An ErrorResponse is the error
// returned and leaves the connection usable (and its transaction failed); anything else that goes wrong marks
// it broken. `type_oids` as in Parse, raw.
io::Task<Result<StatementDescription>> describe_on(Backend* backend, std::string text, std::string type_oids,
                                                   io::Waiter* waiter, Deadline deadline);

// The same of messages that end with a Sync: sends them, and reads what a Describe among them is told.
io::Task<Result<StatementDescription>> exchange_extended(Backend* backend, std::string request,
                                                         io::Waiter* waiter, Deadline deadline);

}  // namespace kintsugi::executor
