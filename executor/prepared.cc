#include "executor/prepared.h"

#include <xxhash.h>

#include <atomic>
#include <mutex>

#include "wire/server_messages.h"

namespace kintsugi::executor {
namespace {

struct Registry {
  std::mutex mutex;
  std::uint64_t next_id = 1;
  std::unordered_map<std::string, std::weak_ptr<const PreparedStatement>> known;
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

std::string registry_key(std::string_view text, std::string_view oids, std::string_view search_path) {
  std::string key;
  key.reserve(text.size() + oids.size() + search_path.size() + 2);
  key.append(text).append(1, '\0').append(search_path).append(1, '\0').append(oids);
  return key;
}

std::atomic<std::uint64_t> generation{1};

}  // namespace

PreparedRef intern_prepared(std::string_view text, std::string_view type_oids, std::string_view search_path) {
  std::string key = registry_key(text, type_oids, search_path);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto& slot = r.known[key];
  if (auto alive = slot.lock()) return alive;
  auto* made = new PreparedStatement;
  made->id = r.next_id++;
  made->server_name = "kg_" + std::to_string(made->id);
  made->text = text;
  made->type_oids = type_oids;
  made->search_path = search_path;
  PreparedRef result(made, [](const PreparedStatement* gone) {
    Registry& owner = registry();
    {
      std::lock_guard guard(owner.mutex);
      auto found = owner.known.find(registry_key(gone->text, gone->type_oids, gone->search_path));
      if (found != owner.known.end() && found->second.expired()) owner.known.erase(found);
    }
    delete gone;
  });
  slot = result;
  return result;
}

PreparedRef find_prepared(std::string_view text, std::string_view type_oids, std::string_view search_path) {
  const std::string key = registry_key(text, type_oids, search_path);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  auto at = r.known.find(key);
  return at == r.known.end() ? nullptr : at->second.lock();
}

Accepted last_accepted(const PreparedStatement& statement) {
  std::lock_guard lock(registry().mutex);
  return statement.accepted;
}

void note_accepted(const PreparedStatement& statement, Accepted accepted) {
  std::lock_guard lock(registry().mutex);
  std::swap(statement.accepted, accepted);
}

Shape shape_of_row_description(std::string_view body) {
  // Names, types and modifiers as the client was told; not the format, which each Bind chooses.
  auto columns = wire::read_row_description(body);
  if (!columns) return 0;
  XXH64_hash_t hash = columns->size();
  for (const wire::Column& column : *columns) {
    hash = XXH3_64bits_withSeed(column.name.data(), column.name.size(), hash);
    const std::uint64_t type =
        (std::uint64_t{column.type_oid} << 32) | static_cast<std::uint32_t>(column.type_modifier);
    hash = XXH3_64bits_withSeed(&type, sizeof type, hash);
  }
  return hash > kNoRows ? hash : hash + 2;
}

std::uint64_t schema_generation() {
  return generation.load(std::memory_order_relaxed);
}

void bump_schema_generation() {
  generation.fetch_add(1, std::memory_order_relaxed);
}

PreparedOnBackend::Entry* PreparedOnBackend::find(std::uint64_t id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return nullptr;
  if (at->second.position != by_use_.begin()) by_use_.splice(by_use_.begin(), by_use_, at->second.position);
  return &at->second;
}

PreparedOnBackend::Entry& PreparedOnBackend::add(PreparedRef statement) {
  const std::uint64_t id = statement->id;
  erase(id);
  by_use_.push_front(id);
  Entry& entry = entries_[id];
  entry = Entry{.statement = std::move(statement),
                .shape = 0,
                .types = nullptr,
                .generation = schema_generation(),
                .confirmed = false,
                .position = by_use_.begin()};
  return entry;
}

void PreparedOnBackend::erase(std::uint64_t id) {
  auto at = entries_.find(id);
  if (at == entries_.end()) return;
  by_use_.erase(at->second.position);
  entries_.erase(at);
}

void PreparedOnBackend::clear() {
  entries_.clear();
  by_use_.clear();
}

PreparedRef PreparedOnBackend::oldest_beyond(std::size_t limit) const {
  if (entries_.size() < limit || by_use_.empty()) return nullptr;
  const Entry& entry = entries_.at(by_use_.back());
  return entry.confirmed ? entry.statement : nullptr;
}

}  // namespace kintsugi::executor
