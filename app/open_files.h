// How many files the process may have open: a client is one, a connection to a shard is one.
#pragma once

namespace kintsugi::app {

// Raises the soft limit (and as root the hard one) to what `clients` and `backends` need. Logs a warning that
// says how many clients fit when that is not allowed.
void raise_open_files(int clients, int backends);

}  // namespace kintsugi::app
