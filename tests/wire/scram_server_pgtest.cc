// libpq, in the shape of psql, logs in to our server's side of SCRAM.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/wire/real_postgres.h"

namespace kintsugi::wire {
namespace {

// Takes one client, asks for SCRAM, and answers its query with one row.
class OneClientServer {
 public:
  OneClientServer(ScramVerifier verifier, const std::string& certificate) : verifier_(std::move(verifier)) {
    context_ = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate_file(context_, (certificate + ".crt").c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context_, (certificate + ".key").c_str(), SSL_FILETYPE_PEM);
    unsigned char* der = nullptr;
    int size = i2d_X509(SSL_CTX_get0_certificate(context_), &der);
    binding_ = tls_server_end_point({reinterpret_cast<char*>(der), static_cast<std::size_t>(size)}).value();
    OPENSSL_free(der);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    listen(listener_, 1);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { outcome_ = serve(); });
  }
  ~OneClientServer() {
    if (thread_.joinable()) thread_.join();
    SSL_CTX_free(context_);
    close(listener_);
  }
  [[nodiscard]] int port() const { return port_; }
  // How the client was taken: its mechanism, or the error.
  Result<std::string> outcome() {
    thread_.join();
    return outcome_;
  }

 private:
  Result<std::string> serve() {
    BlockingPeer peer(accept(listener_, nullptr, nullptr), context_);
    auto initial = peer.receive_initial();
    bool tls = initial && std::holds_alternative<SslRequest>(initial->packet);
    if (tls) {
      peer.send("S");
      peer.start_tls();
      initial = peer.receive_initial();
    }
    if (!initial || !std::holds_alternative<StartupMessage>(initial->packet))
      return fail("08P01", "no startup packet");
    auto result = authenticate(peer, tls);
    std::string out;
    if (!result) {
      append_error(out, "FATAL", result.error());
      peer.send(out);
      return result;
    }
    append_authentication(out, AuthKind::kOk);
    append_ready_for_query(out, TransactionStatus::kIdle);
    peer.send(out);
    auto query = peer.receive();
    if (!query || query->type != client::kQuery) return fail("08P01", "no query");
    out.clear();
    const Column columns[] = {{"greeting", 0, 0, 25, -1, -1, 0}};
    const std::optional<std::string_view> row[] = {"hello from wire"};
    append_row_description(out, columns);
    append_data_row(out, row);
    append_command_complete(out, "SELECT 1");
    append_ready_for_query(out, TransactionStatus::kIdle);
    peer.send(out);
    return result;
  }

  Result<std::string> authenticate(BlockingPeer& peer, bool tls) {
    ScramServer scram(verifier_, tls ? binding_ : "");
    std::string out;
    std::vector<std::string_view> mechanisms{kScramSha256};
    if (tls) mechanisms.insert(mechanisms.begin(), kScramSha256Plus);
    append_sasl_mechanisms(out, mechanisms);
    peer.send(out);
    auto answer = peer.receive();
    if (!answer) return fail("08006", "closed");
    KG_TRY(auto initial, read_sasl_initial(answer->body));
    std::string mechanism(initial.mechanism);
    KG_TRY(auto server_first, scram.first(initial.mechanism, initial.data.value_or("")));
    out.clear();
    append_authentication(out, AuthKind::kSaslContinue, server_first);
    peer.send(out);
    answer = peer.receive();
    if (!answer) return fail("08006", "closed");
    KG_TRY(auto server_final, scram.final(answer->body));
    out.clear();
    append_authentication(out, AuthKind::kSaslFinal, server_final);
    peer.send(out);
    return mechanism;
  }

  ScramVerifier verifier_;
  SSL_CTX* context_ = nullptr;
  std::string binding_;
  int listener_ = -1, port_ = 0;
  std::thread thread_;
  Result<std::string> outcome_ = fail("00000", "not yet");
};

// A folder with ours.crt and ours.key, gone with the object.
class OwnCertificate {
 public:
  explicit OwnCertificate(const std::string& hash) {
    std::string name = (std::filesystem::temp_directory_path() / "kg_wire_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::string command = "openssl req -x509 -nodes -days 2 -subj /CN=localhost -newkey rsa:2048 -" + hash +
                          " -keyout " + path() + ".key -out " + path() + ".crt 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  ~OwnCertificate() { std::filesystem::remove_all(folder_); }
  OwnCertificate(const OwnCertificate&) = delete;
  OwnCertificate& operator=(const OwnCertificate&) = delete;
  [[nodiscard]] std::string path() const { return (folder_ / "ours").string(); }

 private:
  std::filesystem::path folder_;
};

std::string psql(int port, const std::string& password, const std::string& settings) {
  std::string command = "LC_ALL=C PGPASSWORD='" + password +
                        "' PGCONNECT_TIMEOUT=15 /usr/lib/postgresql/15/bin/psql -X -A -t -c 'select 1' "
                        "'host=127.0.0.1 user=app dbname=app gssencmode=disable port=" +
                        std::to_string(port) + " " + settings + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  char buffer[512];
  while (std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  pclose(pipe);
  return output;
}

}  // namespace

TEST(ScramServerPg, PsqlLogsInPlainAndBound) {
  OwnCertificate ours("sha384");
  std::string certificate = ours.path();
  auto verifier = ScramVerifier::from_password("p\xC3\xA4ss wörd");
  struct Case {
    const char *settings, *mechanism;
  };
  for (const auto& [settings, mechanism] :
       {Case{"sslmode=disable", "SCRAM-SHA-256"},
        Case{"sslmode=require channel_binding=disable", "SCRAM-SHA-256"},
        Case{"sslmode=require channel_binding=require", "SCRAM-SHA-256-PLUS"}}) {
    OneClientServer server(verifier, certificate);
    EXPECT_EQ(psql(server.port(), "p\xC3\xA4ss wörd", settings), "hello from wire\n") << settings;
    EXPECT_EQ(server.outcome().value(), mechanism) << settings;

    OneClientServer strict(verifier, certificate);
    EXPECT_NE(psql(strict.port(), "pass", settings).find("FATAL:  password authentication failed"),
              std::string::npos);
    EXPECT_EQ(strict.outcome().error().sqlstate, "28P01");
  }
}

TEST(ScramServerPg, PsqlRefusesAServerThatDoesNotKnowIt) {
  OwnCertificate ours("sha256");
  std::string certificate = ours.path();
  // It has the stored key, so it takes the proof; it has not the server key, so it cannot answer it.
  auto verifier = ScramVerifier::from_password("secret");
  verifier.server_key = std::string(32, 'x');
  OneClientServer server(verifier, certificate);
  EXPECT_NE(psql(server.port(), "secret", "sslmode=disable").find("incorrect server signature"),
            std::string::npos);
}

}  // namespace kintsugi::wire
