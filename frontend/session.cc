#include "frontend/session.h"

#include <sys/socket.h>

#include <algorithm>

#include "base/log.h"
#include "wire/client_messages.h"

namespace kintsugi::frontend {
namespace {

using namespace std::chrono_literals;

constexpr auto kMostForCancel = 15s;
constexpr std::size_t kMostKept = 64 * 1024;  // for a client that does not read, before it is read from no more
constexpr int kPreparingsMax = 3;             // that are lost with their connections, for one message
constexpr int kChunksInARow = 8;              // from one shard to one client before the others have their turn

}  // namespace

Session::Session(Worker& worker, io::UniqueFd socket)
    : worker_(worker),
      waiter_(worker.loop()),
      client_(std::move(socket)),
      relay_(static_cast<std::uint64_t>(worker.shared().config.limits.max_message)) {
  client_.attach(worker.loop(), &waiter_);
  worker_.entering(this);
  worker_.shared().connections.fetch_add(1);
}

Session::~Session() {
  worker_.gone(this);
  if (logged_in_) {
    worker_.remove(key_);
    worker_.shared().clients.fetch_sub(1);
  }
  worker_.shared().connections.fetch_sub(1);
}

io::Task<> Session::run() {
  auto entering = enter();
  const bool entered = co_await std::move(entering);
  if (entered) {
    auto conversing = converse();
    co_await std::move(conversing);
  }
  auto leaving = leave();
  co_await std::move(leaving);
}

// Login, and what PostgreSQL says behind it: the shard's parameters, the key for cancelling, ready.
io::Task<bool> Session::enter() {
  Shared& shared = worker_.shared();
  const Deadline deadline = Deadline::in_or_never(shared.config.server.login_timeout);
  auto logging_in = log_in(&shared, &client_, &in_, &waiter_, deadline);
  LoginOutcome outcome = co_await std::move(logging_in);
  if (outcome.kind == LoginOutcome::kCancel) {
    const wire::BackendKey key{outcome.cancel.pid, outcome.cancel.secret};
    auto passing = pass_cancel(key);
    co_await std::move(passing);
    co_return false;
  }
  if (outcome.kind != LoginOutcome::kUser) co_return false;
  user_ = std::move(outcome.user);
  if (!routes()) measured_.tier = admin::StatementTier::kRoute;

  if (worker_.shutting_down()) {
    end_with(sqlstate::kCannotConnectNow, "the database system is shutting down");
    co_return false;
  }
  if (shared.clients.fetch_add(1) >= shared.config.server.max_clients) {
    shared.clients.fetch_sub(1);
    end_with(sqlstate::kTooManyConnections, "sorry, too many clients already",
             "server.max_clients is " + std::to_string(shared.config.server.max_clients) + ".");
    co_return false;
  }
  key_ = worker_.add(this);
  logged_in_ = true;

  if (Status guarded = begin_guard(); !guarded) {
    end_with(guarded.error().sqlstate, guarded.error().message, guarded.error().hint);
    co_return false;
  }
  std::vector<executor::Settings::Entry> startup = std::move(user_.startup);
  if (const auto limit = shared.config.limits.statement_timeout; limit.count() > 0) {
    startup.insert(startup.begin(), {"statement_timeout", std::to_string(limit.count())});
  }
  startup_ = executor::Settings::intern(std::move(startup));
  if (user_.has_application_name) settings_ = settings_->with("application_name", user_.application_name);
  relay_.set_application_name(user_.application_name);
  if (shared.config.pool.mode == PoolMode::kSession) pins_ |= executor::kPinMode;
  auto greeting = learn_greeting();
  if (Status greeted = co_await std::move(greeting); !greeted) {
    end_with(greeted.error().sqlstate, greeted.error().message, greeted.error().hint);
    co_return false;
  }
  wire::append_authentication(to_client_.compose(), wire::AuthKind::kOk);
  if (user_.has_application_name) reported_ = reported_->with("application_name", user_.application_name);
  for (const auto& [name, value] : reported_->entries()) {
    wire::append_parameter_status(to_client_.compose(), name, value);
  }
  wire::append_backend_key(to_client_.compose(), key_);
  wire::append_ready_for_query(to_client_.compose(), wire::TransactionStatus::kIdle);
  flush_client();
  quiet_since_ = waiter_.loop().now();
  unfed_ = !in_.empty();
  co_return !ended_;
}

// What the home shard says to a new session. Without one, or when an administrator comes to see why it does not
// answer, what any PostgreSQL would say.
io::Task<Status> Session::learn_greeting() {
  if (home() != 0) {
    KG_CO_TRY(executor::BackendPool * pool, pool_of(home()));
    set_pool(home(), pool);
    if (pool_->reported()->entries().empty()) {
      auto obtaining = obtain_backend();
      co_await std::move(obtaining);
      if (backend_error_ && !(user_.admin && backend_error_->sqlstate == sqlstate::kShardUnreachable)) {
        co_return fail(*std::exchange(backend_error_, std::nullopt));
      }
      backend_error_.reset();
      if (lease_ && pins_ == 0) release_backend();
    }
    reported_ = pool_->reported();
  }
  if (reported_->entries().empty()) {
    reported_ = executor::Settings::intern({{"DateStyle", "ISO, MDY"},
                                            {"IntervalStyle", "postgres"},
                                            {"TimeZone", "Etc/UTC"},
                                            {"application_name", ""},
                                            {"client_encoding", "UTF8"},
                                            {"default_transaction_read_only", "off"},
                                            {"in_hot_standby", "off"},
                                            {"integer_datetimes", "on"},
                                            {"is_superuser", "off"},
                                            {"server_encoding", "UTF8"},
                                            {"server_version", "15.0"},
                                            {"session_authorization", user_.user},
                                            {"standard_conforming_strings", "on"}});
  }
  co_return Status{};
}

// The end of a cancel request's connection tells the client that what it runs next is not what will be
// cancelled. So it stays open until the request has arrived.
io::Task<> Session::pass_cancel(wire::BackendKey key) {
  struct Passing {
    io::Waiter* waiter;
    bool done = false;
  };
  Shared& shared = worker_.shared();
  const auto index = static_cast<std::size_t>(Worker::index_of(key));
  if (index >= shared.workers.size()) co_return;
  auto passing = std::make_shared<Passing>(Passing{&waiter_});
  shared.workers[index]->cancel(key, [passing, loop = &worker_.loop()] {
    loop->post([passing] {
      passing->done = true;
      if (passing->waiter != nullptr) passing->waiter->notify();
    });
  });
  client_.want(false, false);
  const Deadline deadline = Deadline::in(kMostForCancel);
  while (!passing->done && !deadline.passed() && !worker_.ending()) (void)co_await waiter_.wait(deadline);
  passing->waiter = nullptr;
}

void Session::cut() {
  client_.shut_down();
  waiter_.notify();
}

io::Task<> Session::converse() {
  for (;;) {
    check_shutdown();
    bool moved = serve_client();
    moved |= serve_backend();
    // The end of a refused unit is sent while nothing of the client's is.
    if (blocked_ == Blocked::kOnAnswers && lease_ && !lease_->out.empty() && lease_->stream.writable())
      flush_backend();
    const bool was_full = client_is_full();
    if (!to_client_.empty()) flush_client();
    moved |= was_full && !client_is_full();
    if (ended_) break;
    if (blocked_ == Blocked::kOnBackend) {
      auto obtaining = obtain_backend();
      co_await std::move(obtaining);
      continue;
    }
    if (blocked_ == Blocked::kOnCommands) {
      auto running = run_commands();
      co_await std::move(running);
      continue;
    }
    if (blocked_ == Blocked::kOnErrand) {
      auto running = run_errand();
      co_await std::move(running);
      continue;
    }
    if (lease_ && relay_.idle() && lease_->out.empty()) {
      if (unit_.refused) {
        (void)start_errand({.kind = Errand::kRepeat});
        continue;
      }
      if (must_look()) {
        auto looking = look_at_session_state();
        co_await std::move(looking);
      }
      moved |= settle();
      if (lease_ && blocked_ == Blocked::kNo && unsynced_ == 0 && has_to_let_go()) {
        (void)start_errand({.kind = Errand::kLetGo});
        continue;
      }
    }
    if (moved) continue;
    if (client_eof_ && (!lease_ || relay_.idle())) break;
    // The rest of what PostgreSQL waits for will never be sent.
    if (client_eof_ && blocked_ == Blocked::kNo && (relay_.swallows_sync() || !relay_.will_end())) break;
    prepare_to_sleep();
    if (!co_await waiter_.wait(next_deadline())) on_deadline();
  }
}

void Session::prepare_to_sleep() {
  const bool room = !lease_ || lease_->out.empty();
  client_.want(blocked_ == Blocked::kNo && room && !client_eof_ && !client_is_full(), !to_client_.empty());
  if (lease_) lease_->stream.want(to_client_.empty(), !lease_->out.empty());
}

// A client that sends and does not read what it is answered has to wait, as with PostgreSQL.
bool Session::client_is_full() const {
  return to_client_.kept_bytes() >= kMostKept;
}

Deadline Session::next_deadline() const {
  const ServerConfig& config = worker_.shared().config.server;
  const auto after = [this](milliseconds timeout) {
    return timeout.count() > 0 ? Deadline::at(quiet_since_ + timeout) : Deadline::never();
  };
  if (!to_client_.empty()) return after(config.slow_client_timeout);
  if (lease_ && !relay_.idle()) return Deadline::never();
  if (in_transaction()) return after(config.transaction_idle_timeout);
  return after(config.idle_timeout);
}

void Session::on_deadline() {
  if (!to_client_.empty()) {
    log::info("a client takes no data and is disconnected",
              {{"user", user_.user}, {"waiting_bytes", to_client_.kept_bytes()}});
    to_client_.clear();
    ended_ = true;
  } else if (in_transaction()) {
    end_with("25P03", "terminating connection due to idle-in-transaction timeout");
  } else {
    end_with(sqlstate::kIdleSessionTimeout, "terminating connection due to idle-session timeout");
  }
}

void Session::check_shutdown() {
  if (!worker_.shutting_down()) return;
  const bool busy = in_transaction() || (lease_ && !relay_.idle());
  if (busy && !worker_.ending()) return;
  end_with(sqlstate::kAdminShutdown, "terminating connection due to administrator command");
}

void Session::end_with(std::string_view state, std::string message, std::string hint) {
  if (ended_) return;
  if (relay_.within_message()) {
    // Words in the middle of a row would be the rest of the row to the client.
    ended_ = true;
    return;
  }
  wire::append_error(
      to_client_.compose(), "FATAL",
      Error{.sqlstate = std::string(state), .message = std::move(message), .hint = std::move(hint)});
  ended_ = true;
}

io::Task<> Session::leave() {
  plan_ends();
  auto dropping = drop_portals();  // while the connections that their rows come from are still ours
  co_await std::move(dropping);
  for (Place& place : away_) {
    place.lease->stream.set_target(nullptr);
    worker_.clean_up(std::move(place.lease), true);
  }
  away_.clear();
  if (lease_) {
    if (!relay_.idle() || unsynced_ > 0 || !lease_->out.empty()) {
      if (!relay_.idle()) worker_.send_cancel(*pool_, *lease_, key_);
      lease_->broken = true;
      lease_.release();
    } else if (pins_ != 0 && !custom_settings_.empty()) {
      // A custom setting's name stays known to a connection for good: only a new one is as the next client
      // expects it.
      lease_->broken = true;
      lease_.release();
    } else {
      lease_->stream.set_target(nullptr);
      // A rollback ends neither an advisory lock nor a PREPARE, and nobody has looked yet.
      worker_.clean_up(std::move(lease_), pins_ != 0 || effects_ != 0);
    }
  }
  // The last words are worth a moment, not more.
  const Deadline deadline = Deadline::in(2s);
  while (client_.open() && !to_client_.empty()) {
    const io::IoResult result = to_client_.flush(client_);
    if (result.kind != io::IoResult::kWouldBlock) break;
    client_.want(false, true);
    if (!co_await waiter_.wait(deadline)) break;
  }
  // What stays unread turns the close into a reset, and a reset takes the last words with it.
  for (int i = 0; i < kChunksInARow && client_.open(); ++i) {
    if (client_.read(worker_.scratch(), Worker::kScratchBytes).kind != io::IoResult::kOk) break;
  }
  client_.close();
}

// ---- bytes ----

bool Session::serve_client() {
  if (ended_ || blocked_ != Blocked::kNo || client_is_full()) return false;
  if (lease_ && !lease_->out.empty()) {
    if (!lease_->stream.writable()) return false;
    flush_backend();
    if (!lease_ || !lease_->out.empty()) return false;
  }
  if (std::exchange(unfed_, false)) {
    const std::size_t used = feed(in_);
    flush_backend();
    in_.erase(0, used);
    return true;
  }
  if (client_eof_ || !client_.readable()) return false;
  const io::IoResult got = client_.read(worker_.scratch(), Worker::kScratchBytes);
  if (got.kind == io::IoResult::kWouldBlock) return false;
  if (got.kind != io::IoResult::kOk) {
    client_gone();
    return true;
  }
  quiet_since_ = waiter_.loop().now();
  const std::string_view bytes(worker_.scratch(), got.bytes);
  if (in_.empty()) {
    const std::size_t used = feed(bytes);
    // Flushing may need the scratch buffer: to read a dying connection's last words.
    if (used < bytes.size()) in_.assign(bytes.substr(used));
    flush_backend();
  } else {
    in_.append(bytes);
    const std::size_t used = feed(in_);
    flush_backend();
    in_.erase(0, used);
    if (in_.empty() && in_.capacity() > 1024) std::string().swap(in_);  // an assignment keeps the buffer
  }
  return true;
}

std::size_t Session::feed(std::string_view bytes) {
  const auto max_message = static_cast<std::uint64_t>(worker_.shared().config.limits.max_message);
  std::size_t at = 0;
  while (at < bytes.size() && blocked_ == Blocked::kNo && !ended_) {
    const std::string_view rest = bytes.substr(at);
    if (copy_left_ > 0) {
      const std::size_t piece = std::min<std::uint64_t>(copy_left_, rest.size());
      stream_copy_data(rest.substr(0, piece));
      copy_left_ -= piece;
      at += piece;
      continue;
    }
    auto head = wire::client::peek(rest, max_message);
    if (!head) {
      protocol_violation(head.error());
      break;
    }
    if (!head->has_value()) break;
    const char type = (*head)->type;
    const std::size_t size = (*head)->frame_size();
    if (type == wire::client::kPassword) {
      protocol_violation(wire::client::unknown_type(type));
      break;
    }
    if (type == wire::client::kCopyData) {
      give_up_unit();
      copy_dropped_ = !lease_ || relay_.idle();
      const std::size_t piece = std::min(size, rest.size());
      stream_copy_data(rest.substr(0, piece));
      copy_left_ = size - piece;
      at += piece;
      continue;
    }
    if (rest.size() < size) break;
    behind_ = rest.substr(size);
    if (!again_ && measured_.statements == 0) measured_.arrived = waiter_.loop().now();
    again_ = !on_message({type, rest.substr(wire::kHeaderBytes, (*head)->body_size)});
    if (again_) break;
    if (unit_.on && !unit_.closed) note_in_unit(rest.substr(0, size), type);
    refreshed_ = false;
    at += size;
  }
  return at;
}

void Session::stream_copy_data(std::string_view piece) {
  // PostgreSQL ignores COPY data when it is not in a COPY (any more), and so does the session when there is
  // nobody to send it to.
  if (!copy_dropped_ && lease_) lease_->out.pass(piece);
}

void Session::flush_client() {
  if (!client_.open()) {
    to_client_.clear();
    return;
  }
  const std::size_t before = to_client_.kept_bytes();
  const io::IoResult result = to_client_.flush(client_);
  if (result.kind == io::IoResult::kOk || to_client_.kept_bytes() < before) {
    quiet_since_ = waiter_.loop().now();
  } else if (result.kind != io::IoResult::kWouldBlock) {
    to_client_.clear();
    client_eof_ = true;
    ended_ = true;
  }
}

void Session::flush_backend() {
  if (!lease_) return;
  if (!lease_->out.empty()) sent_in_round_ = waiter_.loop().now();
  const io::IoResult result = lease_->out.flush(lease_->stream);
  if (result.kind == io::IoResult::kOk || result.kind == io::IoResult::kWouldBlock) return;
  // It may have said why before it went: the words wait to be read.
  lease_->out.clear();
  if (serve_backend() || !lease_) return;
  backend_lost("could not send");
}

void Session::client_gone() {
  client_eof_ = true;
  // PostgreSQL finishes what was sent before the end of the connection, unless it waits for more of it.
  if (lease_ && !relay_.idle() && (relay_.swallows_sync() || !relay_.will_end())) ended_ = true;
}

bool Session::serve_backend() {
  bool moved = false;
  for (int i = 0;
       i < kChunksInARow && lease_ && relay_.attached() && to_client_.empty() && lease_->stream.readable();
       ++i) {
    std::string& carry = lease_->carry;
    const std::size_t begun = carry.size();
    std::string
        large;  // a message that does not fit into the scratch buffer: it grows where it is until it is whole
    std::string_view chunk;
    io::IoResult got;
    if (begun < Worker::kScratchBytes / 2) {
      std::copy(carry.begin(), carry.end(), worker_.scratch());
      got = lease_->stream.read(worker_.scratch() + begun, Worker::kScratchBytes - begun);
      chunk = {worker_.scratch(), begun + got.bytes};
      if (got.kind == io::IoResult::kOk) carry.clear();
    } else {
      got = lease_->read_more_to_carry(Worker::kScratchBytes);
      if (got.kind == io::IoResult::kOk) {
        moved = true;
        if (!lease_->carries_a_whole_message()) continue;
        chunk = large = lease_->take_carry();
      }
    }
    if (got.kind == io::IoResult::kWouldBlock) break;
    if (got.kind != io::IoResult::kOk) {
      backend_lost("the server closed the connection");
      return true;
    }
    moved = true;
    if (arrived_in_doubt() && doubt_answer()) return true;
    const Status relayed = relay_.on_chunk(chunk, to_client_);
    note_events();
    flush_client();
    if (!relayed) {
      lease_->broken = true;
      backend_lost(relayed.error().message);
      return true;
    }
    if (relay_.last_words()) {
      backend_lost("");
      return true;
    }
    if (ended_) return true;
  }
  return moved;
}

void Session::backend_lost(const std::string& how) {
  plan_ends();
  lease_->broken = true;
  const bool held_something = lease_->status != wire::TransactionStatus::kIdle || pins_ != 0;
  Error error;
  if (relay_.last_words()) {
    error = *relay_.last_words();
  } else {
    error = Error{.sqlstate = std::string(sqlstate::kShardUnreachable),
                  .message = "lost the connection to shard " + lease_->shard + ": " + how,
                  .detail = relay_.idle() ? "" : "The statement may or may not have been executed.",
                  .hint = relay_.idle() ? "" : "Look before you repeat it."};
  }
  log::warning(
      "lost a connection to a shard",
      {{"shard", lease_->shard}, {"user", user_.user}, {"sqlstate", error.sqlstate}, {"error", error.message}});
  const bool repeats = unit_.refused && pins_ == 0;
  // The client's message has not been sent: it comes again, and another connection is taken for it.
  const bool unsent =
      std::exchange(preparing_, false) && pins_ == 0 && !in_.empty() && ++preparings_lost_ <= kPreparingsMax;
  if (!repeats) {
    end_unit();
    unit_.refused = unit_.doubted = false;
  }
  if (unsent) {
    executor::Outbox nowhere;
    (void)relay_.abandon(error, nowhere);
    begun_ = wrote_ = untouched_ = false;
  } else if (repeats) {
    // The client has been told nothing of it and the shard has kept nothing, as for one whose connection lives
    // on: it is run again.
    executor::Outbox nowhere;
    (void)relay_.abandon(error, nowhere);
    begun_ = wrote_ = untouched_ = false;
  } else if (relay_.within_message()) {
    // The client has had a part of a message. Whatever is said now would be the rest of it.
    executor::Outbox nowhere;
    (void)relay_.abandon(error, nowhere);
    ended_ = true;
  } else if (held_something) {
    // The client's transaction, or what tied it to this connection, is gone: it must not go on as if it were
    // there.
    executor::Outbox nowhere;
    (void)relay_.abandon(error, nowhere);
    if (!ended_) wire::append_error(to_client_.compose(), "FATAL", error);
    ended_ = true;
  } else if (relay_.abandon(error, to_client_)) {
    local_skip_ = true;
  } else if (unsynced_ > 0) {
    // What was executed since the last Sync is not committed, and the client believes that it goes on.
    wire::append_error(to_client_.compose(), "ERROR", error);
    local_skip_ = true;
  }
  reported_ = lease_->reported;  // the client has been told of these
  relay_.end();
  lease_.release();
  unsynced_ = 0;
  effects_ = 0;
  deallocating_.clear();
  blocked_ = Blocked::kNo;
  unfed_ = !in_.empty();
  if (repeats) (void)start_errand({.kind = Errand::kRepeat});
}

}  // namespace kintsugi::frontend
