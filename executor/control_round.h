// A small query of our own to several shards at once: all are sent before any answer is awaited.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/io/task.h"
#include "executor/backend.h"

namespace kintsugi::executor {

struct ControlOrder {
  Backend* backend = nullptr;
  std::string sql;
};

struct ControlAnswer {
  Result<Rows> rows = Rows{};
  std::string tag;     // of the last command
  std::string error;   // a whole ErrorResponse with "shard NAME" in its context, when `rows` is an error
  std::string asides;  // notices and notifications, whole messages for the client
};

// The backends have nothing outstanding, each comes once, and the waiter becomes their streams' target. One
// answer an order, in their order. A backend that is lost is marked broken; the others are as usable as before.
io::Task<std::vector<ControlAnswer>> run_on_all(std::vector<ControlOrder> orders, io::Waiter* waiter,
                                                Deadline deadline);

// Everything that is kept for the backend goes out. False when it is lost: then it is marked broken.
io::Task<bool> flush_out(Backend* backend, io::Waiter* waiter, Deadline deadline);

// Whether an ErrorResponse (or no message at all) stands among the whole messages of `bytes`.
[[nodiscard]] bool holds_an_error(std::string_view bytes);

}  // namespace kintsugi::executor
