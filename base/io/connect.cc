#include "base/io/connect.h"

#include <cstring>
#include <memory>
#include <thread>

namespace kintsugi::io {
namespace {

// Shared by the resolving thread and the coroutine; the coroutine may be gone first (its deadline passed).
struct Lookup {
  Waiter* waiter = nullptr;  // null once nobody waits; touched on the loop's thread only
  bool done = false;
  Result<std::vector<SocketAddress>> result = std::vector<SocketAddress>{};
};

Task<Result<std::vector<SocketAddress>>> resolve(HostPort to, Waiter* waiter, Deadline deadline) {
  auto lookup = std::make_shared<Lookup>();
  lookup->waiter = waiter;
  // getaddrinfo cannot be cancelled. The thread ends by itself and only touches what it shares; the loop may be
  // gone by then.
  std::thread([lookup, to, mailbox = waiter->loop().mailbox()] {
    auto found = std::make_shared<Result<std::vector<SocketAddress>>>(resolve_blocking(to));
    mailbox->post([lookup, found] {
      lookup->result = std::move(*found);
      lookup->done = true;
      if (lookup->waiter != nullptr) lookup->waiter->notify();
    });
  }).detach();
  while (!lookup->done) {
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time && !lookup->done) {
      lookup->waiter = nullptr;
      co_return fail(sqlstate::kConnectionFailure,
                     "the name server took too long for host \"" + to.host + "\"");
    }
  }
  co_return std::move(lookup->result);
}

Task<Status> connect_one(Stream* stream, SocketAddress address, Waiter* waiter, Deadline deadline) {
  KG_CO_TRY(UniqueFd fd, start_connect(address));
  stream->adopt(std::move(fd));
  stream->attach(waiter->loop(), waiter);
  for (;;) {
    stream->want(false, true);
    const bool in_time = co_await waiter->wait(deadline);
    if (!in_time) co_return fail(sqlstate::kConnectionFailure, "timed out");
    const int error = connect_error(stream->fd());
    if (error != 0) co_return fail(sqlstate::kConnectionFailure, std::strerror(error));
    // A wake-up for another reason: the connection is there only when the peer has a name.
    if (connected(stream->fd())) co_return Status{};
  }
}

}  // namespace

Task<Status> connect(Stream* stream, HostPort to, Waiter* waiter, Deadline deadline) {
  std::vector<SocketAddress> addresses;
  if (!to.host.empty() && to.host.front() == '/') {
    KG_CO_TRY(SocketAddress address, unix_address(to.host, to.port));
    addresses.push_back(address);
  } else if (auto numeric = numeric_address(to)) {
    addresses.push_back(*numeric);
  } else {
    auto resolving = resolve(to, waiter, deadline);
    auto resolved = co_await std::move(resolving);
    if (!resolved) co_return fail(std::move(resolved).error());
    addresses = std::move(*resolved);
  }
  Error last{
      .sqlstate = std::string(sqlstate::kConnectionFailure), .message = "no address", .detail = {}, .hint = {}};
  for (const SocketAddress& address : addresses) {
    auto connecting = connect_one(stream, address, waiter, deadline);
    Status status = co_await std::move(connecting);
    if (status) co_return Status{};
    last = std::move(status).error();
    stream->close();
    if (deadline.passed()) break;
  }
  co_return fail(sqlstate::kConnectionFailure, "cannot connect to " + to.to_string() + ": " + last.message);
}

}  // namespace kintsugi::io
