// Waits for a job at the command line: a bar on a terminal, otherwise a line whenever something has changed.
// Main thread.
#pragma once

#include <string>

#include "app/client_command.h"

namespace kintsugi::app {

// Until the job has ended: kDone, or kFailed when it failed or was canceled.
int watch_job(Talk& talk, const Json& job);

// "copying   [########            ]  41 %  120,000 of 290,000 rows  18 MB/s  9 s left"
[[nodiscard]] std::string progress_line(const Json& job, double bytes_per_second);

}  // namespace kintsugi::app
