#include "frontend/login.h"

#include "base/log.h"
#include "frontend/worker.h"
#include "wire/server_messages.h"

namespace kintsugi::frontend {
namespace {

constexpr std::uint64_t kMaxPassword = 65536;
constexpr std::size_t kMaxName = 63;

// An application's name as PostgreSQL keeps and reports it.
std::string as_shown(std::string_view name) {
  std::string shown(name.substr(0, kMaxName));
  for (char& c : shown) {
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

class Login {
 public:
  Login(Shared& shared, io::Stream& client, std::string& input, io::Waiter* waiter, Deadline deadline)
      : shared_(shared), client_(client), input_(input), waiter_(waiter), deadline_(deadline) {}

  io::Task<LoginOutcome> run();

 private:
  io::Task<Result<wire::InitialPacket>> next_initial_packet();
  io::Task<Result<std::string>> next_password();
  io::Task<Status> send(std::string bytes) { return client_.write_all(std::move(bytes), waiter_, deadline_); }
  io::Task<Status> start_tls();
  io::Task<Status> negotiate(const wire::StartupMessage* startup);
  io::Task<Status> authenticate(const User* user, std::string name);
  io::Task<Status> scram(wire::ScramVerifier verifier);
  Result<LoggedIn> read_startup(const wire::StartupMessage& startup);
  io::Task<LoginOutcome> refuse(Error error);

  Shared& shared_;
  io::Stream& client_;
  std::string& input_;
  io::Waiter* waiter_;
  Deadline deadline_;
  std::optional<wire::ScramKeys> keys_;  // of a client that has proved itself: good for the shards as well
};

io::Task<LoginOutcome> Login::refuse(Error error) {
  std::string bytes;
  wire::append_error(bytes, "FATAL", error);
  auto sending = send(std::move(bytes));
  (void)co_await std::move(sending);
  co_return LoginOutcome{.kind = LoginOutcome::kRefused};
}

io::Task<Result<wire::InitialPacket>> Login::next_initial_packet() {
  for (;;) {
    KG_CO_TRY(auto read, wire::read_initial_packet(input_));
    if (read) {
      input_.erase(0, read->size);
      co_return std::move(read->packet);
    }
    auto reading = client_.read_some(&input_, waiter_, deadline_);
    if (Status got = co_await std::move(reading); !got) {
      got.error().sqlstate.clear();  // nobody is there to be told
      co_return fail(std::move(got).error());
    }
  }
}

io::Task<Result<std::string>> Login::next_password() {
  for (;;) {
    KG_CO_TRY(auto frame, wire::peek_frame(input_, kMaxPassword));
    if (frame) {
      if (frame->type != wire::client::kPassword) {
        co_return fail(sqlstate::kProtocolViolation,
                       std::string("expected password response, got message type ") +
                           std::to_string(static_cast<unsigned char>(frame->type)));
      }
      std::string body(frame->body);
      input_.erase(0, frame->size());
      co_return body;
    }
    auto reading = client_.read_some(&input_, waiter_, deadline_);
    KG_CO_CHECK(co_await std::move(reading));
  }
}

io::Task<Status> Login::start_tls() {
  auto context = shared_.tls();
  if (context == nullptr || client_.encrypted()) {
    auto sending = send("N");
    co_return co_await std::move(sending);
  }
  if (!input_.empty()) {
    // Bytes before the handshake could be somebody else's, passed off as encrypted ones.
    co_return fail(
        sqlstate::kProtocolViolation, "received unencrypted data after SSL request",
        "This could be either a client-software bug or evidence of an attempted man-in-the-middle attack.");
  }
  auto sending = send("S");
  KG_CO_CHECK(co_await std::move(sending));
  auto handshake = client_.accept_tls(context, waiter_, deadline_);
  Status shaken = co_await std::move(handshake);
  if (!shaken) {
    log::info("TLS handshake failed", {{"error", shaken.error().message}});
    shaken.error().sqlstate.clear();
  }
  co_return shaken;
}

io::Task<Status> Login::negotiate(const wire::StartupMessage* startup) {
  const std::vector<std::string_view> unknown = startup->protocol_options();
  if (startup->minor == 0 && unknown.empty()) co_return Status{};
  std::string bytes;
  wire::append_negotiate_version(bytes, 0, unknown);
  auto sending = send(std::move(bytes));
  co_return co_await std::move(sending);
}

Result<LoggedIn> Login::read_startup(const wire::StartupMessage& startup) {
  LoggedIn result;
  for (const auto& [name, value] : startup.parameters) {
    if (name == "user") {
      result.user = value;
    } else if (name == "replication") {
      if (value != "false" && value != "off" && value != "no" && value != "0") {
        return fail(sqlstate::kNotSupported, "replication connections are not supported",
                    "Connect to the shard itself for replication.");
      }
    } else if (name == "application_name") {
      result.application_name = as_shown(value);
      result.has_application_name = true;
    } else if (name != "database" && !name.starts_with("_pq_.")) {
      result.startup.emplace_back(name, value);
    }
  }
  if (result.user.empty()) {
    return fail(sqlstate::kInvalidAuthorization, "no PostgreSQL user name specified in startup packet");
  }
  return result;
}

io::Task<Status> Login::scram(wire::ScramVerifier verifier) {
  std::string binding;
  std::vector<std::string_view> mechanisms;
  if (client_.encrypted()) {
    // A certificate whose signature has no hash of its own (Ed25519) has no binding: then there is no PLUS.
    binding = wire::tls_server_end_point(client_.tls_context()->certificate_der()).value_or("");
    if (!binding.empty()) mechanisms.push_back(wire::kScramSha256Plus);
  }
  mechanisms.push_back(wire::kScramSha256);
  std::string bytes;
  wire::append_sasl_mechanisms(bytes, mechanisms);
  auto offering = send(std::move(bytes));
  KG_CO_CHECK(co_await std::move(offering));

  auto choosing = next_password();
  KG_CO_TRY(std::string initial, co_await std::move(choosing));
  KG_CO_TRY(auto chosen, wire::read_sasl_initial(initial));

  wire::ScramServer server(std::move(verifier), binding);
  std::string client_first(chosen.data.value_or(""));
  if (!chosen.data) {  // it only named the mechanism: an empty challenge asks for its first message
    std::string prompt;
    wire::append_authentication(prompt, wire::AuthKind::kSaslContinue, "");
    auto prompting = send(std::move(prompt));
    KG_CO_CHECK(co_await std::move(prompting));
    auto starting = next_password();
    KG_CO_TRY(client_first, co_await std::move(starting));
  }
  KG_CO_TRY(std::string server_first, server.first(chosen.mechanism, client_first));
  std::string challenge;
  wire::append_authentication(challenge, wire::AuthKind::kSaslContinue, server_first);
  auto challenging = send(std::move(challenge));
  KG_CO_CHECK(co_await std::move(challenging));

  auto proving = next_password();
  KG_CO_TRY(std::string client_final, co_await std::move(proving));
  KG_CO_TRY(std::string server_final, server.final(client_final));
  std::string proof;
  wire::append_authentication(proof, wire::AuthKind::kSaslFinal, server_final);
  keys_ = server.keys();
  auto answering = send(std::move(proof));
  co_return co_await std::move(answering);
}

io::Task<Status> Login::authenticate(const User* user, std::string name) {
  if (user != nullptr && !user->verifier) co_return Status{};
  if (user == nullptr && shared_.users.open_to_all()) co_return Status{};
  auto exchange = scram(user != nullptr ? *user->verifier : wire::ScramVerifier::doomed(name));
  Status proved = co_await std::move(exchange);
  if (!proved && proved.error().sqlstate == sqlstate::kInvalidPassword) {
    proved.error().message = "password authentication failed for user \"" + name + "\"";
  }
  co_return proved;
}

io::Task<LoginOutcome> Login::run() {
  wire::StartupMessage startup;
  bool asked_tls = false, asked_gss = false;
  for (;;) {
    auto reading = next_initial_packet();
    auto packet = co_await std::move(reading);
    if (!packet) {
      if (packet.error().sqlstate.empty()) co_return LoginOutcome{};
      auto refusing = refuse(std::move(packet).error());
      co_return co_await std::move(refusing);
    }
    if (auto* cancel = std::get_if<wire::CancelRequest>(&*packet)) {
      co_return LoginOutcome{.kind = LoginOutcome::kCancel, .user = {}, .cancel = *cancel};
    }
    if (auto* message = std::get_if<wire::StartupMessage>(&*packet)) {
      startup = std::move(*message);
      break;
    }
    const bool tls = std::holds_alternative<wire::SslRequest>(*packet);
    Status answered;
    if (std::exchange(tls ? asked_tls : asked_gss, true)) {
      // PostgreSQL takes each of them once, and a second one for the version it would be.
      answered = fail(sqlstate::kNotSupported, std::string("unsupported frontend protocol 1234.") +
                                                   (tls ? "5679" : "5680") + ": server supports 3.0 to 3.0");
    } else if (tls) {
      auto starting = start_tls();
      answered = co_await std::move(starting);
    } else {
      auto sending = send("N");  // GSSAPI encryption
      answered = co_await std::move(sending);
    }
    if (!answered) {
      if (answered.error().sqlstate.empty()) co_return LoginOutcome{};
      auto refusing = refuse(std::move(answered).error());
      co_return co_await std::move(refusing);
    }
  }
  auto negotiating = negotiate(&startup);
  if (Status done = co_await std::move(negotiating); !done) co_return LoginOutcome{};
  Result<LoggedIn> user = read_startup(startup);
  if (!user) {
    auto refusing = refuse(std::move(user).error());
    co_return co_await std::move(refusing);
  }
  const User* known = shared_.users.find(user->user);
  auto proving = authenticate(known, user->user);
  Status proved = co_await std::move(proving);
  if (!proved) {
    log::info("login refused", {{"user", user->user}, {"error", proved.error().message}});
    auto refusing = refuse(std::move(proved).error());
    co_return co_await std::move(refusing);
  }
  const std::string_view database = startup.database();
  if (database != shared_.config.database.name) {
    Error error{.sqlstate = std::string(sqlstate::kInvalidCatalogName),
                .message = "database \"" + std::string(database) + "\" does not exist",
                .hint = "This router serves the database \"" + shared_.config.database.name + "\"."};
    auto refusing = refuse(std::move(error));
    co_return co_await std::move(refusing);
  }
  user->admin = known != nullptr ? known->admin : true;
  if (known != nullptr) user->password = known->password;
  user->keys = std::move(keys_);
  co_return LoginOutcome{.kind = LoginOutcome::kUser, .user = std::move(*user)};
}

}  // namespace

io::Task<LoginOutcome> log_in(Shared* shared, io::Stream* client, std::string* input, io::Waiter* waiter,
                              Deadline deadline) {
  Login login(*shared, *client, *input, waiter, deadline);
  auto running = login.run();
  LoginOutcome outcome = co_await std::move(running);
  co_return outcome;
}

}  // namespace kintsugi::frontend
