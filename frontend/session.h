// One client's story, told top to bottom by one coroutine: it logs in; its messages go to a shard and the
// shard's answers come back; it leaves. The session borrows a connection from the pool for as long as its
// transaction lasts, or for as long as PostgreSQL keeps something for it there.
//
// Belongs to its worker's thread. Holds no buffer while it is idle.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admin/commands/command.h"
#include "admin/commands/command_result.h"
#include "executor/relay.h"
#include "executor/session_state.h"
#include "frontend/login.h"
#include "frontend/worker.h"

namespace kintsugi::frontend {

struct StatementEffects;

class Session {
 public:
  Session(Worker& worker, io::UniqueFd socket);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  io::Task<> run();

  // The client asked, over another connection; `on_done` when that has had its effect.
  void cancel(std::function<void()> on_done);
  void cut();  // ends the connection of a client that is still logging in
  void wake() { waiter_.notify(); }
  [[nodiscard]] const wire::BackendKey& key() const { return key_; }

 private:
  // ---- the story (session.cc) ----
  io::Task<bool> enter();
  io::Task<> pass_cancel(wire::BackendKey key);
  io::Task<> converse();
  void prepare_to_sleep();
  io::Task<> leave();
  void on_deadline();
  [[nodiscard]] Deadline next_deadline() const;
  void check_shutdown();
  [[nodiscard]] bool client_is_full() const;
  void end_with(std::string_view sqlstate, std::string message, std::string hint = {});

  // ---- bytes (session.cc) ----
  bool serve_client();
  bool serve_backend();
  std::size_t feed(std::string_view bytes);
  void stream_copy_data(std::string_view piece);
  void flush_client();
  void flush_backend();
  void client_gone();
  void backend_lost(const std::string& how);

  // ---- the connection to the shard (session_backend.cc) ----
  enum class Ready { kYes, kBlocked, kRejected };
  Ready ensure_backend();
  io::Task<> obtain_backend();
  io::Task<Status> apply_settings();
  void begin_lease();
  bool settle();
  void release_backend();
  void note_events();
  [[nodiscard]] bool must_look() const;
  io::Task<> look_at_session_state();
  void tell_parameters();
  Status still_wanted();

  // ---- Kintsugi's own statements (session_commands.cc) ----
  [[nodiscard]] admin::Actor actor() const;
  io::Task<Result<admin::CommandResult>> await_command(admin::Command command);
  io::Task<Result<std::string>> run_command(std::string text, bool describe, std::vector<std::int16_t> formats);
  bool start_commands(std::string_view text);
  io::Task<> run_commands();

  // ---- the client's messages (session_requests.cc); false: blocked, the message comes again ----
  bool on_message(const wire::Frame& frame);
  bool on_query(const wire::Frame& frame);
  bool on_parse(const wire::Frame& frame);
  bool on_bind(const wire::Frame& frame);
  bool on_describe(const wire::Frame& frame);
  bool on_execute(const wire::Frame& frame);
  bool on_close(const wire::Frame& frame);
  bool on_sync(const wire::Frame& frame);
  bool on_flush(const wire::Frame& frame);
  bool on_terminate();
  bool on_function_call();
  bool on_copy_end(const wire::Frame& frame);
  bool pass_if_leased(const wire::Frame& frame);
  bool adopt_known(const wire::ParseMessage& message);
  bool parse_named(const wire::ParseMessage& message, std::uint32_t effects);
  void parse_unnamed(const wire::Frame& frame, const wire::ParseMessage& message, std::uint32_t effects);
  executor::ClientStatementRef find_statement(std::string_view name);
  bool prepare_on_backend(const executor::ClientStatementRef& handle, bool with_sync);
  bool prepare_named(const StatementEffects& effects, bool with_sync);
  std::string with_server_names(std::string_view text, const StatementEffects& effects);
  void ensure_unnamed();
  [[nodiscard]] bool unnamed_is_uncertain() const;
  [[nodiscard]] bool is_uncertain(const executor::ClientStatementRef& handle) const;
  std::optional<Error> name_effects(StatementEffects& effects);
  void note_execution(std::uint32_t effects);
  void note_custom_settings(const StatementEffects& effects);
  bool refuse_sequence_state(std::uint32_t effects, Error* error);
  void block_until_drained();
  void expect(executor::Expected expected) { relay_.expect(std::move(expected), to_client_); }
  void reject_query(const Error& error);
  void reject_extended(const Error& error, std::string_view routine = {});
  void protocol_violation(const Error& error);
  [[nodiscard]] bool skipping() const { return local_skip_ || relay_.skipping(); }
  [[nodiscard]] std::string search_path() const;

  Worker& worker_;
  io::Waiter waiter_;
  io::Stream client_;
  executor::Outbox to_client_;
  std::string in_;  // received and not yet understood

  LoggedIn user_;
  wire::BackendKey key_;
  bool logged_in_ = false;

  executor::BackendPool* pool_ = nullptr;
  executor::PoolUse pool_use_;  // keeps it
  executor::BackendLease lease_;
  executor::Relay relay_;
  executor::SettingsRef settings_ = executor::Settings::none();  // what this client has set
  executor::SettingsRef reported_ = executor::Settings::none();  // the parameter values it was told last
  std::vector<std::string> custom_settings_;
  unsigned pins_ = 0;          // executor::PinReason
  std::uint32_t effects_ = 0;  // suspicions since the session's state was last looked at

  std::unordered_map<std::string, executor::ClientStatementRef> statements_;
  std::deque<std::string> deallocating_;  // names in the DEALLOCATEs under way, in order
  struct Unnamed {
    bool valid = false;
    std::string text, type_oids;
    std::uint32_t effects = 0;
    std::uint64_t version = 0;
    std::uint64_t batch = 0;  // how many Syncs came before its Parse
  } unnamed_;

  enum class Blocked : std::uint8_t { kNo, kOnBackend, kOnAnswers, kOnCommands } blocked_ = Blocked::kNo;
  std::string commands_text_;           // of kOnCommands
  std::optional<Error> backend_error_;  // why no connection was to be had, for the message that wanted one
  std::uint64_t copy_left_ = 0;         // of a CopyData message that goes by in pieces
  bool copy_dropped_ = false;
  std::uint64_t batch_ = 0;   // Syncs so far
  std::size_t unsynced_ = 0;  // extended messages sent since the last Sync
  bool local_skip_ = false;   // ignore everything up to the client's next Sync
  bool unfed_ = false;        // in_ may hold a whole message
  bool client_eof_ = false;
  bool ended_ = false;
  bool canceled_ = false;
  bool uses_sequence_state_ = false;  // currval, lastval: keeps its connection
  bool preparation_failed_ = false;   // a hidden Parse before a query was refused, and the client knows
  Deadline::Clock::time_point quiet_since_;
};

}  // namespace kintsugi::frontend
