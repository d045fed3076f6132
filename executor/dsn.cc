#include "executor/dsn.h"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "base/invariant.h"

namespace kintsugi::executor {
namespace {

// Taken by libpq and without a meaning here: each is a matter of libpq itself, or what it asks for is so
// anyway.
constexpr std::array kIgnored = {"application_name",
                                 "fallback_application_name",
                                 "client_encoding",
                                 "connect_timeout",
                                 "keepalives",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 "tcp_user_timeout",
                                 "sslcompression",
                                 "sslsni",
                                 "gssencmode",
                                 "replication",
                                 "ssl_min_protocol_version",
                                 "ssl_max_protocol_version"};

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Result<SslMode> parse_ssl_mode(std::string_view text) {
  if (text == "disable") return SslMode::kDisable;
  if (text == "allow") return SslMode::kAllow;
  if (text == "prefer") return SslMode::kPrefer;
  if (text == "require") return SslMode::kRequire;
  if (text == "verify-ca") return SslMode::kVerifyCa;
  if (text == "verify-full") return SslMode::kVerifyFull;
  return fail(sqlstate::kInvalidParameter, "sslmode \"" + std::string(text) + "\" is not known",
              "Use disable, allow, prefer, require, verify-ca or verify-full.");
}

struct Hosts {
  std::string host, hostaddr, port;
};

Status combine(Dsn& dsn, const Hosts& given) {
  // hostaddr says where to connect without a look-up; host then only names the server for TLS. With one of them
  // given that one serves for both.
  const std::vector<std::string> names = split_list(given.host.empty() ? given.hostaddr : given.host);
  const std::vector<std::string> addresses = split_list(given.hostaddr.empty() ? given.host : given.hostaddr);
  if (addresses.size() != names.size()) {
    return fail(sqlstate::kInvalidParameter,
                "the DSN names " + std::to_string(names.size()) + " hosts but " +
                    std::to_string(addresses.size()) + " host addresses",
                "Give one hostaddr a host, or leave one of the two out.");
  }
  const std::vector<std::string> ports = split_list(given.port);
  if (ports.size() != 1 && ports.size() != names.size()) {
    return fail(sqlstate::kInvalidParameter,
                "the DSN names " + std::to_string(names.size()) + " hosts but " + std::to_string(ports.size()) +
                    " ports",
                "Give one port for all hosts, or one a host.");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& port = ports.size() == 1 ? ports.front() : ports[i];
    const std::string& address = addresses[i].empty() ? names[i] : addresses[i];
    io::HostPort at{address.empty() ? "localhost" : address, 5432};
    if (!port.empty()) {
      auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), at.port);
      if (error != std::errc() || end != port.data() + port.size() || at.port < 1 || at.port > 65535) {
        return fail(sqlstate::kInvalidParameter, "port \"" + port + "\" is not a number from 1 to 65535");
      }
    }
    dsn.names.push_back(names[i].empty() ? at.host : names[i]);
    dsn.hosts.push_back(std::move(at));
  }
  return {};
}

Status take(Dsn& dsn, Hosts& hosts, std::string_view keyword, std::string value) {
  if (keyword == "host")
    hosts.host = std::move(value);
  else if (keyword == "hostaddr")
    hosts.hostaddr = std::move(value);
  else if (keyword == "port")
    hosts.port = std::move(value);
  else if (keyword == "dbname")
    dsn.dbname = std::move(value);
  else if (keyword == "user")
    dsn.user = std::move(value);
  else if (keyword == "password")
    dsn.password = std::move(value);
  else if (keyword == "sslrootcert")
    dsn.ssl_root_cert = value == "system" ? "" : std::move(value);
  else if (keyword == "sslcert")
    dsn.ssl_cert = std::move(value);
  else if (keyword == "sslkey")
    dsn.ssl_key = std::move(value);
  else if (keyword == "options")
    dsn.options = std::move(value);
  else if (keyword == "channel_binding")
    dsn.require_channel_binding = value == "require";
  else if (keyword == "sslmode") {
    KG_TRY(dsn.ssl_mode, parse_ssl_mode(value));
  } else if (keyword == "target_session_attrs") {
    if (value != "any" && value != "read-write" && value != "primary") {
      return fail(sqlstate::kNotSupported, "target_session_attrs \"" + value + "\" makes no sense for a shard",
                  "A shard has to take writes: use any, read-write or primary.");
    }
    dsn.require_read_write = value != "any";
  } else if (std::none_of(kIgnored.begin(), kIgnored.end(), [&](const char* k) { return keyword == k; })) {
    return fail(sqlstate::kNotSupported, "the DSN keyword \"" + std::string(keyword) + "\" is not supported",
                "Leave it out. Supported: host, hostaddr, port, dbname, user, password, options, sslmode, "
                "sslrootcert, sslcert, sslkey, channel_binding, target_session_attrs.");
  }
  return {};
}

}  // namespace

Result<Dsn> Dsn::parse(std::string_view text) {
  char* message = nullptr;
  std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(std::string(text).c_str(), &message), PQconninfoFree);
  if (!options) {
    std::string why = message != nullptr ? message : "out of memory";
    PQfreemem(message);
    while (!why.empty() && why.back() == '\n') why.pop_back();
    // libpq quotes the offending piece, and that may be half a password.
    if (why.starts_with("missing \"=\""))
      why = "a \"=\" is missing";
    else if (const std::size_t quote = why.find('"'); quote != std::string::npos)
      why = why.substr(0, quote) + "...";
    return fail(
        sqlstate::kInvalidParameter, "the DSN cannot be read: " + why,
        "Write it as PostgreSQL does: 'host=... port=5432 dbname=... user=...' or postgresql://user@host/db.");
  }
  Dsn dsn;
  Hosts hosts;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr || option->val[0] == '\0') continue;
    KG_CHECK(take(dsn, hosts, option->keyword, option->val));
  }
  KG_CHECK(combine(dsn, hosts));
  if (dsn.dbname.empty()) {
    return fail(sqlstate::kInvalidParameter, "the DSN names no database", "Add dbname=...");
  }
  if (dsn.ssl_mode == SslMode::kVerifyFull || dsn.ssl_mode == SslMode::kVerifyCa) {
    for (const io::HostPort& at : dsn.hosts) {
      if (at.host.starts_with('/')) {
        return fail(sqlstate::kInvalidParameter,
                    "sslmode verify-ca and verify-full cannot be used on a unix socket");
      }
    }
  }
  return dsn;
}

const std::string& Dsn::name_of(const io::HostPort& host) const {
  const auto at = std::find(hosts.begin(), hosts.end(), host);
  INVARIANT(at != hosts.end(), "a shard is reached at one of its DSN's hosts");
  return names[static_cast<std::size_t>(at - hosts.begin())];
}

std::string Dsn::to_string() const {
  std::string text;
  for (const io::HostPort& at : hosts) text += (text.empty() ? "" : ",") + at.to_string();
  return text + "/" + dbname;
}

}  // namespace kintsugi::executor
