#include "admin/token_book.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "admin/commands/command_result.h"
#include "admin/token_file.h"
#include "base/invariant.h"
#include "base/suggest.h"

namespace kintsugi::admin {
namespace {

constexpr std::size_t kOwnersMax = 1000, kNameBytesMax = 63;

tl::unexpected<Error> file_error(const std::string& what, const std::string& path) {
  return fail("58000", "cannot " + what + " the user file " + path + ": " + std::strerror(errno),
              "admin.user_file says where it is.");
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool good_name(const std::string& name) {
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '@';
         });
}

Result<std::vector<TokenOwner>> parsed(const std::string& text, const std::string& path) {
  const auto bad = [&path] {
    return fail("58000", "the user file " + path + " is no list of users",
                "Remove it, and add the users again with kintsugi user add.");
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array() || json.size() > 2 * kOwnersMax) return bad();
  std::vector<TokenOwner> owners;
  for (const Json& each : json) {
    if (!each.is_object()) return bad();
    for (const char* member : {"name", "role", "created", "sha256"})
      if (!each.contains(member) || !each[member].is_string()) return bad();
    const auto role = role_named(each["role"].get<std::string>());
    TokenOwner owner{each["name"].get<std::string>(), role.value_or(Role::kViewer),
                     each["created"].get<std::string>(), each["sha256"].get<std::string>()};
    if (each.contains("store") && each["store"].is_string()) owner.store = each["store"].get<std::string>();
    if (each.contains("removed") && each["removed"].is_string()) {
      owner.removed = true;
      owner.hash = each["removed"].get<std::string>();
    }
    if (!role || !good_name(owner.name) || owner.hash.size() != 64) return bad();
    owners.push_back(std::move(owner));
  }
  return owners;
}

}  // namespace

Error TokenBook::taken(const std::string& name) {
  return {.sqlstate = "42710",
          .message = "user \"" + name + "\" already exists",
          .hint = "Remove it first; then it gets a new token."};
}

Status TokenBook::load() {
  const std::lock_guard lock(mutex_);
  return look();
}

Status TokenBook::look() {
  struct stat now {};
  if (stat(path_.c_str(), &now) != 0) {
    if (errno != ENOENT) return file_error("read", path_);
    owners_.clear();
    size_ = -1;
    return {};
  }
  const std::int64_t changed = now.st_mtim.tv_sec * 1000000000 + now.st_mtim.tv_nsec;
  if (changed == changed_ && now.st_size == size_ && static_cast<std::int64_t>(now.st_ino) == file_) return {};
  if ((now.st_mode & 077) != 0)
    return fail("58000", "the user file " + path_ + " may be read by others", "chmod 600 " + path_);
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_error("read", path_);
  std::string text(static_cast<std::size_t>(now.st_size), '\0');
  const ssize_t got = read(fd, text.data(), text.size());
  close(fd);
  if (got < 0) return file_error("read", path_);
  text.resize(static_cast<std::size_t>(got));
  KG_TRY(owners_, parsed(text, path_));
  changed_ = changed;
  size_ = now.st_size;
  file_ = static_cast<std::int64_t>(now.st_ino);
  return {};
}

Status TokenBook::save(const std::vector<TokenOwner>& owners) {
  Json json = Json::array();
  for (const TokenOwner& owner : owners) {
    Json entry = {
        {"name", owner.name},
        {"role", std::string(name_of(owner.role))},
        {"created", owner.created},
        {"sha256", owner.removed ? std::string(64, '-') : owner.hash}};  // lets nobody in, in any version
    if (!owner.store.empty()) entry["store"] = owner.store;
    if (owner.removed) entry["removed"] = owner.hash;
    json.push_back(std::move(entry));
  }
  const std::string text = json.dump(1) + "\n";
  const std::string fresh = path_ + ".new";
  unlink(fresh.c_str());
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return file_error("write", fresh);
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  close(fd);
  if (!whole || rename(fresh.c_str(), path_.c_str()) != 0) return file_error("write", path_);
  return look();
}

std::optional<TokenOwner> TokenBook::owner_of(const std::string& token) {
  const std::string hash = hash_of_token(token);
  const std::lock_guard lock(mutex_);
  // A file that has become unreadable lets nobody in.
  if (!look()) return std::nullopt;
  std::optional<TokenOwner> found;
  for (const TokenOwner& owner : owners_)
    if (same_token(owner.hash, hash) && !owner.removed) found = owner;
  return found;
}

Result<std::vector<TokenOwner>> TokenBook::list() {
  KG_TRY(std::vector<TokenOwner> owners, entries());
  std::erase_if(owners, [](const TokenOwner& owner) { return owner.removed; });
  return owners;
}

Result<std::vector<TokenOwner>> TokenBook::entries() {
  const std::lock_guard lock(mutex_);
  KG_CHECK(look());
  return owners_;
}

Status TokenBook::replace(const std::vector<TokenOwner>& entries) {
  const std::lock_guard lock(mutex_);
  return save(entries);
}

Result<std::pair<std::string, TokenOwner>> TokenBook::made(const std::string& name, Role role) {
  if (!good_name(name))
    return fail(sqlstate::kInvalidParameter, "a user's name has 1 to 63 letters, digits, or . - _ @");
  KG_TRY(const std::vector<TokenOwner> owners, list());
  if (owners.size() >= kOwnersMax) return fail(sqlstate::kLimitReached, "there are 1000 users already");
  for (const TokenOwner& owner : owners)
    if (owner.name == name) return fail(taken(name));
  const std::string token = random_token();
  return std::pair{token, TokenOwner{name, role, now_text(), hash_of_token(token), {}, false}};
}

Result<TokenOwner> TokenBook::named(const std::string& name) {
  KG_TRY(const std::vector<TokenOwner> owners, list());
  std::vector<std::string> names;
  for (const TokenOwner& owner : owners) {
    if (owner.name == name) return owner;
    names.push_back(owner.name);
  }
  const std::string meant = nearest(name, names);
  return fail(sqlstate::kUndefinedObject, "user \"" + name.substr(0, 80) + "\" does not exist",
              meant.empty() ? "" : "Did you mean \"" + meant + "\"?");
}

}  // namespace kintsugi::admin
