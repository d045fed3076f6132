// COPY TO STDOUT from several shards: their data one after the other as they come, with one header and one end.
// Reads under back-pressure as a Fan does. CommandComplete and errors are left to the caller, in the step.
#pragma once

#include "executor/fan.h"

namespace kintsugi::executor {

struct CopyOutRequest {
  std::vector<FanBranch> branches;
  bool header = false, binary = false;  // as in the plan
  std::optional<FanLook> look;          // never in steps: COPY takes its snapshot when it runs
  Outbox* client = nullptr;
  io::Stream* client_stream = nullptr;
  io::Waiter* waiter = nullptr;
  Deadline deadline = Deadline::never();
  std::function<Status()> still_wanted;  // as in FanRequest
  std::function<void(Backend&)> cancel;  // as in FanRequest
  std::uint64_t max_message = std::uint64_t{256} << 20;
};

// CopyOutResponse, CopyData and CopyDone to the client. Afterwards every backend is ready, or broken.
io::Task<FanStep> copy_out(CopyOutRequest request);

}  // namespace kintsugi::executor
