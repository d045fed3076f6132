// What a PostgreSQL session holds besides its transaction, read back from PostgreSQL itself: it knows exactly
// which settings are set and what keeps a client tied to this connection, whatever statement, function or
// rollback made it so. Here is the SQL that asks, and the SQL that makes one session like another.
#pragma once

#include <string>
#include <vector>

#include "executor/backend.h"

namespace kintsugi::executor {

// What ties a session to its connection.
enum PinReason : unsigned {
  kPinListen = 1,      // LISTEN
  kPinCursor = 2,      // a cursor WITH HOLD
  kPinPrepared = 4,    // a statement made by SQL PREPARE
  kPinAdvisory = 8,    // a session's advisory lock
  kPinTemporary = 16,  // temporary tables, views, functions, types
  kPinOther = 32,      // state that cannot be asked for: LOAD, setseed, sequences' currval
  kPinMode = 64,       // pool.mode = session
  kPinUnknown = 128,   // the state could not be read
};

struct SessionState {
  SettingsRef settings = Settings::none();
  unsigned pins = 0;
};

// `custom_settings`: names with a dot that the session may have set; PostgreSQL does not list those.
std::string session_state_sql(std::string_view login_role, const std::vector<std::string>& custom_settings);
SessionState read_session_state(const Rows& rows);

// Asks for the names with a dot that the functions of the database set, as far as their bodies spell them out.
std::string function_settings_sql();

// Turns a session with the settings `from` into one with `to`. Empty when they are the same.
std::string settings_change_sql(const Settings& from, const Settings& to);

}  // namespace kintsugi::executor
