#include "admin/shared_tokens.h"

#include <algorithm>

#include "admin/commands/command_result.h"

namespace kintsugi::admin {
namespace {

using namespace std::chrono_literals;
using shardmap::Note;
using shardmap::NoteChange;

constexpr const char* kToken = "token";  // a note's kind; its key is the user's name
constexpr auto kEvery = 500ms;
constexpr auto kPatience = 2s;

NoteChange put(const TokenOwner& owner) {
  const Json body = {
      {"role", std::string(name_of(owner.role))}, {"created", owner.created}, {"sha256", owner.hash}};
  return {kToken, owner.name, body.dump(), ""};
}

std::optional<TokenOwner> read(const Note& note, const std::string& store) {
  const Json body = Json::parse(note.body, nullptr, false);
  if (!body.is_object()) return std::nullopt;
  const auto role = role_named(body.value("role", ""));
  const std::string hash = body.value("sha256", "");
  if (!role || hash.size() != 64) return std::nullopt;
  return TokenOwner{note.key, *role, body.value("created", ""), hash, store, false};
}

}  // namespace

SharedTokens::SharedTokens(const std::string& path, std::shared_ptr<const Surroundings> around)
    : book_(path), around_(std::move(around)) {}

SharedTokens::~SharedTokens() {
  {
    const std::lock_guard lock(ending_mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  if (follower_.joinable()) follower_.join();
}

bool SharedTokens::shared() const {
  return !around_->store.empty() && !around_->store.starts_with("sqlite:");
}

Status SharedTokens::start() {
  KG_CHECK(book_.load());
  if (shared()) follower_ = std::thread([this] { follow(); });
  return {};
}

void SharedTokens::follow() {
  std::unique_lock lock(ending_mutex_);
  while (!ends_) {
    lock.unlock();
    if (around_->store_reachable()) {
      const std::lock_guard talking(mutex_);
      (void)agree(Deadline::in(kPatience));
    }
    lock.lock();
    ending_.wait_for(lock, kEvery, [this] { return ends_; });
  }
}

Result<shardmap::MapStore*> SharedTokens::store(Deadline deadline) {
  if (store_ == nullptr) {
    KG_TRY(store_, shardmap::open_store(around_->store, around_->directory, deadline));
  }
  return store_.get();
}

Status SharedTokens::told(const std::vector<NoteChange>& changes) {
  if (!shared() || store_id().empty() || !around_->store_reachable())
    return fail(sqlstate::kCannotConnectNow, "the map store is not there");
  KG_TRY(shardmap::MapStore * known, store(Deadline::in(kPatience)));
  return known->put_notes(changes, Deadline::in(kPatience));
}

// What the store has not heard of is told to it: who was added while it was away or by an older program, and
// who was removed. Of everything else it is right: who is not there any more was removed at another router.
Status SharedTokens::agree(Deadline deadline) {
  const std::string id = store_id();
  if (id.empty()) return {};
  KG_TRY(shardmap::MapStore * known, store(deadline));
  KG_TRY(const std::vector<Note> notes, known->notes(kToken, deadline));
  KG_TRY(const std::vector<TokenOwner> before, book_.entries());
  const auto noted = [&](const std::string& name) {
    const auto at =
        std::find_if(notes.begin(), notes.end(), [&](const Note& note) { return note.key == name; });
    return at == notes.end() ? std::nullopt : read(*at, id);
  };
  std::vector<TokenOwner> after;
  std::vector<NoteChange> changes;
  for (TokenOwner owner : before) {
    const auto there = noted(owner.name);
    if (owner.removed) {
      if (!there || there->hash != owner.hash) continue;
      if (!known->writable()) after.push_back(owner);
      changes.push_back({kToken, owner.name, {}, {}});
      continue;
    }
    if (owner.store != id && !there && known->writable()) {
      changes.push_back(put(owner));
      owner.store = id;
    } else if (owner.store == id || (there && there->hash == owner.hash)) {
      if (!there) continue;
      owner = *there;
    }
    after.push_back(std::move(owner));
  }
  for (const Note& note : notes) {
    const auto here = [&](const TokenOwner& owner) { return owner.name == note.key && owner.store == id; };
    const bool goes =
        std::any_of(changes.begin(), changes.end(), [&](const auto& c) { return c.key == note.key; });
    if (goes || std::any_of(after.begin(), after.end(), here)) continue;
    if (auto owner = read(note, id)) after.push_back(*std::move(owner));
  }
  if (!changes.empty() && known->writable()) KG_CHECK(known->put_notes(changes, deadline));
  if (after != before) KG_CHECK(book_.replace(after));
  return {};
}

void SharedTokens::look_for_news() {
  if (!shared() || !around_->store_reachable()) return;
  const std::unique_lock talking(mutex_, std::chrono::milliseconds(kPatience));
  if (talking) (void)agree(Deadline::in(kPatience));
}

Result<std::vector<TokenOwner>> SharedTokens::list() {
  look_for_news();
  return book_.list();
}

Result<std::string> SharedTokens::add(const std::string& name, Role role) {
  const std::lock_guard talking(mutex_);
  KG_TRY(auto made, book_.made(name, role));
  auto& [token, owner] = made;
  const Status known = told({put(owner)});
  if (!known && known.error().sqlstate == sqlstate::kSerializationFailure) return fail(TokenBook::taken(name));
  if (known) owner.store = store_id();
  KG_TRY(std::vector<TokenOwner> entries, book_.entries());
  entries.push_back(owner);
  KG_CHECK(book_.replace(entries));
  return token;
}

Status SharedTokens::remove(const std::string& name) {
  const std::lock_guard talking(mutex_);
  if (shared() && around_->store_reachable()) (void)agree(Deadline::in(kPatience));
  KG_TRY(const TokenOwner owner, book_.named(name));
  KG_TRY(std::vector<TokenOwner> entries, book_.entries());
  const bool known = shared() && std::any_of(entries.begin(), entries.end(), [&](const TokenOwner& each) {
                       return each.name == name && each.store == store_id();
                     });
  const Status gone = known ? told({{kToken, name, {}, {}}}) : Status();
  std::erase_if(entries,
                [&](const TokenOwner& each) { return each.name == name && (gone || each.store.empty()); });
  for (TokenOwner& each : entries)
    if (each.name == name) each.removed = true;
  return book_.replace(entries);
}

}  // namespace kintsugi::admin
