#include "admin/commands/audit.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/log.h"

namespace kintsugi::admin {
namespace {

constexpr const char* kAudit = "audit";
constexpr std::size_t kWhatBytesMax = 4000;
constexpr int kPruneEvery = 100;
constexpr int kDenialsAMinute = 40;

// Keys are in the order of time; "2026-11-18T15:04:05.123456Z 1f2e".
std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(micros / 1000000)),
                     micros % 1000000);
}

std::string new_key() {
  return now_text() + " " + shardmap::random_uuid().substr(0, 8);
}

std::string result_text(const Error* error) {
  return error == nullptr ? "done" : error->sqlstate + ": " + error->message;
}

bool denial_fits() {
  static std::mutex mutex;
  static std::chrono::steady_clock::time_point minute;
  static int written = 0;
  const std::lock_guard lock(mutex);
  const auto now = std::chrono::steady_clock::now();
  if (now - minute > std::chrono::minutes(1)) {
    minute = now;
    written = 0;
  }
  return ++written <= kDenialsAMinute;
}

std::string body_of(const Actor& actor, const std::string& router, const std::string& what,
                    const std::string& result, std::uint64_t epoch) {
  Json json = Json::object();
  json["who"] = actor.name;
  json["role"] = std::string(name_of(actor.role));
  json["face"] = std::string(name_of(actor.face));
  json["router"] = router;
  json["what"] = what.substr(0, kWhatBytesMax);
  json["result"] = result.substr(0, kWhatBytesMax);
  json["epoch"] = epoch;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void prune(shardmap::MapStore& store, Deadline deadline) {
  static std::atomic<int> written{0};
  if (++written % kPruneEvery != 0) return;
  const auto notes = store.notes(kAudit, deadline);
  if (!notes || notes->size() <= kAuditKept) return;
  std::vector<std::string> keys;
  for (const shardmap::Note& note : *notes) keys.push_back(note.key);
  std::sort(keys.begin(), keys.end());
  std::vector<shardmap::NoteChange> gone;
  for (std::size_t i = 0; i + kAuditKept < keys.size(); ++i) gone.push_back({kAudit, keys[i], {}, {}});
  (void)store.put_notes(gone, deadline);
}

}  // namespace

Result<std::string> begin_audit(shardmap::MapStore& store, const Actor& actor, const std::string& router,
                                const std::string& what, Deadline deadline) {
  const std::string key = new_key();
  KG_CHECK(store.put_notes({{kAudit, key, body_of(actor, router, what, "begun", 0), {}}}, deadline));
  prune(store, deadline);
  return key;
}

void write_audit(shardmap::MapStore* store, const Actor& actor, const std::string& router,
                 const std::string& what, const Error* error, Deadline deadline) {
  const std::string result = result_text(error);
  log::info("a command", {{"who", actor.name}, {"what", what}, {"result", result}});
  if (error != nullptr && error->sqlstate == sqlstate::kInsufficientPrivilege && !denial_fits()) return;
  Status written = fail(sqlstate::kCannotConnectNow, "there is no store");
  if (store != nullptr)
    written = store->put_notes({{kAudit, new_key(), body_of(actor, router, what, result, 0), {}}}, deadline);
  if (written) {
    prune(*store, deadline);
  } else {
    log::warning("a command could not be written into the audit trail",
                 {{"what", what}, {"reason", written.error().message}});
  }
}

void end_audit(shardmap::MapStore& store, const std::string& key, const Actor& actor, const std::string& router,
               const std::string& what, const Error* error, std::uint64_t epoch, Deadline deadline) {
  const std::string result = result_text(error);
  log::info("a command", {{"who", actor.name}, {"what", what}, {"result", result}, {"epoch", epoch}});
  const Status written =
      store.put_notes({{kAudit, key, body_of(actor, router, what, result, epoch), {}}}, deadline);
  if (!written) {
    log::warning("the end of a command could not be written into the audit trail",
                 {{"what", what}, {"reason", written.error().message}});
  }
}

Result<std::vector<Json>> audit_trail(shardmap::MapStore& store, Deadline deadline) {
  KG_TRY(auto notes, store.notes(kAudit, deadline));
  std::sort(notes.begin(), notes.end(), [](const auto& a, const auto& b) { return a.key > b.key; });
  std::vector<Json> trail;
  for (const shardmap::Note& note : notes) {
    Json body = Json::parse(note.body, nullptr, false);
    if (!body.is_object()) continue;
    Json entry = Json::object();
    entry["at"] = note.key.substr(0, note.key.find(' '));
    for (auto& [member, value] : body.items()) entry[member] = value;
    trail.push_back(std::move(entry));
  }
  return trail;
}

}  // namespace kintsugi::admin
