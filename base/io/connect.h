// Connecting with a deadline: a unix socket directory, a number, or a name (resolved on a thread of its own, so
// that a slow name server stops nobody else).
#pragma once

#include "base/io/stream.h"

namespace kintsugi::io {

// Tries every address of the host in turn. The stream is attached to the waiter's loop with the waiter as
// target.
Task<Status> connect(Stream* stream, HostPort to, Waiter* waiter, Deadline deadline);

}  // namespace kintsugi::io
