#include "shardmap/map_store.h"

#include <array>
#include <cstring>
#include <random>

#include "shardmap/hasty_store.h"
#include "shardmap/postgres_store.h"
#include "shardmap/sqlite_store.h"

namespace kintsugi::shardmap {

namespace {

Result<std::unique_ptr<MapStore>> open_either(const std::string& where, const std::string& directory,
                                              bool hasty, Deadline deadline) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (where.starts_with(kSqlite)) {
    std::string path = where.substr(kSqlite.size());
    if (path.empty()) return fail(sqlstate::kInvalidParameter, "the map store \"sqlite:\" names no file");
    if (path[0] != '/' && !directory.empty()) path = directory + "/" + path;
    KG_TRY(std::unique_ptr<SqliteStore> store,
           SqliteStore::open(path, hasty ? SqliteSync::kSometime : SqliteSync::kEachCommit));
    return std::unique_ptr<MapStore>(std::move(store));
  }
  auto store = std::make_unique<PostgresStore>(where, hasty);
  // A store that is away is no reason not to start; one that is too new, or a string that cannot be read, is.
  if (Status ready = store->prepare(deadline);
      !ready && ready.error().sqlstate != sqlstate::kConnectionFailure) {
    return fail(ready.error());
  }
  return std::unique_ptr<MapStore>(std::move(store));
}

}  // namespace

Result<std::unique_ptr<MapStore>> open_store(const std::string& where, const std::string& directory,
                                             Deadline deadline) {
  return open_either(where, directory, false, deadline);
}

Result<std::unique_ptr<MapStore>> open_hasty_store(const std::string& where, const std::string& directory,
                                                   Deadline deadline) {
  return open_either(where, directory, true, deadline);
}

std::string random_uuid() {
  thread_local std::random_device device;
  std::array<unsigned char, 16> bytes{};
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    const std::uint32_t word = device();
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

}  // namespace kintsugi::shardmap
