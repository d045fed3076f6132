// Several databases of one real PostgreSQL as shards, connections to them, and what they said as text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/dsn.h"
#include "tests/executor/scene.h"
#include "tests/pg/cluster.h"
#include "wire/server_messages.h"

namespace kintsugi::executor {

inline constexpr int kShards = 3;

class Shards {
 public:
  static Shards& get() {
    static Shards shards;
    return shards;
  }
  [[nodiscard]] pgtest::Cluster& cluster() { return cluster_; }
  static std::string name(int shard) { return "s" + std::to_string(shard + 1); }
  [[nodiscard]] std::string dsn(int shard) const { return cluster_.dsn(name(shard)); }
  // On all of them; "$S" stands for the shard's number from 1.
  void sql(const std::string& text) {
    for (int i = 0; i < kShards; ++i) on(i, text);
  }
  std::string on(int shard, std::string text) {
    for (std::size_t at; (at = text.find("$S")) != std::string::npos;)
      text.replace(at, 2, std::to_string(shard + 1));
    return pgtest::psql(dsn(shard), text);
  }

 private:
  Shards() {
    for (int i = 0; i < kShards; ++i) pgtest::psql(cluster_.dsn(), "CREATE DATABASE " + name(i));
  }
  pgtest::Cluster cluster_;
};

inline std::shared_ptr<const ShardLogin> login_to(int shard) {
  auto dsn = Dsn::parse(Shards::get().dsn(shard));
  if (!dsn) throw std::runtime_error(dsn.error().message);
  auto login = ShardLogin::make(Shards::name(shard), *dsn, "", "", std::nullopt);
  if (!login) throw std::runtime_error(login.error().message);
  return *login;
}

// Connections to all shards, for as long as it lives.
struct Links {
  std::vector<std::unique_ptr<Backend>> backends;
  Backend* operator[](int shard) { return backends.at(static_cast<std::size_t>(shard)).get(); }
};
inline io::Task<Links> link_up(io::Waiter* waiter) {
  Links links;
  for (int i = 0; i < kShards; ++i) {
    auto connecting = connect_shard(login_to(i), Settings::none(), waiter, patience());
    auto backend = co_await std::move(connecting);
    if (!backend) throw std::runtime_error(backend.error().message);
    (*backend)->stream.set_target(waiter);
    links.backends.push_back(std::move(*backend));
  }
  co_return links;
}

// "T(a:23 b:25) D(1|x) D(2|NULL)": what a client would have got.
inline std::string trace(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto next = wire::peek_frame(bytes, UINT32_MAX);
    if (!next || !next->has_value()) return text + " <damaged>";
    const wire::Frame frame = **next;
    if (!text.empty()) text += ' ';
    text += frame.type;
    if (frame.type == 'T') {
      std::string columns;
      const auto described = wire::read_row_description(frame.body);
      for (const auto& column : *described) {
        columns +=
            (columns.empty() ? "" : " ") + std::string(column.name) + ":" + std::to_string(column.type_oid);
      }
      text += "(" + columns + ")";
    } else if (frame.type == 'D') {
      std::string values;
      bool first = true;
      const auto row = wire::read_data_row(frame.body);
      for (const auto& value : *row) {
        values += (std::exchange(first, false) ? "" : "|") + (value ? std::string(*value) : "NULL");
      }
      text += "(" + values + ")";
    } else if (frame.type == 'E' || frame.type == 'N') {
      const auto report = wire::read_error(frame.body);
      text += "(" + report->sqlstate + " " + report->message +
              (report->context.empty() ? "" : " @ " + report->context) + ")";
    }
    bytes.remove_prefix(frame.size());
  }
  return text;
}

}  // namespace kintsugi::executor
