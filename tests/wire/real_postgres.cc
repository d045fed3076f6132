#include "tests/wire/real_postgres.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/invariant.h"
#include "tests/pg/port.h"

namespace kintsugi::wire {

namespace {
constexpr const char* kBinaries = "/usr/lib/postgresql/15/bin/";
}  // namespace

RealPostgres& RealPostgres::shared() {
  static RealPostgres one;
  return one;
}

void RealPostgres::run(const std::string& command) const {
  std::string as_owner = geteuid() == 0 ? "runuser -u postgres -- " : "";
  std::string log = directory_ + "/commands.log";
  std::string whole = "cd " + directory_ + " && " + as_owner + "sh -c '" + command + "' >>" + log + " 2>&1";
  if (std::system(whole.c_str()) != 0) {
    std::ifstream in(log);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    std::fprintf(stderr, "%s\n%s\n", command.c_str(), text.c_str());
    INVARIANT(false, "PostgreSQL 15 is installed and starts");
  }
}

RealPostgres::RealPostgres() : port_(pgtest::free_port()) {
  std::string name = (std::filesystem::temp_directory_path() / "kg_wire_XXXXXX").string();
  INVARIANT(mkdtemp(name.data()), "a temporary directory is made");
  directory_ = name;
  if (geteuid() == 0)
    INVARIANT(std::system(("chown postgres " + directory_).c_str()) == 0, "there is a user postgres");
  run(std::string(kBinaries) + "initdb -D data -U postgres -A trust -E UTF8 --locale=C --no-sync");
  run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout data/server.key -out "
      "data/server.crt");
  // Who must prove himself how: by name, so that one cluster shows all.
  run("printf \"%s\\n\" \"host all postgres 127.0.0.1/32 trust\" \"host all m_all 127.0.0.1/32 md5\" "
      "\"host all p_all 127.0.0.1/32 password\" \"host all all 127.0.0.1/32 scram-sha-256\" >data/pg_hba.conf");
  run(std::string(kBinaries) + "pg_ctl -D data -w -l data/log -o \"-p " + std::to_string(port_) + " -k " +
      directory_ + " -c listen_addresses=127.0.0.1 -c fsync=off -c ssl=on -c max_connections=20\" start");
}

RealPostgres::~RealPostgres() {
  run(std::string(kBinaries) + "pg_ctl -D data -w -m immediate stop");
  std::filesystem::remove_all(directory_);
}

void RealPostgres::use_certificate(const std::string& arguments) {
  run("rm -f next.key next.crt; openssl req -x509 -nodes -days 2 -subj /CN=localhost -keyout next.key -out "
      "next.crt " +
      arguments);
  run("cat next.key >data/server.key; cat next.crt >data/server.crt");
  // A reload is asked for and happens some time later: a new server process, loading the files, is what shows
  // it.
  run(std::string(kBinaries) + "pg_ctl -D data reload");
  std::ifstream file(directory_ + "/next.crt");
  std::string pem((std::istreambuf_iterator<char>(file)), {});
  BIO* memory = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* wanted = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
  BIO_free(memory);
  unsigned char* der = nullptr;
  int size = i2d_X509(wanted, &der);
  std::string wanted_der(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  X509_free(wanted);
  for (int i = 0; i < 100; ++i) {
    BlockingPeer peer(port_);
    peer.start_tls();
    if (peer.peer_certificate_der() == wanted_der) return;
    usleep(50'000);
  }
  INVARIANT(false, "PostgreSQL takes the new certificate");
}

BlockingPeer::BlockingPeer(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  INVARIANT(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "the server listens");
  timeval bound{20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  context_ = SSL_CTX_new(TLS_client_method());
}

BlockingPeer::BlockingPeer(int accepted_fd, SSL_CTX* server_tls)
    : fd_(accepted_fd), context_(server_tls), is_server_(true) {
  timeval bound{20, 0};
  setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
}

BlockingPeer::~BlockingPeer() {
  SSL_free(tls_);
  if (!is_server_) SSL_CTX_free(context_);
  close(fd_);
}

void BlockingPeer::start_tls() {
  if (!is_server_) {
    std::string request;
    append_ssl_request(request);
    send(request);
    char answer = 0;
    INVARIANT(read(fd_, &answer, 1) == 1 && answer == 'S', "the server has TLS");
  }
  tls_ = SSL_new(context_);
  SSL_set_fd(tls_, fd_);
  if ((is_server_ ? SSL_accept(tls_) : SSL_connect(tls_)) != 1) ERR_print_errors_fp(stderr);
}

std::string BlockingPeer::peer_certificate_der() const {
  X509* certificate = SSL_get1_peer_certificate(tls_);
  if (!certificate) return {};
  unsigned char* der = nullptr;
  int size = i2d_X509(certificate, &der);
  std::string result(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  X509_free(certificate);
  return result;
}

void BlockingPeer::send(std::string_view bytes) {
  // A server that has refused us may have closed already; what it said is still to be read.
  while (!bytes.empty()) {
    ssize_t n = tls_ ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                     : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

bool BlockingPeer::fill() {
  char buffer[4096];
  ssize_t n = tls_ ? SSL_read(tls_, buffer, sizeof buffer) : read(fd_, buffer, sizeof buffer);
  if (n <= 0) return false;
  in_.append(buffer, static_cast<std::size_t>(n));
  return true;
}

std::optional<OwnedFrame> BlockingPeer::receive() {
  for (;;) {
    auto frame = peek_frame(in_, 1 << 24);
    INVARIANT(frame, "the other end sends frames");
    if (*frame) {
      OwnedFrame owned{(*frame)->type, std::string((*frame)->body)};
      in_.erase(0, (*frame)->size());
      return owned;
    }
    if (!fill()) return std::nullopt;
  }
}

std::optional<InitialPacketRead> BlockingPeer::receive_initial() {
  for (;;) {
    auto read = read_initial_packet(in_);
    INVARIANT(read, "the other end begins as a client does");
    if (*read) {
      in_.erase(0, (*read)->size);
      return std::move(*read);
    }
    if (!fill()) return std::nullopt;
  }
}

namespace {
tl::unexpected<Error> refused(std::string_view body) {
  auto report = read_error(body);
  if (!report) return fail(report.error());
  return fail(report->sqlstate, report->message, report->hint, report->detail);
}

Result<std::string> next_authentication(BlockingPeer& peer, AuthKind expected) {
  auto frame = peer.receive();
  if (!frame) return fail("08006", "closed");
  if (frame->type == server::kError) return refused(frame->body);
  KG_TRY(auto auth, read_authentication(frame->body));
  if (auth.kind != expected) return fail("08P01", "another authentication message was expected");
  return std::string(auth.data);
}

Status scram(BlockingPeer& peer, const Login& login, std::string_view offered, std::string& method) {
  KG_TRY(auto mechanisms, read_sasl_mechanisms(offered));
  bool plus = std::find(mechanisms.begin(), mechanisms.end(), kScramSha256Plus) != mechanisms.end();
  std::string binding;
  if (login.tls) {
    if (auto hash = tls_server_end_point(peer.peer_certificate_der())) binding = *hash;
    if (login.wrong_binding) binding = *login.wrong_binding;
  }
  ScramClient client =
      login.keys ? ScramClient(*login.keys, binding, plus) : ScramClient(login.password, binding, plus);
  method = client.mechanism();
  std::string out;
  append_sasl_initial(out, client.mechanism(), client.first());
  peer.send(out);
  KG_TRY(auto server_first, next_authentication(peer, AuthKind::kSaslContinue));
  KG_TRY(auto last, client.respond(server_first));
  out.clear();
  append_sasl_response(out, last);
  peer.send(out);
  KG_TRY(auto server_final, next_authentication(peer, AuthKind::kSaslFinal));
  KG_CHECK(client.verify(server_final));
  KG_TRY(auto ok, next_authentication(peer, AuthKind::kOk));
  return {};
}
}  // namespace

Result<LoggedIn> log_in(int port, const Login& login) {
  LoggedIn result{std::make_unique<BlockingPeer>(port), "trust"};
  BlockingPeer& peer = *result.peer;
  if (login.tls) peer.start_tls();
  std::string out;
  const std::pair<std::string, std::string> parameters[] = {
      {"user", login.user}, {"database", login.database}, {"client_encoding", login.encoding}};
  append_startup(out, parameters);
  peer.send(out);
  auto frame = peer.receive();
  if (!frame) return fail("08006", "closed");
  if (frame->type == server::kError) return refused(frame->body);
  KG_TRY(auto auth, read_authentication(frame->body));
  if (auth.kind == AuthKind::kSasl) {
    KG_CHECK(scram(peer, login, auth.data, result.method));
  } else if (auth.kind != AuthKind::kOk) {
    bool md5 = auth.kind == AuthKind::kMd5;
    result.method = md5 ? "md5" : "password";
    out.clear();
    append_password(out, md5 ? md5_response(login.user, login.password, auth.data) : login.password);
    peer.send(out);
    KG_TRY(auto ok, next_authentication(peer, AuthKind::kOk));
  }
  for (;;) {
    frame = peer.receive();
    if (!frame) return fail("08006", "closed");
    if (frame->type == server::kError) return refused(frame->body);
    if (frame->type == server::kReadyForQuery) return result;
  }
}

Result<std::string> ask(BlockingPeer& peer, std::string_view sql) {
  std::string out, first;
  append_query(out, sql);
  peer.send(out);
  bool have = false;
  std::optional<Error> error;
  while (auto frame = peer.receive()) {
    if (frame->type == server::kError) error = refused(frame->body).value();
    if (frame->type == server::kDataRow && !have) {
      KG_TRY(auto values, read_data_row(frame->body));
      if (!values.empty() && values[0]) first = *values[0];
      have = true;
    }
    if (frame->type == server::kReadyForQuery) {
      if (error) return fail(*error);
      return first;
    }
  }
  return fail("08006", "closed");
}

}  // namespace kintsugi::wire
