"""What an idle client costs: ten thousand logged in, resident memory before and after, all of them asked at the end."""

import resource
import time

from protocol import RawClient, query


def allow_open_files(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard) if hard > 0 else count, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def measure(system, clients, seconds):
    """Holds `clients` connections: first just logged in, at the end after one statement each."""
    files = allow_open_files(clients + 200)
    clients = min(clients, files - 100)
    held, begin = [], time.monotonic()
    try:
        for _ in range(50):  # what the first clients cost once
            held.append(_login(system))
        base = system.status_kb()
        warm = len(held)
        while len(held) < clients:
            held.append(_login(system))
            if time.monotonic() - begin > seconds:
                break
        fresh = system.status_kb()
        used_before = system.cpu_seconds()
        idle_from = time.monotonic()
        time.sleep(2)  # the thing measured: two seconds of nothing
        idle_cpu = sum(system.cpu_seconds()) - sum(used_before)
        idle_for = time.monotonic() - idle_from
        answered = 0
        for client in held:
            answered += client.ask(query("SELECT 1"))[-1] == "Z b'I'"
        after = system.status_kb()
        return {
            "clients": len(held),
            "answered": answered,
            "kb_before": base,
            "kb_logged_in": fresh,
            "kb_after_a_statement": after,
            "kb_a_client": (fresh - base) / (len(held) - warm),
            "kb_a_client_after_a_statement": (after - base) / (len(held) - warm),
            "idle_cpu_percent": 100 * idle_cpu / idle_for,
            "seconds": time.monotonic() - begin,
        }
    finally:
        for client in held:
            client.socket.close()


def _login(system):
    client = RawClient("127.0.0.1", system.port)
    refused = client.login()
    if refused is not None:
        raise RuntimeError(f"client refused: {refused}")
    return client
