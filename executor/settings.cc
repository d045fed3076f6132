#include "executor/settings.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace kintsugi::executor {
namespace {

struct Table {
  std::mutex mutex;
  std::map<std::vector<Settings::Entry>, std::weak_ptr<const Settings>> known;
};

Table& table() {
  static Table* const instance = new Table;  // outlives every static that holds a SettingsRef
  return *instance;
}

}  // namespace

SettingsRef Settings::none() {
  static const SettingsRef* const instance = new SettingsRef(intern({}));
  return *instance;
}

SettingsRef Settings::intern(std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::vector<Entry> unique;
  for (Entry& entry : entries) {
    if (!unique.empty() && unique.back().first == entry.first) {
      unique.back().second = std::move(entry.second);
    } else {
      unique.push_back(std::move(entry));
    }
  }
  Table& t = table();
  std::lock_guard lock(t.mutex);
  auto [at, inserted] = t.known.try_emplace(unique);
  if (!inserted) {
    if (auto alive = at->second.lock()) return alive;
  }
  // The entry leaves the table with its last owner. A value that was made anew meanwhile stays.
  SettingsRef made(new Settings(std::move(unique)), [](const Settings* gone) {
    Table& owner = table();
    {
      std::lock_guard guard(owner.mutex);
      auto found = owner.known.find(gone->entries_);
      if (found != owner.known.end() && found->second.expired()) owner.known.erase(found);
    }
    delete gone;
  });
  at->second = made;
  return made;
}

const std::string* Settings::find(std::string_view name) const {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                             [](const Entry& entry, std::string_view wanted) { return entry.first < wanted; });
  return at != entries_.end() && at->first == name ? &at->second : nullptr;
}

SettingsRef Settings::with(std::string_view name, std::string_view value) const {
  std::vector<Entry> changed = entries_;
  changed.emplace_back(name, value);
  return intern(std::move(changed));
}

}  // namespace kintsugi::executor
