// libpq for these tests, small enough to read: one connection, queries with text or binary answers.
#pragma once

#include <libpq-fe.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kintsugi::pgtest {

using Row = std::vector<std::string>;

class Connection {
 public:
  explicit Connection(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(connection_));
  }
  ~Connection() { PQfinish(connection_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::vector<Row> query(const std::string& sql, const std::vector<std::string>& parameters = {},
                         bool binary = false) {
    std::vector<const char*> values;
    for (const std::string& parameter : parameters) values.push_back(parameter.c_str());
    PGresult* result = parameters.empty() && !binary
                           ? PQexec(connection_, sql.c_str())
                           : PQexecParams(connection_, sql.c_str(), static_cast<int>(values.size()), nullptr,
                                          values.data(), nullptr, nullptr, binary ? 1 : 0);
    const ExecStatusType status = PQresultStatus(result);
    std::vector<Row> rows;
    if (status == PGRES_TUPLES_OK) {
      for (int r = 0; r < PQntuples(result); ++r) {
        Row row;
        for (int c = 0; c < PQnfields(result); ++c) {
          row.emplace_back(PQgetvalue(result, r, c), static_cast<std::size_t>(PQgetlength(result, r, c)));
        }
        rows.push_back(std::move(row));
      }
    }
    const std::string message = PQresultErrorMessage(result);
    PQclear(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) throw std::runtime_error(sql + ": " + message);
    return rows;
  }

 private:
  PGconn* connection_;
};

}  // namespace kintsugi::pgtest
