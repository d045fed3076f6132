#include "executor/connect_shard.h"

#include "base/io/connect.h"
#include "wire/client_messages.h"
#include "wire/scram.h"

namespace kintsugi::executor {
namespace {

constexpr std::uint64_t kMaxLoginMessage = 1u << 20;

// The conversation of one login over one stream.
class Login {
 public:
  Login(const ShardLogin& login, Backend& backend, io::Waiter* waiter, Deadline deadline)
      : login_(login), backend_(backend), waiter_(waiter), deadline_(deadline) {}

  io::Task<Status> run(SettingsRef startup, bool with_tls);
  // It failed in a way that may be another with TLS, or without: the handshake, or the server refused the
  // login.
  [[nodiscard]] bool other_way_may_work() const { return refused_; }

 private:
  io::Task<Status> start_tls();
  io::Task<Status> authenticate(wire::Authentication request);
  io::Task<Status> scram(std::string_view mechanisms);
  io::Task<Status> send(std::string bytes) {
    return backend_.stream.write_all(std::move(bytes), waiter_, deadline_);
  }
  io::Task<Result<wire::Frame>> next();
  io::Task<Result<wire::Authentication>> next_authentication();

  const ShardLogin& login_;
  Backend& backend_;
  io::Waiter* waiter_;
  Deadline deadline_;
  std::size_t used_ = 0;  // of the backend's carry: the frame given out last
  bool with_tls_ = false;
  bool logged_in_ = false;
  bool refused_ = false;
};

io::Task<Status> Login::start_tls() {
  std::string request;
  wire::append_ssl_request(request);
  auto sending = send(std::move(request));
  KG_CO_CHECK(co_await std::move(sending));
  std::string answer;
  auto reading = backend_.stream.read_some(&answer, waiter_, deadline_);
  KG_CO_CHECK(co_await std::move(reading));
  // More than the one byte, before encryption, is somebody in the middle stuffing the buffer.
  if (answer.size() != 1 || (answer[0] != 'S' && answer[0] != 'N')) {
    co_return fail(sqlstate::kProtocolViolation, "unexpected answer to the request for TLS");
  }
  if (answer[0] == 'N') {
    if (login_.dsn.ssl_mode >= SslMode::kRequire) {
      co_return fail(sqlstate::kConnectionFailure, "the server does not offer TLS, and sslmode asks for it");
    }
    co_return Status{};
  }
  auto handshake = backend_.stream.connect_tls(login_.tls, login_.dsn.name_of(backend_.peer),
                                               login_.dsn.ssl_mode == SslMode::kVerifyFull, waiter_, deadline_);
  Status done = co_await std::move(handshake);
  refused_ = !done;
  co_return done;
}

io::Task<Result<wire::Frame>> Login::next() {
  backend_.carry.erase(0, used_);
  used_ = 0;
  for (;;) {
    KG_CO_TRY(auto frame, wire::peek_frame(backend_.carry, kMaxLoginMessage));
    if (frame) {
      used_ = frame->size();
      if (frame->type == wire::server::kError) {
        KG_CO_TRY(auto report, wire::read_error(frame->body));
        refused_ = !logged_in_ && backend_.stream.encrypted() == with_tls_;
        co_return fail(Error{.sqlstate = report.sqlstate,
                             .message = report.message,
                             .detail = report.detail,
                             .hint = report.hint});
      }
      co_return *frame;
    }
    auto reading = backend_.stream.read_some(&backend_.carry, waiter_, deadline_);
    KG_CO_CHECK(co_await std::move(reading));
  }
}

io::Task<Result<wire::Authentication>> Login::next_authentication() {
  auto reading = next();
  KG_CO_TRY(wire::Frame frame, co_await std::move(reading));
  if (frame.type != wire::server::kAuthentication) {
    co_return fail(sqlstate::kProtocolViolation, "unexpected message during authentication");
  }
  co_return wire::read_authentication(frame.body);
}

io::Task<Status> Login::scram(std::string_view mechanisms) {
  KG_CO_TRY(auto offered, wire::read_sasl_mechanisms(mechanisms));
  bool plain = false, plus = false;
  for (std::string_view mechanism : offered) {
    plain |= mechanism == wire::kScramSha256;
    plus |= mechanism == wire::kScramSha256Plus;
  }
  std::string binding;
  if (backend_.stream.encrypted()) {
    // Given even where PLUS was not offered: the server then hears that it could have been, and refuses if
    // somebody struck it out on the way. A certificate without a hash of its own has none.
    binding = wire::tls_server_end_point(backend_.stream.peer_certificate_der()).value_or("");
  }
  if ((!plus || binding.empty()) && login_.dsn.require_channel_binding) {
    co_return fail(sqlstate::kConnectionFailure,
                   "channel binding is required and the server does not offer it");
  }
  if (!plain && (!plus || binding.empty())) {
    co_return fail(sqlstate::kConnectionFailure, "the server offers no SASL mechanism that is known here");
  }
  auto client = login_.password.empty() && login_.keys ? wire::ScramClient(*login_.keys, binding, plus)
                                                       : wire::ScramClient(login_.password, binding, plus);
  std::string message;
  wire::append_sasl_initial(message, client.mechanism(), client.first());
  auto sending = send(std::move(message));
  KG_CO_CHECK(co_await std::move(sending));

  auto first = next_authentication();
  KG_CO_TRY(auto server_first, co_await std::move(first));
  if (server_first.kind != wire::AuthKind::kSaslContinue) {
    co_return fail(sqlstate::kProtocolViolation, "unexpected message during SCRAM");
  }
  KG_CO_TRY(auto response, client.respond(server_first.data));
  std::string answer;
  wire::append_sasl_response(answer, response);
  auto answering = send(std::move(answer));
  KG_CO_CHECK(co_await std::move(answering));

  auto last = next_authentication();
  KG_CO_TRY(auto server_final, co_await std::move(last));
  if (server_final.kind != wire::AuthKind::kSaslFinal) {
    co_return fail(sqlstate::kProtocolViolation, "unexpected message during SCRAM");
  }
  KG_CO_CHECK(client.verify(server_final.data));
  auto ok = next_authentication();
  KG_CO_TRY(auto done, co_await std::move(ok));
  if (done.kind != wire::AuthKind::kOk) {
    co_return fail(sqlstate::kProtocolViolation, "unexpected message after SCRAM");
  }
  co_return Status{};
}

io::Task<Status> Login::authenticate(wire::Authentication request) {
  if (request.kind == wire::AuthKind::kOk) {
    if (login_.dsn.require_channel_binding) {
      co_return fail(sqlstate::kConnectionFailure,
                     "channel binding is required and the server asked for no password");
    }
    co_return Status{};
  }
  const bool by_keys = request.kind == wire::AuthKind::kSasl && login_.keys.has_value();
  if (login_.password.empty() && !by_keys) {
    co_return fail(sqlstate::kInvalidPassword,
                   "the server asks for a password and none is known for role \"" + login_.role + "\"");
  }
  if (request.kind == wire::AuthKind::kSasl) {
    auto exchange = scram(request.data);
    co_return co_await std::move(exchange);
  }
  std::string answer;
  if (login_.dsn.require_channel_binding) {
    co_return fail(sqlstate::kConnectionFailure,
                   "channel binding is required and the server does not use SCRAM");
  }
  if (request.kind == wire::AuthKind::kMd5) {
    wire::append_password(answer, wire::md5_response(login_.role, login_.password, request.data));
  } else if (request.kind == wire::AuthKind::kCleartext) {
    wire::append_password(answer, login_.password);
  } else {
    co_return fail(sqlstate::kConnectionFailure,
                   "the server asks for an authentication method that is not supported",
                   "Use scram-sha-256, md5 or password in the shard's pg_hba.conf.");
  }
  auto sending = send(std::move(answer));
  KG_CO_CHECK(co_await std::move(sending));
  auto ok = next_authentication();
  KG_CO_TRY(auto done, co_await std::move(ok));
  if (done.kind != wire::AuthKind::kOk)
    co_return fail(sqlstate::kProtocolViolation, "unexpected authentication message");
  co_return Status{};
}

io::Task<Status> Login::run(SettingsRef startup, bool with_tls) {
  with_tls_ = with_tls;
  if (with_tls) {
    auto tls = start_tls();
    KG_CO_CHECK(co_await std::move(tls));
  }
  std::vector<std::pair<std::string, std::string>> parameters = {{"user", login_.role},
                                                                 {"database", login_.dsn.dbname}};
  if (!login_.dsn.options.empty()) parameters.emplace_back("options", login_.dsn.options);
  for (const Settings::Entry& entry : startup->entries()) {
    if (entry.first == "options" && !login_.dsn.options.empty()) {
      parameters.back().second += " " + entry.second;  // the client's come later and so count
    } else {
      parameters.push_back(entry);
    }
  }
  std::string hello;
  wire::append_startup(hello, parameters);
  auto sending = send(std::move(hello));
  KG_CO_CHECK(co_await std::move(sending));

  auto asking = next_authentication();
  KG_CO_TRY(auto request, co_await std::move(asking));
  auto authenticating = authenticate(request);
  KG_CO_CHECK(co_await std::move(authenticating));
  logged_in_ = true;

  std::vector<Settings::Entry> reported;
  for (;;) {
    auto reading = next();
    KG_CO_TRY(wire::Frame frame, co_await std::move(reading));
    if (frame.type == wire::server::kParameterStatus) {
      KG_CO_TRY(auto parameter, wire::read_parameter_status(frame.body));
      reported.emplace_back(parameter.name, parameter.value);
    } else if (frame.type == wire::server::kBackendKeyData) {
      KG_CO_TRY(backend_.key, wire::read_backend_key(frame.body));
    } else if (frame.type == wire::server::kReadyForQuery) {
      KG_CO_TRY(backend_.status, wire::read_ready_for_query(frame.body));
      break;
    } else if (frame.type != wire::server::kNotice && frame.type != wire::server::kNegotiateVersion) {
      co_return fail(sqlstate::kProtocolViolation, "unexpected message after authentication");
    }
  }
  backend_.carry.erase(0, used_);
  backend_.reported = Settings::intern(std::move(reported));
  backend_.startup = std::move(startup);
  const std::string* standby = backend_.reported->find("in_hot_standby");
  if (login_.dsn.require_read_write && standby != nullptr && *standby == "on") {
    co_return fail(sqlstate::kConnectionFailure,
                   "the server is a standby and target_session_attrs asks for a primary");
  }
  co_return Status{};
}

// "57P03: starting up" and "53300: too many connections" pass as they are: the pool waits and tries again.
Error unreachable(const ShardLogin& login, const io::HostPort& peer, Error why) {
  if (why.sqlstate == sqlstate::kCannotConnectNow || why.sqlstate == sqlstate::kTooManyConnections) return why;
  // A value or a name that the client's own startup packet carries: "22023", "42704", and "55P02" for one that
  // only the server's start can set.
  if (why.sqlstate.starts_with("22") || why.sqlstate.starts_with("42") || why.sqlstate == "55P02") return why;
  return Error{
      .sqlstate = std::string(sqlstate::kShardUnreachable),
      .message = "shard " + login.shard + " is unreachable: " + why.message,
      .detail = "It was tried at " + peer.to_string() + "/" + login.dsn.dbname + " as role \"" + login.role +
                "\"" + (why.detail.empty() ? "." : ". " + why.detail),
      .hint = why.hint.empty() ? "Is its PostgreSQL running, and is the shard's DSN right?" : why.hint};
}

}  // namespace

Result<std::shared_ptr<const ShardLogin>> ShardLogin::make(std::string shard, const Dsn& dsn,
                                                           std::string_view client_user,
                                                           std::string_view client_password,
                                                           const std::optional<wire::ScramKeys>& client_keys) {
  auto made = std::make_shared<ShardLogin>();
  made->shard = std::move(shard);
  made->dsn = dsn;
  made->role = dsn.user.empty() ? std::string(client_user) : dsn.user;
  made->password = dsn.password.empty() ? std::string(client_password) : dsn.password;
  if (made->password.empty() && dsn.user.empty()) made->keys = client_keys;
  if (dsn.ssl_mode != SslMode::kDisable) {
    KG_TRY(made->tls, io::TlsContext::client({.verify_chain = dsn.ssl_mode >= SslMode::kVerifyCa,
                                              .root_cert_file = dsn.ssl_root_cert,
                                              .cert_file = dsn.ssl_cert,
                                              .key_file = dsn.ssl_key}));
  }
  return std::shared_ptr<const ShardLogin>(made);
}

namespace {

struct Attempt {
  std::unique_ptr<Backend> backend;  // null: it failed
  Error error;
  bool other_way_may_work = false;
};

io::Task<Attempt> attempt(const ShardLogin* login, io::HostPort peer, SettingsRef startup, bool with_tls,
                          io::Waiter* waiter, Deadline deadline) {
  auto backend = std::make_unique<Backend>();
  backend->shard = login->shard;
  backend->peer = peer;
  auto connecting = io::connect(&backend->stream, peer, waiter, deadline);
  if (Status connected = co_await std::move(connecting); !connected) {
    co_return Attempt{nullptr, std::move(connected).error(), false};
  }
  Login conversation(*login, *backend, waiter, deadline);
  auto logging_in = conversation.run(std::move(startup), with_tls);
  Status status = co_await std::move(logging_in);
  if (status) co_return Attempt{std::move(backend), {}, false};
  co_return Attempt{nullptr, std::move(status).error(), conversation.other_way_may_work()};
}

// libpq's rule: sslmode allow begins without TLS, prefer with it, and each tries the other way when the server
// refuses. A server that has no connection free, or is starting up, says the same either way.
io::Task<Attempt> attempt_as_sslmode_says(const ShardLogin* login, io::HostPort peer, SettingsRef startup,
                                          io::Waiter* waiter, Deadline deadline) {
  const SslMode mode = login->dsn.ssl_mode;
  const bool tls_possible = login->tls != nullptr && !peer.host.starts_with('/');
  const bool tls_first = tls_possible && mode != SslMode::kAllow;
  auto trying = attempt(login, peer, startup, tls_first, waiter, deadline);
  Attempt first = co_await std::move(trying);
  if (!tls_possible || (mode != SslMode::kAllow && mode != SslMode::kPrefer) || !first.other_way_may_work ||
      first.error.sqlstate == sqlstate::kCannotConnectNow ||
      first.error.sqlstate == sqlstate::kTooManyConnections || deadline.passed()) {
    co_return first;
  }
  auto trying_again = attempt(login, peer, std::move(startup), !tls_first, waiter, deadline);
  Attempt second = co_await std::move(trying_again);
  // Of two refusals the one that speaks of the password says more than "no pg_hba.conf entry".
  if (second.backend == nullptr && first.error.sqlstate != sqlstate::kInvalidAuthorization) co_return first;
  co_return second;
}

}  // namespace

io::Task<Result<std::unique_ptr<Backend>>> connect_shard(std::shared_ptr<const ShardLogin> login,
                                                         SettingsRef startup, io::Waiter* waiter,
                                                         Deadline deadline) {
  Error last;
  for (const io::HostPort& peer : login->dsn.hosts) {
    auto trying = attempt_as_sslmode_says(login.get(), peer, startup, waiter, deadline);
    Attempt made = co_await std::move(trying);
    if (made.backend != nullptr) co_return std::move(made.backend);
    last = unreachable(*login, peer, std::move(made.error));
    if (deadline.passed()) break;
  }
  co_return fail(std::move(last));
}

io::Task<Status> cancel_on_shard(std::shared_ptr<const ShardLogin> login, io::HostPort peer,
                                 wire::BackendKey key, io::Waiter* waiter, Deadline deadline) {
  io::Stream stream;
  auto connecting = io::connect(&stream, peer, waiter, deadline);
  KG_CO_CHECK(co_await std::move(connecting));
  if (login->dsn.ssl_mode >= SslMode::kRequire && !peer.host.starts_with('/')) {
    std::string request;
    wire::append_ssl_request(request);
    auto asking = stream.write_all(std::move(request), waiter, deadline);
    KG_CO_CHECK(co_await std::move(asking));
    std::string answer;
    auto reading = stream.read_some(&answer, waiter, deadline);
    KG_CO_CHECK(co_await std::move(reading));
    if (answer != "S") co_return fail(sqlstate::kConnectionFailure, "the server does not offer TLS");
    auto handshake = stream.connect_tls(login->tls, login->dsn.name_of(peer),
                                        login->dsn.ssl_mode == SslMode::kVerifyFull, waiter, deadline);
    KG_CO_CHECK(co_await std::move(handshake));
  }
  std::string message;
  wire::append_cancel_request(message, {.pid = key.pid, .secret = key.secret});
  auto sending = stream.write_all(std::move(message), waiter, deadline);
  KG_CO_CHECK(co_await std::move(sending));
  // The server signals the backend and then closes: the end of the connection is the acknowledgement.
  std::string ignored;
  while (!deadline.passed()) {
    auto reading = stream.read_some(&ignored, waiter, deadline);
    if (Status more = co_await std::move(reading); !more && !deadline.passed()) co_return Status{};
  }
  co_return fail(sqlstate::kConnectionFailure, "the server took too long to take a cancel request");
}

}  // namespace kintsugi::executor
