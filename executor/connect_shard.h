// Connecting to a shard: address, TLS, authentication, until ReadyForQuery. And the one message that goes
// without a login: cancel.
#pragma once

#include <memory>

#include "executor/backend.h"
#include "executor/dsn.h"
#include "wire/scram.h"

namespace kintsugi::executor {

// All that a new connection needs to know. Immutable, shared by the pools of all threads.
struct ShardLogin {
  std::string shard;  // its name
  Dsn dsn;
  std::string role;      // as whom: the DSN's user, or the client's
  std::string password;  // the DSN's, or the client's
  // Without a password: what the client's own SCRAM login has shown. Good where the shard stores the same
  // verifier.
  std::optional<wire::ScramKeys> keys;
  std::shared_ptr<const io::TlsContext> tls;  // null with sslmode disable

  // Resolves the DSN against a client's name and password, and loads the certificates it names.
  static Result<std::shared_ptr<const ShardLogin>> make(std::string shard, const Dsn& dsn,
                                                        std::string_view client_user,
                                                        std::string_view client_password,
                                                        const std::optional<wire::ScramKeys>& client_keys);
};

// KG005 with the shard's name when it cannot be had. Two errors of the server pass as they are, because waiting
// may help: 57P03, it is starting up or shutting down, and 53300, it has no connection free.
io::Task<Result<std::unique_ptr<Backend>>> connect_shard(std::shared_ptr<const ShardLogin> login,
                                                         SettingsRef startup, io::Waiter* waiter,
                                                         Deadline deadline);

// Asks the shard to cancel what the connection runs. Done when the server has closed the cancel connection:
// from then on it cannot hit a later statement.
io::Task<Status> cancel_on_shard(std::shared_ptr<const ShardLogin> login, io::HostPort peer,
                                 wire::BackendKey key, io::Waiter* waiter, Deadline deadline);

}  // namespace kintsugi::executor
