#include "tests/frontend/front.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>

namespace kintsugi::fronttest {
namespace {

using Clock = std::chrono::steady_clock;

int dial(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

std::string show(const Message& message) {
  std::string text(1, message.type);
  switch (message.type) {
    case 'E': return text + "(" + wire::read_error(message.body)->sqlstate + ")";
    case 'N': return text + "(" + wire::read_error(message.body)->message + ")";
    case 'C': return text + "(" + std::string(*wire::read_command_complete(message.body)) + ")";
    case 'Z': return text + "(" + message.body + ")";
    case 'A': return text + "(" + std::string(wire::read_notification(message.body)->channel) + ")";
    case 'D': {
      std::string values;
      const auto row = wire::read_data_row(message.body);
      for (const auto& value : *row) {
        values += (values.empty() ? "" : "|") + (value ? std::string(value->substr(0, 80)) : "NULL");
      }
      return text + "(" + values + ")";
    }
    default: return text;
  }
}

}  // namespace

std::string trace(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) {
    if (message.type == 'S') continue;
    text += (text.empty() ? "" : " ") + show(message);
  }
  return text;
}

Batch& Batch::query(std::string_view sql) {
  wire::append_query(bytes, sql);
  return *this;
}
Batch& Batch::parse(std::string_view name, std::string_view sql) {
  wire::append_parse(bytes, name, sql, {});
  return *this;
}
Batch& Batch::bind(std::string_view portal, std::string_view statement,
                   const std::vector<std::string>& values) {
  wire::BindValues given;
  for (const std::string& value : values) given.values.push_back({false, false, value});
  wire::append_bind(bytes, portal, statement, given);
  return *this;
}
Batch& Batch::describe(char kind, std::string_view name) {
  wire::append_describe(bytes, kind, name);
  return *this;
}
Batch& Batch::execute(std::string_view portal, int max_rows) {
  wire::append_execute(bytes, portal, max_rows);
  return *this;
}
Batch& Batch::close(char kind, std::string_view name) {
  wire::append_close(bytes, kind, name);
  return *this;
}
Batch& Batch::sync() {
  wire::append_sync(bytes);
  return *this;
}
Batch& Batch::flush() {
  wire::append_flush(bytes);
  return *this;
}
Batch& Batch::copy_data(std::string_view data) {
  wire::append_copy_data(bytes, data);
  return *this;
}
Batch& Batch::copy_done() {
  wire::append_copy_done(bytes);
  return *this;
}
Batch& Batch::copy_fail(std::string_view why) {
  wire::append_copy_fail(bytes, why);
  return *this;
}
Batch& Batch::run(std::string_view sql) {
  return parse("", sql).bind("", "").execute();
}

RawClient::RawClient(int port, const Parameters& more, bool wait_ready) : port_(port), fd_(dial(port)) {
  Parameters all = {{"user", "postgres"}, {"database", "app"}};
  all.insert(all.end(), more.begin(), more.end());
  std::string hello;
  wire::append_startup(hello, all);
  send(hello);
  while (wait_ready) {
    const auto message = next(20000);
    if (!message) throw std::runtime_error("the connection ended during login");
    if (message->type == 'E') throw std::runtime_error("login: " + wire::read_error(message->body)->message);
    if (message->type == 'K') key_ = *wire::read_backend_key(message->body);
    if (message->type == 'Z') break;
  }
}

RawClient::~RawClient() {
  close();
}

void RawClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) throw std::runtime_error("cannot send");
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

std::optional<Message> RawClient::next(int timeout_ms) {
  const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    if (auto frame = wire::peek_frame(in_, UINT32_MAX); frame && *frame) {
      Message message{(*frame)->type, std::string((*frame)->body)};
      in_.erase(0, (*frame)->size());
      return message;
    } else if (!frame) {
      throw std::runtime_error("not a message");
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd waiting{fd_, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left)) == 0)
      throw std::runtime_error("nothing came in time");
    char buffer[65536];
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got <= 0) return std::nullopt;
    in_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string RawClient::until_ready(int n, int timeout_ms) {
  std::vector<Message> messages;
  while (n > 0) {
    std::optional<Message> message;
    try {
      message = next(timeout_ms);
    } catch (const std::runtime_error&) {
      return trace(messages) + " TIMEOUT";
    }
    if (!message) return trace(messages) + " EOF";
    if (message->type == 'Z') --n;
    messages.push_back(std::move(*message));
  }
  return trace(messages);
}

std::string RawClient::until(char type, int timeout_ms) {
  std::vector<Message> messages;
  for (;;) {
    std::optional<Message> message;
    try {
      message = next(timeout_ms);
    } catch (const std::runtime_error&) {
      return trace(messages) + " TIMEOUT";
    }
    if (!message) return trace(messages) + " EOF";
    messages.push_back(std::move(*message));
    if (messages.back().type == type) return trace(messages);
  }
}

std::string RawClient::within(int milliseconds) {
  std::vector<Message> messages;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    try {
      auto message = next(static_cast<int>(std::max<long>(left, 0)));
      if (!message) return trace(messages) + " EOF";
      messages.push_back(std::move(*message));
    } catch (const std::runtime_error&) {
      return trace(messages);
    }
  }
}

std::string RawClient::query(std::string_view sql) {
  return exchange(Batch().query(sql));
}

std::string RawClient::exchange(const Batch& batch, int ready) {
  send(batch);
  return until_ready(ready);
}

std::string RawClient::value(std::string_view sql) {
  const std::string all = query(sql);
  const std::size_t at = all.find("D(");
  if (at == std::string::npos) throw std::runtime_error(std::string(sql) + " gave " + all);
  const std::size_t end = all.find(") C(", at);
  return all.substr(at + 2, end - at - 2);
}

void RawClient::cancel() const {
  const int fd = dial(port_);
  std::string request;
  wire::append_cancel_request(request, {.pid = key_.pid, .secret = key_.secret});
  if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) throw std::runtime_error("cannot send");
  char byte = 0;
  while (recv(fd, &byte, 1, 0) > 0) {
  }
  ::close(fd);
}

pgtest::Cluster& cluster() {
  static const std::unique_ptr<pgtest::Cluster> instance = [] {
    std::signal(SIGPIPE, SIG_IGN);
    auto made = std::make_unique<pgtest::Cluster>();
    pgtest::psql(made->dsn(), "CREATE DATABASE app");
    return made;
  }();
  return *instance;
}

void wait_until_runs(const std::string& text) {
  RawClient watcher(cluster().port());
  // In two parts, so that this statement does not contain it.
  const std::string sql = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%" +
                          text.substr(0, text.size() / 2) + "' || '" + text.substr(text.size() / 2) + "%'";
  const auto end = Clock::now() + std::chrono::milliseconds(kAnswer_ms);
  while (watcher.value(sql) == "0") {
    if (Clock::now() > end) throw std::runtime_error("never ran: " + text);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::string direct(const std::string& sql) {
  return pgtest::psql(cluster().dsn("app"), sql);
}

Front::Front(const std::function<void(Config&)>& adjust) {
  Config config;
  config.server.listen = "127.0.0.1:0";
  config.server.threads = 1;
  config.shards.push_back({.name = "s1", .dsn = cluster().dsn("app")});
  if (adjust) adjust(config);
  auto started = frontend::Server::start(config);
  if (!started) throw std::runtime_error(started.error().to_string());
  server_ = std::move(*started);
  const std::string address = server_->address();
  port_ = std::stoi(address.substr(address.rfind(':') + 1));
}

Front::~Front() {
  server_->shutdown(std::chrono::milliseconds(0));
}

}  // namespace kintsugi::fronttest
