// Session settings (and reported parameters) as values: a sorted list of names with their values, interned, so
// that "does this connection have what this client wants" is one comparison of pointers. Any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::executor {

class Settings;
// Equal values are the same pointer. Never null where a SettingsRef is held.
using SettingsRef = std::shared_ptr<const Settings>;

class Settings {
 public:
  using Entry = std::pair<std::string, std::string>;

  static SettingsRef none();
  // Of a name that stands twice the last value counts, as in PostgreSQL's startup packet.
  static SettingsRef intern(std::vector<Entry> entries);

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] SettingsRef with(std::string_view name, std::string_view value) const;

 private:
  explicit Settings(std::vector<Entry> entries) : entries_(std::move(entries)) {}
  std::vector<Entry> entries_;
};

}  // namespace kintsugi::executor
