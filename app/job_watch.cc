#include "app/job_watch.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "app/print_table.h"

namespace kintsugi::app {
namespace {

using namespace std::chrono_literals;

constexpr int kBar = 24;
constexpr auto kPoll = 250ms;

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string rate_text(double bytes) {
  if (bytes >= 1e6) return std::to_string(static_cast<int>(bytes / 1e6)) + " MB/s";
  return std::to_string(static_cast<int>(bytes / 1e3)) + " kB/s";
}

bool has_ended(const std::string& state) {
  return state == "done" || state == "failed" || state == "canceled";
}

std::string title(const Json& job) {
  return "job " + value_text(job["id"]) + ": " + job.value("type", "") + " " + job.value("target", "");
}

int ended(Talk& talk, const Json& job) {
  const std::string state = job.value("state", "");
  if (talk.json()) {
    talk.print(job, {});
  } else if (state == "done") {
    std::cout << title(job) << " is done\n";
  }
  if (state == "done") return kDone;
  Error error{.sqlstate = "XX000",
              .message = title(job) + (state == "failed" ? " has failed" : " was canceled")};
  if (job.contains("error") && job["error"].is_object()) {
    error.sqlstate = job["error"].value("sqlstate", error.sqlstate);
    error.detail = job["error"].value("message", job["error"].dump());
    if (const std::string more = job["error"].value("detail", ""); !more.empty()) error.detail += "\n  " + more;
    error.hint = job["error"].value("hint", "");
  } else if (job.contains("error") && job["error"].is_string()) {
    error.detail = job["error"].get<std::string>();
  }
  talk.complain(error);
  return error.sqlstate == "55000" ? kRefused : kFailed;
}

}  // namespace

std::string progress_line(const Json& job, double bytes_per_second) {
  const Json progress = job.value("progress", Json::object());
  const auto number = [&progress](const char* member) {
    return progress.contains(member) && progress[member].is_number() ? progress[member].get<std::uint64_t>()
                                                                     : 0;
  };
  std::string line = job.value("state", "");
  line.resize(std::max<std::size_t>(line.size(), 12), ' ');
  const std::uint64_t rows = number("rows"), total = number("total");
  if (total > 0) {
    const std::uint64_t done = std::min(rows, total);
    const auto filled = static_cast<std::size_t>(done * kBar / total);
    line += "[" + std::string(filled, '#') + std::string(kBar - filled, ' ') + "] " +
            std::to_string(done * 100 / total) + " %  " + grouped(rows) + " of " + grouped(total) + " rows";
  } else if (rows > 0) {
    line += grouped(rows) + " rows";
  }
  if (bytes_per_second > 0) line += "  " + rate_text(bytes_per_second);
  if (progress.contains("eta_s") && progress["eta_s"].is_number()) {
    line += "  " + std::to_string(static_cast<long>(progress["eta_s"].get<double>())) + " s left";
  }
  return line;
}

int watch_job(Talk& talk, const Json& job) {
  const std::string path = "/v1/jobs/" + value_text(job["id"]);
  const bool terminal = isatty(STDERR_FILENO) != 0 && !talk.json();
  const auto began = std::chrono::steady_clock::now();
  if (!talk.json()) std::cerr << title(job) << "\n";
  std::string last;
  for (Json now = job;;) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const Json progress = now.value("progress", Json::object());
    const double bytes =
        progress.contains("bytes") && progress["bytes"].is_number() ? progress["bytes"].get<double>() : 0;
    const std::string line =
        progress_line(now, now.value("state", "") == "copying" && seconds > 0.5 ? bytes / seconds : 0);
    if (terminal) {
      std::cerr << "\r\x1b[K" << line << std::flush;
    } else if (!talk.json() && now.value("state", "") != last) {
      std::cerr << line << std::endl;
    }
    last = now.value("state", "");
    if (has_ended(last)) {
      if (terminal) std::cerr << "\n";
      return ended(talk, now);
    }
    std::this_thread::sleep_for(kPoll);
    auto reply = talk.client().call("GET", path);
    if (!reply) {
      if (terminal) std::cerr << "\n";
      return talk.failed(reply.error());
    }
    now = std::move(reply->body);
  }
}

}  // namespace kintsugi::app
