#include "app/postgres_programs.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "app/child_process.h"

namespace kintsugi::app {
namespace {

namespace fs = std::filesystem;

constexpr int kOldest = 15;  // publications with row filters, which the move of shardlets needs
constexpr const char* kServerUser = "postgres";
constexpr const char* kHowToInstall =
    "On Debian: apt-get install postgresql-15 (or scripts/install-deps demo). "
    "Elsewhere: set KINTSUGI_PG_BIN to the folder that holds them.";

bool has_programs(const fs::path& folder) {
  for (const char* name : {"initdb", "pg_ctl", "postgres", "psql"}) {
    if (access((folder / name).c_str(), X_OK) != 0) return false;
  }
  return true;
}

// Debian's folders, the newest first.
std::vector<std::pair<int, fs::path>> debian_folders() {
  std::vector<std::pair<int, fs::path>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    int major = std::atoi(entry.path().filename().c_str());
    if (major > 0 && has_programs(entry.path() / "bin")) found.emplace_back(major, entry.path() / "bin");
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<std::string> joined(std::vector<std::string> first, std::vector<std::string> rest) {
  first.insert(first.end(), std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
  return first;
}

}  // namespace

Result<PostgresPrograms> PostgresPrograms::find(int major) {
  if (geteuid() == 0 && getpwnam(kServerUser) == nullptr) {
    return fail("58000", "PostgreSQL does not run as root, and there is no user postgres to run it as",
                "Install Debian's postgresql-15, which makes that user, or start as another user.");
  }
  if (const char* folder = std::getenv("KINTSUGI_PG_BIN"); folder != nullptr && *folder != '\0') {
    if (has_programs(folder)) return PostgresPrograms(folder);
    return fail("58000",
                std::string("KINTSUGI_PG_BIN=") + folder + " does not hold initdb, pg_ctl, postgres and psql");
  }
  std::string version = major == 0 ? "" : " " + std::to_string(major);
  for (const auto& [found, folder] : debian_folders()) {
    if (major == 0 ? found >= kOldest : found == major) return PostgresPrograms(folder.string());
  }
  std::istringstream path(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; major == 0 && std::getline(path, folder, ':');) {
    if (has_programs(folder)) return PostgresPrograms(folder);
  }
  return fail("58000",
              "PostgreSQL" + version + "'s own programs (initdb, pg_ctl, postgres, psql) are not installed",
              kHowToInstall);
}

PostgresPrograms::PostgresPrograms(std::string folder)
    : folder_(std::move(folder)), as_other_user_(geteuid() == 0) {}

std::vector<std::string> PostgresPrograms::as_server(const std::string& program,
                                                     std::vector<std::string> arguments) const {
  std::vector<std::string> line;
  if (as_other_user_) line = {"/usr/sbin/runuser", "-u", kServerUser, "--"};
  line.push_back(folder_ + "/" + program);
  return joined(std::move(line), std::move(arguments));
}

std::vector<std::string> PostgresPrograms::as_client(const std::string& program,
                                                     std::vector<std::string> arguments) const {
  return joined({folder_ + "/" + program}, std::move(arguments));
}

Status PostgresPrograms::hand_over(const std::string& folder) const {
  if (!as_other_user_) return {};
  const passwd* user = getpwnam(kServerUser);
  if (user != nullptr && chown(folder.c_str(), user->pw_uid, user->pw_gid) == 0) return {};
  return fail("58000", "cannot give " + folder + " to user " + kServerUser + ": " + std::strerror(errno));
}

bool PostgresPrograms::can_enter(const std::string& folder) const {
  if (!as_other_user_) return access(folder.c_str(), X_OK) == 0;
  auto outcome =
      run_program({.arguments = {"/usr/sbin/runuser", "-u", kServerUser, "--", "/usr/bin/test", "-x", folder}});
  return outcome && outcome->exit_code == 0;
}

}  // namespace kintsugi::app
