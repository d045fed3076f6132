// One client's story, told top to bottom by one coroutine: it logs in; its messages go to a shard and the
// shard's answers come back; it leaves. The session borrows a connection from the pool for as long as its
// transaction lasts, or for as long as PostgreSQL keeps something for it there.
//
// Belongs to its worker's thread. Holds no buffer while it is idle.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "admin/commands/command.h"
#include "admin/commands/command_queue.h"
#include "admin/commands/command_result.h"
#include "executor/array_parameters.h"
#include "executor/copy_in.h"
#include "executor/copy_out.h"
#include "executor/fan.h"
#include "executor/gather.h"
#include "executor/moments.h"
#include "executor/relay.h"
#include "executor/session_state.h"
#include "frontend/load_counter.h"
#include "frontend/login.h"
#include "frontend/session_state.h"
#include "frontend/statement_book.h"
#include "frontend/worker.h"
#include "planner/tenant_guard.h"

namespace kintsugi::frontend {

struct StatementEffects;

// What is known of a simple query that goes to a shard as it came.
struct Passed {
  const KnownStatement* known = nullptr;
  std::uint32_t effects = 0;  // beside those that the text says
  bool again = false;         // when the fence of a move refuses it, it may be run again
  bool writes = true;
  bool reads = false;
};

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
  // The transaction over several shards of which a statement has been waiting for a while.
  [[nodiscard]] std::optional<executor::HeldUp> held_up() const;
  void break_off(std::int64_t since);  // that one, for a deadlock
  void wake() { waiter_.notify(); }
  void routing_changed(const shardmap::MapPtr& before);  // the worker has another map or catalogue
  // The epoch of the map that its running statement was planned on; 0: none runs.
  [[nodiscard]] std::uint64_t planned_epoch() const { return planned_epoch_; }
  [[nodiscard]] const wire::BackendKey& key() const { return key_; }

 private:
  // ---- the story (session.cc) ----
  io::Task<bool> enter();
  io::Task<Status> learn_greeting();
  io::Task<> pass_cancel(wire::BackendKey key);
  io::Task<> converse();
  void prepare_to_sleep();
  io::Task<> leave();
  void on_deadline();
  [[nodiscard]] Deadline next_deadline() const;
  void check_shutdown();
  [[nodiscard]] bool client_is_full() const;
  void end_with(std::string_view sqlstate, std::string message, std::string hint = {});

  // ---- the tenant guard (session_guard.cc) ----
  Status begin_guard();
  [[nodiscard]] static Error not_routed();
  const planner::TenantGuard& guard();
  Status set_tenant(const std::string& value);
  StatementEnd run_tenant(const KnownStatement& known, bool describe);
  static void describe_tenant(const KnownStatement& known, std::string& out);
  std::optional<Error> guard_misreads();
  std::optional<Error> guard_refuses(const KnownStatement& known);
  std::optional<Error> guard_refuses_setting(const parser::Statement& statement);
  void note_guard_reset(const KnownStatement& known);
  [[nodiscard]] static bool is_blank(std::string_view text);

  // ---- how long statements take (session_measure.cc) ----
  void measure_route(const KnownRef& known, const planner::Route& route);
  void measure_plan(const KnownRef& known, const planner::Plan& plan);
  void statement_ended();
  void note_slow(std::uint64_t us);

  // ---- bytes (session.cc) ----
  bool serve_client();
  bool serve_backend();
  std::size_t feed(std::string_view bytes);
  void stream_copy_data(std::string_view piece);
  void flush_client();
  void flush_backend();
  void client_gone();
  void backend_lost(const std::string& how);

  // ---- the connection in use, among those held (session_places.cc) ----
  enum class Ready { kYes, kBlocked, kRejected };
  Ready ensure_backend(ShardId where);
  Ready ensure_begun();
  bool leave_place();
  void put_away();
  bool take_up(ShardId shard);
  bool take_back(ShardId shard);
  io::Task<Status> catch_up(Place* place);
  void release_places();
  Result<executor::BackendPool*> pool_of(ShardId shard);
  void set_pool(ShardId shard, executor::BackendPool* pool);
  [[nodiscard]] ShardId home() const;
  [[nodiscard]] bool routes() const { return worker_.routes(); }
  [[nodiscard]] bool in_transaction() const;
  void plan_begins();
  void plan_ends();
  [[nodiscard]] wire::TransactionStatus status() const;
  io::Task<Result<executor::BackendLease>> acquire(executor::BackendPool* pool, executor::BackendLease first,
                                                   bool kept = false);

  // ---- the connection to the shard (session_backend.cc) ----
  io::Task<> obtain_backend();
  io::Task<Status> apply_settings(executor::Backend* backend);
  void begin_lease();
  bool settle();
  void release_backend();
  void note_events();
  [[nodiscard]] bool must_look() const;
  io::Task<> learn_function_settings();
  io::Task<> look_at_session_state();
  void tell_parameters();
  Status still_wanted();

  // ---- Kintsugi's own statements (session_commands.cc) ----
  [[nodiscard]] admin::Actor actor() const;
  io::Task<Result<admin::CommandResult>> await_command(admin::Command command);
  [[nodiscard]] std::string schema_meant(const parser::Statement& statement) const;
  io::Task<Result<std::string>> run_command(std::string text, bool describe, std::vector<std::int16_t> formats);
  bool start_commands(std::string_view text);
  io::Task<> run_commands();

  // ---- the client's messages (session_messages.cc); false: blocked, the message comes again ----
  bool on_message(const wire::Frame& frame);
  bool on_terminate();
  bool on_copy_end(const wire::Frame& frame);
  bool pass_if_leased(const wire::Frame& frame);
  void note_execution(std::uint32_t effects);
  void note_custom_settings(const StatementEffects& effects);
  [[nodiscard]] std::optional<Error> misuses_own_setting(const StatementEffects& effects) const;
  std::optional<Error> refuse_sequence_state(std::uint32_t effects);
  void block_until_drained();
  void expect(executor::Expected&& expected);
  void answer(std::string bytes);
  void protocol_violation(const Error& error);
  [[nodiscard]] bool skipping() const { return local_skip_ || relay_.skipping(); }

  // ---- simple queries (session_simple.cc) ----
  bool on_query(const wire::Frame& frame);
  bool route_query(const wire::Frame& frame, std::string_view text);
  bool route_script(const wire::Frame& frame, std::string_view text);
  bool pass_query(const wire::Frame& frame, std::string_view text, ShardId where, Passed passed = Passed());
  bool pass_query(const wire::Frame& frame, std::string_view text, ShardId where, const Passed& passed,
                  StatementEffects effects);
  void reject_query(const Error& error);
  bool on_function_call();

  // ---- the extended protocol (session_extended.cc) ----
  bool on_parse(const wire::Frame& frame);
  bool on_bind(const wire::Frame& frame);
  bool on_describe(const wire::Frame& frame);
  bool on_execute(const wire::Frame& frame);
  bool on_close(const wire::Frame& frame);
  bool on_sync(const wire::Frame& frame);
  bool on_flush(const wire::Frame& frame);
  bool settle_batch();
  bool adopt_known(const wire::ParseMessage& message);
  bool parse_named(const wire::ParseMessage& message, std::uint32_t effects, PreparedTextRef text);
  void parse_unnamed(const wire::Frame& frame, const wire::ParseMessage& message, std::uint32_t effects);
  [[nodiscard]] StatementEffects effects_of_parse(const wire::ParseMessage& message) const;
  bool parse_by_router(const wire::ParseMessage& message, PreparedTextRef text);
  void note_unnamed(const wire::ParseMessage& message, std::uint32_t effects, PreparedTextRef text);
  void ensure_unnamed();
  [[nodiscard]] bool unnamed_is_uncertain() const;
  [[nodiscard]] bool is_uncertain(const ClientStatementRef& handle) const;
  void reject_extended(const Error& error, std::string_view routine = {});

  // ---- names of statements (session_names.cc) ----
  ClientStatementRef find_statement(std::string_view name);
  bool is_prepared_here(const ClientStatementRef& handle);
  bool prepare_on_backend(const ClientStatementRef& handle, bool with_sync);
  bool prepare_named(const StatementEffects& effects, bool with_sync);
  std::string with_server_names(std::string_view text, const StatementEffects& effects);
  std::optional<Error> name_effects(StatementEffects& effects);
  [[nodiscard]] std::string search_path() const;

  // ---- SQL's PREPARE and EXECUTE (session_named.cc) ----
  std::optional<ShardId> fixed_place(PreparedText& prepared);
  static PreparedTextRef text_prepared_by(const parser::Statement& statement, const parser::Prepare& prepare);
  bool named_passes(const parser::Statement& statement);
  io::Task<StatementEnd> run_named(KnownRef known, bool describe, std::vector<std::int16_t> formats);
  const std::string& rows_described(const KnownStatement& known, const PreparedText& prepared);
  io::Task<StatementEnd> prepare_here(KnownRef known);
  io::Task<Result<executor::Rows>> arguments_of(KnownRef known, PreparedTextRef prepared);
  io::Task<StatementEnd> execute_here(KnownRef known, PreparedTextRef prepared, bool describe,
                                      std::vector<std::int16_t> formats);

  // ---- portals that the router runs (session_portals.cc) ----
  enum class Handled { kPass, kDone, kBlocked, kRejected };
  PreparedTextRef understand(const wire::ParseMessage& message);
  const KnownStatement& known_of(PreparedText& prepared, bool* unknown_names);
  [[nodiscard]] bool is_routers_own(const KnownStatement& known);
  Handled route_parse(const wire::ParseMessage& message, PreparedTextRef* text, ShardId* where);
  Handled route_bind(const wire::BindMessage& bind, const PreparedTextRef& text, ShardId* where, bool* writes,
                     bool* again);
  std::optional<ShardId> shard_of_next_bind(const wire::ParseMessage& message, PreparedText& prepared,
                                            const KnownStatement& known);
  Result<planner::Plan> plan_of_bind(PreparedText& prepared, const KnownStatement& known,
                                     const wire::BindMessage& bind);
  std::span<const planner::Parameter> parameters_of(const PreparedText& prepared,
                                                    const wire::BindValues& values);
  [[nodiscard]] std::uint64_t described_now();
  [[nodiscard]] static Error other_columns();
  Handled have_described(const PreparedTextRef& text);
  static bool explains_parameters(const KnownStatement& known);
  Handled bind_portal(const wire::BindMessage& bind, const PreparedTextRef& text, planner::Plan plan);
  Portal* find_portal(std::string_view name);
  void describe_portal(Portal& portal);
  void describe_prepared(const PreparedText& prepared);
  ShardId knows_it(PreparedText& prepared);
  io::Task<> describe_statement(PreparedTextRef text);
  io::Task<> execute_portal(std::string name, std::uint64_t max_rows);
  io::Task<StatementEnd> advance_portal(std::string name, Portal* portal, std::uint64_t max_rows);
  StatementEnd give_left_over(Portal* portal, std::uint64_t max_rows);
  io::Task<Status> plan_anew(Portal* portal);
  io::Task<StatementEnd> run_portal(Portal* portal);
  io::Task<> drop_portal(std::string name);
  io::Task<> drop_portals();

  // ---- errands (session_errand.cc) ----
  bool start_errand(Errand errand);
  io::Task<> run_errand();
  io::Task<Result<std::string>> work_out(const planner::WorkOut& work);
  io::Task<Status> work_out_portal(Portal* portal);
  [[nodiscard]] std::optional<Error> needs_block(const KnownStatement& known) const;
  static Error not_worked_out();
  static PreparedTextRef with_text(const PreparedText& prepared, std::string text);
  Result<Place*> place_at(ShardId shard);
  io::Task<Result<Place*>> join(ShardId shard);
  io::Task<Result<Place*>> join_any();
  std::vector<std::string> opening(Place& place, bool writes);
  void cancel_at(executor::Backend& backend);
  io::Task<> run_script(std::string text);
  io::Task<StatementEnd> run_of_script(const std::string* text, parser::Range statement, bool several);
  io::Task<StatementEnd> run_by_kind(KnownRef known, const std::string* text, parser::Range statement,
                                     parser::Normaliser* normal);
  // session_ends.cc
  [[nodiscard]] static std::string_view ends_for_all(const KnownStatement& known);
  [[nodiscard]] bool ends_elsewhere(const KnownStatement& known) const;
  io::Task<> end_elsewhere(KnownRef known, StatementEnd* end);
  io::Task<> look_at_ended();
  // session_pour.cc
  io::Task<Result<Pouring>> look_at_source(const planner::Pour& pour, const Run* run);
  io::Task<StatementEnd> run_pour(planner::Pour pour, Run* run);
  io::Task<StatementEnd> pour_rows(planner::FanOut fan_out, Run* run);
  io::Task<StatementEnd> insert_poured(std::string text, Pouring* pouring);
  // session_read_first.cc
  io::Task<Result<Run>> plan_of_part(std::string text, const Run* run);
  io::Task<Result<std::vector<std::optional<std::string>>>> ask_of_part(ShardId where, std::string text,
                                                                        const Run* run);
  io::Task<Result<PartColumns>> columns_of_part(const planner::ReadFirst::Read* read, ShardId where,
                                                const Run* run);
  io::Task<StatementEnd> read_part(const planner::ReadFirst::Read* read, ShardId where, const Run* run,
                                   std::deque<std::string>* arrays, std::string* text, Run* last);
  io::Task<Result<ShardId>> open_to_read_first(const planner::ReadFirst* first);
  io::Task<StatementEnd> read_first_once(planner::ReadFirst first, Run* run);
  io::Task<StatementEnd> run_read_first(planner::ReadFirst first, Run* run);
  io::Task<StatementEnd> run_planned(KnownRef known, const std::string* text, parser::Range statement,
                                     parser::Normaliser* normal, const Answering* answering = nullptr);
  io::Task<StatementEnd> run_anywhere(std::string own, KnownRef known);
  [[nodiscard]] bool must_be_read() const { return worker_.map()->shards().size() > 1; }
  static Error unread();
  io::Task<StatementEnd> refuse_unread(std::string own);
  io::Task<StatementEnd> run_session_statement(std::string own, KnownRef known);
  io::Task<StatementEnd> run_own(std::string text, bool describe, std::vector<std::int16_t> formats);
  io::Task<> ask_names();
  io::Task<> refresh_catalog();
  [[nodiscard]] bool want_fresh_catalog() const;
  [[nodiscard]] bool must_read_catalog(const KnownStatement& known, bool unknown_names) const;

  // ---- statements that a move has met (session_repeat.cc)
  void begin_unit(bool writes);
  void note_in_unit(std::string_view message, char type);
  void give_up_unit();
  void end_unit();
  void unit_was_refused();
  io::Task<> repeat_unit();
  io::Task<> take_back(std::function<bool(const Place&)> which);
  [[nodiscard]] bool plan_is_old(std::uint64_t version) const;
  io::Task<bool> wait_to_repeat(StatementEnd* end, std::uint64_t version, Deadline deadline);
  [[nodiscard]] Deadline hold_deadline() const;
  io::Task<> hold(std::string shardlet, std::uint64_t seen, Deadline deadline);
  [[nodiscard]] Error held_too_long(const std::string& shardlet) const;

  // ---- transactions with one snapshot, and rows that change hands (session_snapshot.cc)
  Result<planner::Plan> plan_of(const KnownStatement& known, const parser::Normaliser& normal,
                                std::uint32_t begin, std::span<const planner::Parameter> parameters);
  [[nodiscard]] bool saw_other_places(const planner::Analysis& analysis, const planner::Values& values,
                                      const planner::Plan& plan) const;
  void note_map(const shardmap::MapPtr& before);
  io::Task<> ask_isolation();
  io::Task<> take_one_snapshot();
  io::Task<Status> open_everywhere();
  io::Task<Result<Isolation>> isolation();
  [[nodiscard]] Isolation isolation_told();
  [[nodiscard]] Error joins_too_late(ShardId shard) const;
  [[nodiscard]] bool takes_the_snapshot(const KnownStatement& known);

  // ---- without a lease (session_careful.cc)
  [[nodiscard]] bool careful() const;
  [[nodiscard]] bool arrived_in_doubt() const;
  [[nodiscard]] bool lease_has_run_out() const;
  [[nodiscard]] std::string check_statement() const;
  io::Task<std::optional<Error>> shards_moved_on(bool writes);
  bool doubt_answer();
  void lose_answers(bool reads_alone);

  // ---- what a statement is and where it goes (session_route.cc) ----
  [[nodiscard]] bool names_are_known(std::string_view text);
  [[nodiscard]] static bool names_nothing(std::string_view text);
  // The transaction has failed on the connection that messages pass to, which says so itself. One that failed
  // elsewhere has not: there the statement would run.
  [[nodiscard]] bool failed_here() const {
    return lease_ && lease_->status == wire::TransactionStatus::kFailed;
  }
  [[nodiscard]] bool standard_strings();
  void note_how_texts_are_read();
  NamesRef names();
  NamesRef names_with_changes(NamesRef meaning);
  void note_definition(const planner::Ddl& ddl, const std::string& text);
  void forget_changes(std::size_t left = 0);
  KnownRef look_up(std::string_view text, parser::Range statement, parser::Normaliser& normal,
                   bool* unknown_names);
  Result<planner::Plan> plan_on_map(const KnownStatement& known, const parser::Normaliser& normal,
                                    std::uint32_t begin, std::span<const planner::Parameter> parameters);
  [[nodiscard]] std::optional<Error> concerns_new_table(std::string_view text) const;
  [[nodiscard]] bool has_written(ShardId shard) const;
  [[nodiscard]] ShardId place_of(const planner::Route& route, std::uint32_t effects) const;
  [[nodiscard]] ShardId cursor_place(const parser::Statement& statement) const;
  void note_cursor(const parser::Statement& statement, ShardId shard);
  StatementEnd explain_route(const KnownStatement& known, const parser::Normaliser& normal,
                             parser::Range statement, std::span<const planner::Parameter> parameters,
                             bool describe);
  static void append_route_description(std::string& out);

  // ---- plans (session_plan.cc) ----
  io::Task<StatementEnd> run_plan(Run run);
  io::Task<StatementEnd> run_route(planner::Route route, Run* run);
  io::Task<StatementEnd> run_fan_out(planner::FanOut fan_out, Run* run);
  io::Task<StatementEnd> run_ddl(planner::Ddl ddl, Run* run);
  void note_half_done(const std::string& done, const std::string& failed);
  io::Task<StatementEnd> run_gather(planner::Gather gather, Run* run);  // session_gather.cc
  static bool may_be_small(const planner::Gather& gather);              // session_finish.cc
  io::Task<std::optional<StatementEnd>> finish_small(const planner::Gather* gather, Run* run);
  io::Task<Result<std::vector<executor::ArrayColumn>>> columns_of_parts(std::string description, ShardId shard);
  executor::FanRequest fan_request(Run* run);
  executor::GatherRequest gather_request(const planner::Gather& gather, executor::Backend* finisher, Run* run);
  io::Task<Result<bool>> begun_read_only(const planner::Gather& gather);
  io::Task<StatementEnd> finish_aside(planner::Gather gather, Run* run);
  io::Task<StatementEnd> gather_and_finish(planner::Gather gather, Run* run);
  io::Task<Status> open_at(Place* place, bool writes);
  io::Task<StatementEnd> run_copy_in(planner::CopyIn plan, Run* run);  // session_copy.cc
  io::Task<StatementEnd> fill_from_stage(std::vector<std::string> fill, ShardId shard);
  io::Task<executor::FanStep> take_copy_data(executor::CopyInRun* copy);
  io::Task<Status> read_for_copy();
  executor::CopyOutRequest copy_out_request();
  io::Task<StatementEnd> run_copy_out(planner::CopyOut plan, Run* run);
  io::Task<Result<std::unique_ptr<executor::Fan>>> fan_for(planner::FanOut fan_out, Run* run, int attempt);
  // session_look.cc
  struct Moment;
  io::Task<Status> wait_inside(executor::Moments::Pass* pass, std::vector<ShardId> shards);
  io::Task<Result<bool>> looks_alone();
  io::Task<Status> wait_for_others(executor::Lookout::Watch* watch);
  io::Task<Result<std::shared_ptr<Moment>>> begin_moment(std::vector<ShardId> shards,
                                                         std::chrono::milliseconds patience, bool alone);
  io::Task<bool> end_moment(Moment* moment);
  io::Task<Result<executor::FanLook>> look(std::vector<ShardId> shards, int attempt);
  io::Task<Result<executor::FanStep>> begin_fan(planner::FanOut fan_out, Run* run, std::uint64_t max_rows,
                                                std::unique_ptr<executor::Fan>* fan);
  io::Task<Status> open_at_one_moment(std::vector<ShardId> shards);
  io::Task<Result<bool>> open_in_a_moment(std::vector<ShardId> shards);
  io::Task<Status> read_witness(std::vector<Place*> places);
  io::Task<executor::GatherResult> fill_at_one_moment(const planner::Gather* gather,
                                                      executor::GatherRequest request,
                                                      std::optional<executor::Gathering>* gathering);
  io::Task<Result<executor::Moments::Pass>> enter_commit();
  std::vector<ShardId> note_unsettled(const std::vector<std::string>& shards);
  io::Task<> wait_until_seen(std::vector<ShardId> left);
  io::Task<> undo_refused(const Run* run, std::vector<ShardId> begun, StatementEnd* end);
  StatementEnd end_of(executor::FanStep& step);
  Error lost_part(const Place& place);

  // ---- what definitions mean for the map and the catalogue (session_definitions.cc) ----
  io::Task<Status> settle_definitions();
  io::Task<Result<admin::CommandResult>> await_work(admin::CommandQueue::Work work, Deadline deadline);

  // ---- the transaction (session_transaction.cc) ----
  [[nodiscard]] static bool may_end_failure(const KnownStatement& known);
  [[nodiscard]] static bool ends_failure(std::string_view text);
  [[nodiscard]] std::size_t begun_places() const;
  bool transaction_passes(const parser::Statement& statement);
  void note_savepoint(const parser::Transaction& transaction, std::string_view text);
  static bool changes_names(const KnownStatement& known);
  void note_prelude(const KnownStatement& known, std::string_view text);
  [[nodiscard]] Result<planner::Plan> where_it_sets(const KnownStatement& known, planner::Plan plan) const;
  void note_called_settings(const KnownStatement& known, std::string_view text);
  [[nodiscard]] Error lacks_settings(ShardId shard) const;
  io::Task<Status> run_on_begun(std::string text);
  io::Task<StatementEnd> run_transaction(KnownRef known);
  [[nodiscard]] static Error aborted();
  [[nodiscard]] wire::TransactionStatus status_everywhere() const;
  [[nodiscard]] bool has_to_let_go() const;
  io::Task<> let_go();
  io::Task<> roll_back_everywhere();
  io::Task<StatementEnd> commit_everywhere();
  io::Task<> forget_refused_writes();
  io::Task<StatementEnd> end_implicit();

  Worker& worker_;
  io::Waiter waiter_;
  io::Stream client_;
  executor::Outbox to_client_;
  std::string in_;  // received and not yet understood

  LoggedIn user_;
  wire::BackendKey key_;
  bool logged_in_ = false;

  executor::SettingsRef startup_ = executor::Settings::none();
  executor::BackendLease lease_;           // the connection in use
  executor::BackendPool* pool_ = nullptr;  // whose it is, or was last
  executor::PoolUse pool_use_;             // keeps it
  ShardId here_ = 0;
  bool begun_ = false;           // the client's transaction has been opened on it
  bool batch_goes_on_ = false;   // behind the Execute that runs there is more than a Sync, or nothing yet
  bool barrier_begins_ = false;  // the last Sync of the router's own ends with the BEGIN of its transaction
  bool wrote_ = false;           // and may have written there
  bool untouched_ = false;       // and nothing of the client has run in it yet
  std::list<Place> away_;        // held besides: parts of the transaction, or pinned
  OpenTransaction txn_;
  SeenMaps seen_;
  Isolation default_isolation_ = Isolation::kUnknown;  // of a client with options of its own
  Deadline default_isolation_until_ = Deadline::at({});
  struct PoolAt {
    ShardId shard = 0;
    executor::PoolUse use;
  };
  std::vector<PoolAt> pools_;  // as of this version of the worker's routing
  std::uint64_t pools_version_ = 0;
  executor::Relay relay_;
  executor::SettingsRef settings_ = executor::Settings::none();  // what this client has set
  executor::SettingsRef reported_ = executor::Settings::none();  // the parameter values it was told last
  std::vector<std::string> custom_settings_;
  bool taken_back_ = false;    // the connection was kept, and lacks what was set since
  unsigned pins_ = 0;          // executor::PinReason
  std::uint32_t effects_ = 0;  // suspicions since the session's state was last looked at

  std::unordered_map<std::string, ClientStatementRef> statements_;
  std::deque<std::string> deallocating_;  // names in the DEALLOCATEs under way, in order
  struct Unnamed {
    bool valid = false;
    std::string text, type_oids;
    std::uint32_t effects = 0;
    bool plain = false;  // the text leaves nothing behind: known once for all that send it again
    std::uint64_t version = 0;
    std::uint64_t batch = 0;  // how many Syncs came before its Parse
    PreparedTextRef prepared;
    bool by_router = false;  // no shard has been told of it
  } unnamed_;
  struct Measured {
    Deadline::Clock::time_point arrived;  // the first message of it
    std::uint32_t statements = 0, failed = 0;
    admin::StatementTier tier = admin::StatementTier::kSession;
    KnownRef known;
    std::string text;             // where the router does not read statements
    std::vector<ShardId> shards;  // empty: the one whose connection is in use
    Deadline::Clock::duration waited{}, held{};
  } measured_;
  bool again_ = false;  // the message that comes next has come before
  struct Guarded {
    bool bound = false;  // by the configuration: the client cannot change it
    std::string map, key;
    planner::TenantGuard now;  // as of this version of the routing
    std::uint64_t version = 0;
  };
  std::unique_ptr<Guarded> guarded_;  // null: the session may touch every key
  std::map<std::string, std::unique_ptr<Portal>, std::less<>> portals_;
  std::map<std::string, ShardId, std::less<>> cursors_;  // where each was declared

  Errand errand_;
  PreparedTextRef describing_;  // of kDescribe; and what was described last
  std::string_view behind_;     // what the client has sent behind the message that is being handled
  bool held_ = false;
  Unit unit_;
  bool checks_ = false;  // the errand that runs is a careful one
  Deadline::Clock::time_point sent_in_round_;
  std::string bound_portal_;  // the one that was bound last, and what it does
  bool bound_read_ = false, bound_harmless_ = false;
  std::optional<Deadline> repeat_until_;  // of the unit that is repeated
  std::string search_path_now_, user_now_;
  bool names_known_ = false;
  bool names_asked_ = false;            // for the statement that comes next
  std::optional<Error> names_missing_;  // why that had no answer
  NamesRef names_;
  const executor::Settings* names_settings_ = nullptr;
  executor::SettingsRef read_as_;  // the reported values that the next two were read from
  bool standard_strings_ = true;
  bool utf8_ = true;
  std::uint64_t planned_epoch_ = 0;  // of the map that what runs was planned on; 0: nothing runs
  bool refreshed_ = false;           // the catalogue has been read again for the message that comes again
  bool defined_ = false;             // something since the catalogue was read: the next statement waits for it
  struct MapChange {
    shardmap::Table table;
    bool forget = false;
    bool alters = false;      // the map learns nothing
    bool unreadable = false;  // a view: statements that name it wait for the commit
    std::shared_ptr<const planner::Relation> relation;
  };
  std::vector<MapChange> map_changes_;   // that the transaction's DDL makes when it commits
  std::vector<std::size_t> changes_at_;  // how many there were at each savepoint
  bool catalog_is_old_ = false;          // and the catalogue is to be read again
  ShardId look_at_ = 0;                  // where an errand's statement has left something in the session
  std::uint32_t look_effects_ = 0;       // what it may be

  enum class Blocked : std::uint8_t {
    kNo,
    kOnBackend,
    kOnAnswers,
    kOnErrand,
    kOnCommands
  } blocked_ = Blocked::kNo;
  std::string commands_text_;           // of kOnCommands
  std::optional<Error> backend_error_;  // why no connection was to be had, for the message that wanted one
  std::uint64_t copy_left_ = 0;         // of a CopyData message that goes by in pieces
  bool copy_dropped_ = false;
  std::uint64_t batch_ = 0;   // Syncs so far
  std::size_t unsynced_ = 0;  // extended messages sent since the last Sync
  bool executed_ = false;     // an Execute has been sent since the last Sync
  bool preparing_ = false;    // nothing is outstanding but what the router prepares before the next message
  int preparings_lost_ = 0;   // of that message, with their connections
  bool local_skip_ = false;   // ignore everything up to the client's next Sync
  bool unfed_ = false;        // in_ may hold a whole message
  bool client_eof_ = false;
  bool ended_ = false;
  bool canceled_ = false;
  bool deadlocked_ = false;           // what runs is broken off for it
  bool uses_sequence_state_ = false;  // currval, lastval: keeps its connection
  bool preparation_failed_ = false;   // a hidden Parse before a query was refused, and the client knows
  Deadline::Clock::time_point quiet_since_;
};

}  // namespace kintsugi::frontend
