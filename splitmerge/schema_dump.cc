#include "splitmerge/schema_dump.h"

#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

extern char** environ;

namespace kintsugi::splitmerge {
namespace {

// Of what a program said: PostgreSQL's own error, and not the last line, which may be the caret below a
// statement.
std::string telling_line(const std::string& said) {
  std::size_t begin = said.find("ERROR:");
  if (begin == std::string::npos) begin = said.find("FATAL:");
  if (begin == std::string::npos) begin = said.rfind('\n') + 1;
  return said.substr(begin, said.find('\n', begin) - begin);
}

namespace fs = std::filesystem;

// A file that only we can read, gone with the object.
class TemporaryFile {
 public:
  TemporaryFile() : path_((fs::temp_directory_path() / "kintsugi-schema-XXXXXX").string()) {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string contents() const {
    std::ifstream in(path_);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

 private:
  std::string path_;
};

// The newest that Debian's packages have put there, or what the path leads to.
std::string program_named(const std::string& name) {
  std::string found = name;
  int newest = 0;
  std::error_code ignored;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const int number = std::atoi(version.path().filename().c_str());
    const fs::path program = version.path() / "bin" / name;
    if (number > newest && access(program.c_str(), X_OK) == 0) {
      newest = number;
      found = program.string();
    }
  }
  return found;
}

// Ours without what libpq reads, and the parts of the connection string.
Result<std::vector<std::string>> environment_for(const std::string& dsn) {
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> parsed(
      PQconninfoParse(dsn.c_str(), nullptr), PQconninfoFree);
  if (!parsed) return fail(sqlstate::kInvalidParameter, "a connection string cannot be read");
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    if (std::strncmp(*each, "PG", 2) != 0) variables.emplace_back(*each);
  }
  for (const PQconninfoOption* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr && option->envvar != nullptr)
      variables.push_back(std::string(option->envvar) + "=" + option->val);
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

Status run(std::vector<std::string> arguments, const std::string& dsn, const std::string& input,
           const std::string& output, Deadline deadline) {
  const std::string name = arguments[0];
  const TemporaryFile complaints;
  KG_TRY(std::vector<std::string> variables, environment_for(dsn));
  arguments[0] = program_named(name);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_TRUNC, 0);
  posix_spawn_file_actions_addopen(&files, 2, complaints.path().c_str(), O_WRONLY | O_TRUNC, 0);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, arguments[0].c_str(), &files, nullptr, pointers(arguments).data(),
                                   pointers(variables).data());
  posix_spawn_file_actions_destroy(&files);
  if (problem != 0) {
    return fail("55000", name + " cannot be run here: " + std::strerror(problem),
                "It comes with PostgreSQL's client programs (Debian: postgresql-client).");
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (deadline.passed()) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return fail(sqlstate::kQueryCanceled, name + " took too long");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  std::string said = complaints.contents();
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return fail(Error{"55000", name + " failed: " + telling_line(said), said, "", 0});
}

}  // namespace

Result<std::string> dump_schema(const std::string& dsn, const std::vector<std::string>& without_tables,
                                Deadline deadline) {
  std::vector<std::string> arguments{"pg_dump",           "--schema-only",
                                     "--no-password",     "--exclude-schema=kintsugi",
                                     "--no-publications", "--no-subscriptions"};
  for (const std::string& table : without_tables) arguments.push_back("--exclude-table=" + table);
  const TemporaryFile output;
  KG_CHECK(run(std::move(arguments), dsn, "/dev/null", output.path(), deadline));
  return output.contents();
}

Result<std::string> dump_tables(const std::string& dsn, const std::vector<std::string>& relations,
                                Deadline deadline) {
  std::vector<std::string> arguments{"pg_dump", "--schema-only", "--no-password", "--no-publications",
                                     "--no-subscriptions"};
  for (const std::string& relation : relations) arguments.push_back("--table=" + relation);
  const TemporaryFile output;
  KG_CHECK(run(std::move(arguments), dsn, "/dev/null", output.path(), deadline));
  return output.contents();
}

Status apply_schema(const std::string& dsn, const std::string& sql, Deadline deadline) {
  const TemporaryFile input;
  input.write(sql);
  return run({"psql", "-X", "-q", "--no-password", "--single-transaction", "-v", "ON_ERROR_STOP=1"}, dsn,
             input.path(), "/dev/null", deadline);
}

namespace {

bool is_compared(std::string_view line) {
  for (const char* word : {"--", "\\", "    START WITH", "    INCREMENT BY", "    MINVALUE", "    MAXVALUE",
                           "    NO M", "    CACHE"}) {
    if (line.starts_with(word)) return false;
  }
  return !line.empty() && line.find("kintsugi_fence_") == std::string_view::npos &&
         line.find(" REPLICA IDENTITY ") == std::string_view::npos;
}

// Sorted: two servers need not tell the same things in the same order.
std::vector<std::string> lines_of(const std::string& dump) {
  std::vector<std::string> lines;
  std::istringstream in(dump);
  for (std::string line; std::getline(in, line);) {
    // The last of a list has no comma, and which one is last is of no matter.
    if (line.ends_with(',')) line.pop_back();
    if (is_compared(line)) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

std::vector<std::string> differences_of(const std::string& one, const std::string& one_name,
                                        const std::string& other, const std::string& other_name) {
  const std::vector<std::string> here = lines_of(one);
  const std::vector<std::string> there = lines_of(other);
  std::vector<std::string> differences;
  std::set_difference(here.begin(), here.end(), there.begin(), there.end(), std::back_inserter(differences));
  for (std::string& line : differences) line += " (on " + one_name + " only)";
  const auto both = static_cast<std::ptrdiff_t>(differences.size());
  std::set_difference(there.begin(), there.end(), here.begin(), here.end(), std::back_inserter(differences));
  for (auto line = differences.begin() + both; line != differences.end(); ++line)
    *line += " (on " + other_name + " only)";
  return differences;
}

}  // namespace kintsugi::splitmerge
