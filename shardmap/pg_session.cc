#include "shardmap/pg_session.h"

#include <libpq-fe.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <pqxx/pqxx>
#include <thread>

namespace kintsugi::shardmap {
namespace {

constexpr std::chrono::seconds kConnectTimeoutMin{2};  // libpq's own least

// Ends a call that outlives its deadline by shutting the socket down: libpqxx has no deadline of its own, and a
// frozen server would hold its caller for ever.
class SocketWatch {
 public:
  SocketWatch() : thread_([this] { watch(); }) {}
  ~SocketWatch() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

  void arm(int socket, Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      socket_ = deadline.is_never() ? -1 : socket;
      deadline_ = deadline;
      fired_ = false;
    }
    changed_.notify_one();
  }
  // Whether it had to end the call.
  bool disarm() {
    const std::lock_guard lock(mutex_);
    socket_ = -1;
    return fired_;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      if (socket_ < 0) {
        changed_.wait(lock);
      } else if (deadline_.passed()) {
        shutdown(socket_, SHUT_RDWR);
        socket_ = -1;
        fired_ = true;
      } else {
        changed_.wait_until(lock, deadline_.time());
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int socket_ = -1;
  Deadline deadline_ = Deadline::never();
  bool fired_ = false;
  bool stop_ = false;
  std::thread thread_;
};

Error lost(const std::string& what) {
  return {.sqlstate = std::string(sqlstate::kConnectionFailure), .message = what};
}

// "ERROR:  relation ..." to "relation ...", first line.
std::string first_line(std::string text) {
  for (const std::string_view prefix : {"ERROR:  ", "FATAL:  "}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  return text.substr(0, text.find('\n'));
}

std::string_view state_of(const pqxx::transaction_rollback& problem) {
  if (dynamic_cast<const pqxx::serialization_failure*>(&problem) != nullptr) return "40001";
  if (dynamic_cast<const pqxx::deadlock_detected*>(&problem) != nullptr) return "40P01";
  if (dynamic_cast<const pqxx::statement_completion_unknown*>(&problem) != nullptr) return "40003";
  return "40000";
}

std::string quoted_option(const std::string& value) {
  std::string out = "'";
  for (char c : value) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// The connection string with what we add; URIs and key words alike.
Result<std::string> options_of(const std::string& dsn, bool primary, Deadline deadline) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(dsn.c_str(), &message), PQconninfoFree);
  if (!parsed) {
    PQfreemem(message);  // it may quote the string, with a password in it
    return fail(sqlstate::kInvalidParameter, "a connection string cannot be read",
                "It is host=... dbname=... or postgresql://user@host/database.");
  }
  std::string out;
  bool several = false;
  bool attributes = false;
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string keyword = option->keyword;
    if (keyword == "connect_timeout") continue;
    if (keyword == "target_session_attrs") {
      if (!primary) continue;
      attributes = true;
    }
    several |= keyword == "host" && std::strchr(option->val, ',') != nullptr;
    out += keyword + "=" + quoted_option(option->val) + " ";
  }
  if (primary && several && !attributes) out += "target_session_attrs=read-write ";
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(deadline.time() - Deadline::Clock::now());
  const auto timeout = deadline.is_never() ? std::chrono::seconds(10) : std::max(kConnectTimeoutMin, left);
  return out + "connect_timeout=" + std::to_string(timeout.count()) + " fallback_application_name=kintsugi";
}

// What a database or a role has set for its application is not meant for us: answers are read in one form, keys
// go as UTF-8, deadlines are our own, and what was told as done is on the disk. What is asked of the catalogue
// looks dear to the planner, and would be compiled for longer than it runs.
constexpr const char* kOwnSettings =
    "SET client_encoding = 'UTF8'; SET standard_conforming_strings = on; SET bytea_output = 'hex'; "
    "SET quote_all_identifiers = off; SET default_transaction_isolation = 'read committed'; "
    "SET default_transaction_deferrable = off; SET statement_timeout = 0; SET lock_timeout = 0; "
    "SET idle_session_timeout = 0; SET jit = off; SELECT set_config('synchronous_commit', 'on', false) WHERE "
    "current_setting('synchronous_commit') = 'off'";

}  // namespace

struct PgSession::Connection {
  explicit Connection(const std::string& options) : pg(options) {
    // Without this, libpqxx 6 makes a lost connection anew in silence, without our settings or our transaction.
    // The next version of it never does that, which is why the call is marked as deprecated.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    pg.inhibit_reactivation(true);
#pragma GCC diagnostic pop
  }
  pqxx::connection pg;
  SocketWatch watch;
  bool good = true;
  bool writable = true;
  std::string name;

  // Runs `call` under the deadline and makes values of its exceptions.
  template <class Call>
  auto guarded(Deadline deadline, Call call) -> Result<decltype(call())> {
    auto done = tried(deadline, std::move(call));
    if (!done && !name.empty()) done.error().message = name + ": " + done.error().message;
    return done;
  }
  template <class Call>
  auto tried(Deadline deadline, Call call) -> Result<decltype(call())> {
    if (!good) return fail(lost("the connection is lost"));
    watch.arm(pg.sock(), deadline);
    try {
      if constexpr (std::is_void_v<decltype(call())>) {
        call();
        if (watch.disarm()) good = false;
        return {};
      } else {
        auto value = call();
        if (watch.disarm()) good = false;
        return value;
      }
    } catch (const pqxx::broken_connection& problem) {
      good = false;
      const bool late = watch.disarm();
      return fail(lost(late ? "the server did not answer in time" : "the connection was lost"));
    } catch (const pqxx::sql_error& problem) {
      if (watch.disarm()) good = false;
      if (!pg.is_open() || problem.sqlstate().empty() || problem.sqlstate().starts_with("57P0")) good = false;
      if (!good) return fail(lost("the connection was lost: " + first_line(problem.what())));
      return fail(problem.sqlstate(), first_line(problem.what()));
    } catch (const pqxx::transaction_rollback& problem) {
      // Class 40 is no sql_error to libpqxx, and its number is in the kind of the exception alone.
      if (watch.disarm() || !pg.is_open()) good = false;
      if (!good) return fail(lost("the connection was lost: " + first_line(problem.what())));
      return fail(state_of(problem), first_line(problem.what()));
    } catch (const std::exception& problem) {
      good = false;
      watch.disarm();
      return fail(lost("the connection failed: " + first_line(problem.what())));
    }
  }
};

PgSession::PgSession(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
PgSession::~PgSession() = default;

Result<std::unique_ptr<PgSession>> PgSession::connect(const std::string& dsn, bool primary, Deadline deadline) {
  KG_TRY(const std::string options, options_of(dsn, primary, deadline));
  try {
    std::unique_ptr<PgSession> session(new PgSession(std::make_unique<Connection>(options)));
    KG_CHECK(session->script(kOwnSettings, deadline));
    KG_TRY(const auto rows,
           session->query("SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery()",
                          {}, deadline));
    session->connection_->writable = rows.at(0).at(0) == "t";
    return session;
  } catch (const std::exception& problem) {
    return fail(lost("cannot connect: " + first_line(problem.what())));
  }
}

void PgSession::call_it(std::string name) {
  connection_->name = std::move(name);
}

bool PgSession::good() const {
  return connection_->good;
}
bool PgSession::writable() const {
  return connection_->writable;
}

Result<std::vector<PgRow>> PgSession::query(const std::string& sql, const std::vector<SqlValue>& values,
                                            Deadline deadline) {
  return connection_->guarded(deadline, [&] {
    pqxx::nontransaction work(connection_->pg);
    pqxx::result result;
    if (values.empty()) {
      result = work.exec(sql);
    } else {
      std::vector<std::string> parameters;
      parameters.reserve(values.size());
      for (const SqlValue& value : values) {
        parameters.push_back(value.kind == SqlValue::Kind::kBytes ? bytea_text(value.value) : value.value);
      }
      result = work.exec_params(sql, pqxx::prepare::make_dynamic_params(parameters));
    }
    std::vector<PgRow> rows;
    rows.reserve(result.size());
    for (const auto& row : result) {
      PgRow& out = rows.emplace_back();
      for (const auto& field : row) {
        if (field.is_null()) {
          out.emplace_back();
        } else {
          out.emplace_back(std::string(field.c_str(), field.size()));
        }
      }
    }
    return rows;
  });
}

Status PgSession::run(const std::string& sql, const std::vector<SqlValue>& values, Deadline deadline) {
  KG_CHECK(query(sql, values, deadline));
  return {};
}

Status PgSession::script(std::string_view sql, Deadline deadline) {
  return run(std::string(sql), {}, deadline);
}

Status PgSession::transaction(const std::function<Status()>& work, Deadline deadline, bool* in_doubt) {
  KG_CHECK(run("BEGIN", {}, deadline));
  Status done = work();
  if (done) {
    done = run("COMMIT", {}, deadline);
    if (!done && !good() && in_doubt != nullptr) *in_doubt = true;
  }
  if (!done && good()) (void)run("ROLLBACK", {}, deadline);
  return done;
}

Result<bool> PgSession::wait_notification(Deadline deadline) {
  const auto left = deadline.time() - Deadline::Clock::now();
  const auto microseconds =
      std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(left).count());
  return connection_->guarded(Deadline::never(), [&] {
    return connection_->pg.await_notification(microseconds / 1000000, microseconds % 1000000) > 0;
  });
}

std::string bytea_text(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\\x";
  for (unsigned char c : bytes) {
    out += kHex[c >> 4];
    out += kHex[c & 15];
  }
  return out;
}

std::string bytes_of_bytea(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
    out += static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1]));
  }
  return out;
}

Status migrate_schema(PgSession& session, const std::string& schema,
                      const std::vector<std::string_view>& scripts, const std::string& what,
                      Deadline deadline) {
  return session.transaction(
      [&]() -> Status {
        KG_CHECK(session.run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
                             {SqlValue::text("kintsugi schema " + schema)}, deadline));
        KG_CHECK(session.run("SET LOCAL client_min_messages = warning", {}, deadline));
        KG_TRY(const auto there, session.query("SELECT to_regclass($1) IS NOT NULL",
                                               {SqlValue::text(schema + ".schema_version")}, deadline));
        std::size_t version = 0;
        if (there.at(0).at(0) == "t") {
          KG_TRY(const auto rows,
                 session.query("SELECT max(version) FROM " + schema + ".schema_version", {}, deadline));
          version = std::stoul(rows.at(0).at(0).value_or("0"));
        } else {
          KG_CHECK(session.script(
              "CREATE SCHEMA IF NOT EXISTS " + schema + "; CREATE TABLE " + schema +
                  ".schema_version (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())",
              deadline));
        }
        if (version > scripts.size()) {
          return fail(sqlstate::kNotSupported,
                      what + " has version " + std::to_string(version) +
                          ", this program knows versions up to " + std::to_string(scripts.size()),
                      "Run the newer program.");
        }
        for (; version < scripts.size(); ++version) {
          KG_CHECK(session.run("SET LOCAL search_path = " + schema, {}, deadline));
          KG_CHECK(session.script(scripts[version], deadline));
          KG_CHECK(session.run("INSERT INTO " + schema + ".schema_version (version) VALUES ($1::text::int)",
                               {SqlValue::integer(version + 1)}, deadline));
        }
        return {};
      },
      deadline);
}

}  // namespace kintsugi::shardmap
