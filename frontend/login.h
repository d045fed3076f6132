// From the first byte of a connection to a user who has proved who they are: TLS, protocol version, SCRAM. One
// coroutine under one deadline; knows nothing of shards.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/io/stream.h"
#include "executor/settings.h"
#include "frontend/users.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {

struct Shared;

struct LoggedIn {
  std::string user;
  std::string password;                 // for shards whose DSN names no user; may be empty
  std::optional<wire::ScramKeys> keys;  // the same, when only the verifier is configured
  bool admin = false;
  std::string application_name;
  bool has_application_name = false;
  std::vector<executor::Settings::Entry> startup;  // the client's other run-time parameters
};

struct LoginOutcome {
  enum Kind { kUser, kCancel, kRefused, kGone } kind = kGone;
  LoggedIn user;
  wire::CancelRequest cancel;
};

// `input` receives what the client sent after its last login message. Errors have been sent to the client.
io::Task<LoginOutcome> log_in(Shared* shared, io::Stream* client, std::string* input, io::Waiter* waiter,
                              Deadline deadline);

}  // namespace kintsugi::frontend
