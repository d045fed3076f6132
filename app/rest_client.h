// A router's REST face as the commands of the command line use it. Blocks; one thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace kintsugi::app {

using Json = nlohmann::ordered_json;

struct RestTarget {
  std::string admin = "http://127.0.0.1:8432";
  std::string token;
  std::string ca;  // PEM; empty: the system's, for https://
};

struct RestReply {
  int status = 0;
  Json body;         // null when the answer is not JSON
  std::string text;  // the answer as it came
};

class RestClient {
 public:
  explicit RestClient(RestTarget target) : target_(std::move(target)) {}

  // A reply of the 200s. 08006: no router answers there. Any other error is the router's own; its status tells
  // the exit code.
  Result<RestReply> call(const std::string& method, const std::string& path, const Json& body = {});
  Result<RestReply> send_file(const std::string& path, const std::string& text);

  // Every page of a list as one array.
  Result<Json> list(const std::string& path);

  // Of the last call that failed; 0: it never got there.
  [[nodiscard]] int last_status() const { return last_status_; }

 private:
  Result<RestReply> send(const std::string& method, const std::string& path, const std::string& text,
                         const char* type);
  RestTarget target_;
  int last_status_ = 0;
};

// A value within a path or a query.
[[nodiscard]] std::string url_encoded(const std::string& text);

}  // namespace kintsugi::app
