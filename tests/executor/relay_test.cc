// What a shard says, cut at every place: the same bytes to the client and the same knowledge afterwards,
// whether it comes at once, in two pieces, or byte by byte.
#include "executor/relay.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/base/io/scene.h"

namespace kintsugi::executor {
namespace {

namespace server = wire::server;
using wire::TransactionStatus;
constexpr std::uint64_t kMax = 1 << 20;

// Composes what a shard says.
struct Says {
  std::string bytes;
  Says& empty(char type) {
    wire::append_empty(bytes, type);
    return *this;
  }
  Says& columns(std::string_view name) {
    wire::append_row_description(bytes, std::vector<wire::Column>{{.name = name, .type_oid = 25}});
    return *this;
  }
  Says& row(std::string_view value) {
    const std::optional<std::string_view> values[] = {value};
    wire::append_data_row(bytes, values);
    return *this;
  }
  Says& tag(std::string_view text) {
    wire::append_command_complete(bytes, text);
    return *this;
  }
  Says& ready(TransactionStatus status = TransactionStatus::kIdle) {
    wire::append_ready_for_query(bytes, status);
    return *this;
  }
  Says& error(std::string_view severity, std::string_view state, std::string message) {
    wire::append_error(bytes, severity, Error{.sqlstate = std::string(state), .message = std::move(message)});
    return *this;
  }
  Says& notice(std::string message) {
    wire::append_notice(bytes, {.severity = "NOTICE", .sqlstate = "00000", .message = std::move(message)});
    return *this;
  }
  Says& parameter(std::string_view name, std::string_view value) {
    wire::append_parameter_status(bytes, name, value);
    return *this;
  }
  Says& notification() {
    wire::append_notification(bytes, {.pid = 7, .channel = "here", .payload = "now"});
    return *this;
  }
  Says& copy_start(char type) {
    wire::append_copy_start(bytes, type, {.binary = false, .column_formats = {0}});
    return *this;
  }
  Says& copy_data(std::string_view data) {
    wire::FrameWriter(bytes, server::kCopyData).bytes(data);
    return *this;
  }
};

// One conversation: what is expected, what the shard says, and what a client must read.
struct Conversation {
  std::function<void(Relay&, Outbox&, Backend&)> ask;
  std::string said;
  std::string heard;
  bool idle = true;
  std::function<void(Relay&, Backend&)> afterwards = [](Relay&, Backend&) {};
  std::string refused = "";  // what the Status says when the shard breaks the protocol
};

// The stream is as wide as the longest conversation, so that a flush never has to wait.
std::string hear(const Conversation& c, const std::vector<std::size_t>& cuts) {
  io::Pair pair;
  const int room = 1 << 20;
  setsockopt(pair.here.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  io::Stream to_client(std::move(pair.here));
  Backend backend;
  backend.shard = "s1";
  Relay relay(kMax);
  Outbox client;
  relay.begin(&backend);
  c.ask(relay, client, backend);
  EXPECT_EQ(client.flush(to_client).kind, io::IoResult::kOk);
  Status status;
  std::size_t at = 0;
  std::string heard;
  const auto drain = [&] {
    char buffer[65536];
    for (ssize_t got = 0; (got = recv(pair.there.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
      heard.append(buffer, static_cast<std::size_t>(got));
  };
  for (std::size_t i = 0; i <= cuts.size() && status; ++i) {
    const std::size_t end = i < cuts.size() ? cuts[i] : c.said.size();
    std::string chunk = std::exchange(backend.carry, {}) + c.said.substr(at, end - at);
    at = end;
    status = relay.on_chunk(chunk, client);
    EXPECT_EQ(client.flush(to_client).kind, io::IoResult::kOk);
    std::fill(chunk.begin(), chunk.end(), '!');  // nobody may look at it any more
    drain();
  }
  EXPECT_EQ(status ? "" : status.error().message, c.refused);
  if (!status) return heard;
  EXPECT_EQ(backend.carry, "");
  EXPECT_EQ(relay.idle(), c.idle);
  c.afterwards(relay, backend);
  return heard;
}

void holds_at_every_cut(const Conversation& c) {
  ASSERT_EQ(hear(c, {}), c.heard);
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < c.said.size(); ++i) {
    every.push_back(i);
    ASSERT_EQ(hear(c, {i}), c.heard) << "cut at " << i;
    if (::testing::Test::HasFailure()) FAIL() << "cut at " << i;
    if (i + 3 < c.said.size()) {
      ASSERT_EQ(hear(c, {i, i + 3}), c.heard) << "cut at " << i << " and 3 later";
    }
  }
  ASSERT_EQ(hear(c, every), c.heard) << "byte by byte";
}

std::string with_context(const std::string& error) {
  std::string out;
  const wire::Frame frame{error[0], std::string_view(error).substr(wire::kHeaderBytes)};
  wire::append_error_with_context(out, frame, "shard s1");
  return out;
}

ClientStatementRef handle_for(const std::string& text) {
  auto handle = std::make_shared<ClientStatement>();
  handle->statement = intern_prepared(text, "", "relay");
  return handle;
}

}  // namespace

TEST(Relay, ASimpleQueryPassesAsItIs) {
  const std::string said = Says()
                               .columns("a")
                               .row("one")
                               .notice("by the way")
                               .row(std::string(300, 'x'))
                               .parameter("TimeZone", "UTC")
                               .tag("SELECT 2")
                               .notification()
                               .empty(server::kEmptyQuery)
                               .ready(TransactionStatus::kInTransaction)
                               .bytes;
  holds_at_every_cut({.ask = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kQuery}, o); },
                      .said = said,
                      .heard = said,
                      .afterwards =
                          [](Relay&, Backend& b) {
                            EXPECT_EQ(b.status, TransactionStatus::kInTransaction);
                            EXPECT_EQ(*b.reported->find("TimeZone"), "UTC");
                          }});
}

TEST(Relay, WhatTheRouterAskedForItselfIsSwallowed) {
  auto handle = handle_for("SELECT 1");
  const std::string hidden =
      Says().empty(server::kCloseComplete).empty(server::kParseComplete).notice("hidden").columns("a").bytes;
  const std::string shown =
      Says().empty(server::kBindComplete).row("1").row("2").empty(server::kPortalSuspended).ready().bytes;
  holds_at_every_cut(
      {.ask =
           [handle](Relay& r, Outbox& o, Backend& b) {
             handle->answered = false;
             handle->shape = 0;
             b.prepared.add(handle->statement);
             r.expect({.kind = Expected::kClose, .from = Expected::kHidden}, o);
             r.expect({.kind = Expected::kParse, .from = Expected::kHidden, .handle = handle}, o);
             r.expect({.kind = Expected::kDescribe, .from = Expected::kHidden, .handle = handle}, o);
             r.expect({.kind = Expected::kBind}, o);
             r.expect({.kind = Expected::kExecute}, o);
             r.expect({.kind = Expected::kSync}, o);
           },
       .said = hidden + shown,
       .heard = shown,
       .afterwards =
           [handle](Relay&, Backend& b) {
             EXPECT_TRUE(handle->answered);
             EXPECT_TRUE(b.prepared.find(handle->statement->id)->confirmed);
             EXPECT_GT(b.prepared.find(handle->statement->id)->shape, kNoRows);
           }});
}

TEST(Relay, WhatTheRouterAnswersComesInItsTurn) {
  const std::string own = Says().empty(server::kCloseComplete).bytes;
  const std::string before = Says().empty(server::kParseComplete).bytes;
  const std::string after = Says().empty(server::kBindComplete).tag("SELECT 0").ready().bytes;
  holds_at_every_cut({.ask =
                          [own](Relay& r, Outbox& o, Backend&) {
                            r.expect({.kind = Expected::kClose, .from = Expected::kRouter, .answer = own},
                                     o);  // at once
                            r.expect({.kind = Expected::kParse}, o);
                            r.expect({.kind = Expected::kClose, .from = Expected::kRouter, .answer = own}, o);
                            r.expect({.kind = Expected::kClose, .from = Expected::kRouter, .answer = own}, o);
                            r.expect({.kind = Expected::kBind}, o);
                            r.expect({.kind = Expected::kExecute}, o);
                            r.expect({.kind = Expected::kSync}, o);
                            r.expect({.kind = Expected::kClose, .from = Expected::kRouter, .answer = own}, o);
                          },
                      .said = before + after,
                      .heard = own + before + own + own + after + own});
}

TEST(Relay, AnErrorNamesTheShardAndEndsThePipeline) {
  auto handle = handle_for("SELECT 'skipped'");
  const std::string error = Says().error("ERROR", "22012", "division by zero").bytes;
  const std::string before = Says().empty(server::kParseComplete).empty(server::kBindComplete).bytes;
  const std::string after = Says().ready().bytes;
  holds_at_every_cut({.ask =
                          [handle](Relay& r, Outbox& o, Backend& b) {
                            handle->failed = false;
                            b.prepared.add(handle->statement);
                            r.expect({.kind = Expected::kParse}, o);
                            r.expect({.kind = Expected::kBind}, o);
                            r.expect({.kind = Expected::kExecute}, o);
                            r.expect({.kind = Expected::kParse, .handle = handle}, o);
                            r.expect({.kind = Expected::kParse, .unnamed = 5}, o);
                            r.expect({.kind = Expected::kSync}, o);
                          },
                      .said = before + error + after,
                      .heard = before + with_context(error) + after,
                      .afterwards =
                          [handle](Relay& r, Backend& b) {
                            EXPECT_TRUE(handle->failed);
                            EXPECT_EQ(b.prepared.find(handle->statement->id), nullptr);
                            EXPECT_EQ(r.take_events().unnamed_failed, 5U);
                            EXPECT_FALSE(r.skipping());
                          }});
}

TEST(Relay, AfterAnErrorWithoutASyncEverythingIsSkipped) {
  const std::string error = Says().error("ERROR", "42601", "syntax error").bytes;
  holds_at_every_cut({.ask =
                          [](Relay& r, Outbox& o, Backend&) {
                            r.expect({.kind = Expected::kParse}, o);
                            r.expect({.kind = Expected::kBind}, o);
                          },
                      .said = error,
                      .heard = with_context(error),
                      .afterwards = [](Relay& r, Backend&) { EXPECT_TRUE(r.skipping()); }});
}

TEST(Relay, APoisonedStatementFailsWithTheRoutersError) {
  const std::string ours = Says().error("ERROR", "0A000", "not across shards").bytes;
  const std::string theirs = Says().error("ERROR", "42601", "syntax error at or near \"kintsugi\"").bytes;
  const std::string end = Says().ready(TransactionStatus::kFailed).bytes;
  for (const auto kind : {Expected::kParse, Expected::kQuery}) {
    holds_at_every_cut(
        {.ask =
             [kind, ours](Relay& r, Outbox& o, Backend&) {
               r.expect({.kind = kind, .from = Expected::kPoison, .answer = ours}, o);
               if (kind == Expected::kParse) r.expect({.kind = Expected::kSync}, o);
             },
         .said = theirs + end,
         .heard = ours + end,
         .afterwards = [](Relay&, Backend& b) { EXPECT_EQ(b.status, TransactionStatus::kFailed); }});
  }
}

TEST(Relay, LastWordsAreKeptForTheSession) {
  holds_at_every_cut({.ask = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kQuery}, o); },
                      .said = Says().columns("a").error("FATAL", "57P01", "terminating connection").bytes,
                      .heard = Says().columns("a").bytes,
                      .idle = false,
                      .afterwards =
                          [](Relay& r, Backend& b) {
                            ASSERT_TRUE(r.last_words().has_value());
                            EXPECT_EQ(r.last_words()->sqlstate, "57P01");
                            EXPECT_TRUE(b.broken);
                            Outbox nowhere;
                            (void)r.abandon(*r.last_words(), nowhere);
                            EXPECT_TRUE(r.idle());
                          }});
}

TEST(Relay, CopyOutAndIn) {
  const std::string out = Says()
                              .copy_start(server::kCopyOut)
                              .copy_data("1\tone\n")
                              .copy_data(std::string(200, 'c'))
                              .empty(server::kCopyDone)
                              .tag("COPY 2")
                              .ready()
                              .bytes;
  const auto query = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kQuery}, o); };
  holds_at_every_cut({.ask = query, .said = out, .heard = out});
  const std::string in = Says().copy_start(server::kCopyIn).bytes;
  holds_at_every_cut(
      {.ask = query, .said = in, .heard = in, .idle = false, .afterwards = [](Relay& r, Backend&) {
         EXPECT_TRUE(r.in_copy());
         EXPECT_TRUE(r.swallows_sync());
         r.copy_end_sent();
         EXPECT_FALSE(r.swallows_sync());
         Outbox nowhere;
         (void)r.abandon({}, nowhere);
       }});
}

TEST(Relay, WhatItSawIsAnEvent) {
  const auto query = [](Relay& r, Outbox& o, Backend& b) {
    b.prepared.add(intern_prepared("SELECT 'dropped with all'", "", ""));
    r.expect({.kind = Expected::kQuery}, o);
  };
  const struct {
    const char* tag;
    bool ddl, all, deallocate_all;
    int deallocates;
    std::size_t left;
  } cases[] = {{"CREATE TABLE", true, false, false, 0, 1},   {"ALTER TABLE", true, false, false, 0, 1},
               {"DROP INDEX", true, false, false, 0, 1},     {"DO", true, false, false, 0, 1},
               {"SELECT 1", false, false, false, 0, 1},      {"DISCARD ALL", false, true, false, 0, 0},
               {"DEALLOCATE ALL", false, false, true, 0, 0}, {"DEALLOCATE", false, false, false, 1, 1},
               {"DELETE 3", false, false, false, 0, 1},      {"", false, false, false, 0, 1}};
  for (const auto& c : cases) {
    const std::string said = Says().tag(c.tag).ready().bytes;
    const std::uint64_t before = schema_generation();
    holds_at_every_cut({.ask = query, .said = said, .heard = said, .afterwards = [&](Relay& r, Backend& b) {
                          const RelayEvents events = r.take_events();
                          EXPECT_EQ(events.ddl, c.ddl) << c.tag;
                          EXPECT_EQ(events.discard_all, c.all) << c.tag;
                          EXPECT_EQ(events.deallocate_all, c.deallocate_all) << c.tag;
                          EXPECT_EQ(events.deallocates, c.deallocates) << c.tag;
                          EXPECT_EQ(b.prepared.size(), c.left) << c.tag;
                        }});
    EXPECT_EQ(schema_generation() > before, c.ddl) << c.tag;
  }
}

TEST(Relay, AShardThatBreaksTheProtocolIsFound) {
  const auto query = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kQuery}, o); };
  holds_at_every_cut(
      {.ask = query, .said = std::string("T\0\0\0\x02", 5), .heard = "", .refused = "invalid message length"});
  holds_at_every_cut({.ask = query,
                      .said = Says().empty('?').bytes,
                      .heard = "",
                      .refused = "shard s1 sent an unexpected message of type \"?\""});
  holds_at_every_cut({.ask = [](Relay&, Outbox&, Backend&) {},
                      .said = Says().ready().bytes,
                      .heard = "",
                      .refused = "shard s1 was ready out of turn"});
  holds_at_every_cut({.ask = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kBind}, o); },
                      .said = Says().ready().bytes,
                      .heard = "",
                      .refused = "shard s1 was ready out of turn"});
}

// Rows may be of any length: they pass in pieces. What has to be seen whole has a bound.
TEST(Relay, ARowIsNotKeptAndANoticeIsBounded) {
  const std::string said = Says().row(std::string(3 << 20, 'r')).tag("SELECT 1").ready().bytes;
  const auto query = [](Relay& r, Outbox& o, Backend&) { r.expect({.kind = Expected::kQuery}, o); };
  Backend backend;
  Relay relay(kMax);
  Outbox client;
  relay.begin(&backend);
  query(relay, client, backend);
  ASSERT_TRUE(relay.on_chunk(std::string_view(said).substr(0, 60000), client));
  EXPECT_EQ(backend.carry, "");
  EXPECT_TRUE(relay.within_message());
  EXPECT_EQ(client.kept_bytes(), 0U) << "passed, not copied";
  client.clear();
  const std::string notice = Says().notice(std::string(kMax, 'n')).bytes;
  Relay other(kMax);
  other.begin(&backend);
  query(other, client, backend);
  const Status status = other.on_chunk(std::string_view(notice).substr(0, 1000), client);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().sqlstate, "54000");
}

TEST(Relay, WhatIsAbandonedIsAnsweredOnceForEveryEnd) {
  const Error lost{.sqlstate = "KG005", .message = "lost"};
  const std::string told = Says().error("ERROR", "KG005", "lost").ready().bytes;
  const auto heard = [&](std::vector<Expected::Kind> kinds, bool* skip) {
    io::Pair pair;
    io::Stream to(std::move(pair.here));
    Backend backend;
    Relay relay(kMax);
    Outbox client;
    relay.begin(&backend);
    for (auto kind : kinds) relay.expect({.kind = kind}, client);
    *skip = relay.abandon(lost, client);
    EXPECT_TRUE(relay.idle());
    (void)client.flush(to);
    char buffer[4096];
    const ssize_t got = recv(pair.there.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : std::string();
  };
  bool skip = false;
  using E = Expected;
  EXPECT_EQ(heard({E::kQuery}, &skip), told);
  EXPECT_FALSE(skip);
  EXPECT_EQ(heard({E::kParse, E::kBind, E::kExecute, E::kSync, E::kSync}, &skip), told + told);
  EXPECT_FALSE(skip);
  EXPECT_EQ(heard({E::kParse, E::kBind}, &skip), Says().error("ERROR", "KG005", "lost").bytes);
  EXPECT_TRUE(skip) << "what comes up to the next Sync is to be ignored";
  EXPECT_EQ(heard({}, &skip), "");
  EXPECT_FALSE(skip);
}

}  // namespace kintsugi::executor
