"""What has been told to be committed is seen, although a shard was lost between the decision and the answer.

The router is frozen (SIGSTOP) when a transfer over two shards is decided, the second shard crashes, the router goes on. The
second shard comes back with the transfer prepared and invisible, and somebody reads there at once.

    seen_test.py        KINTSUGI_PROGRAM: the program to test
"""

import os
import signal
import sys
import threading

from bank_test import wait_until
from small_bank import START, connect, small_bank

LOW, HIGH = 1, 30


def stopped(process):
    with open(f"/proc/{process.pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


class Transfer(threading.Thread):
    def __init__(self, router):
        super().__init__(daemon=True)
        self.client = connect(router)
        self.warnings, self.error = [], None
        self.client.add_notice_handler(self.hear)
        self.start()

    def hear(self, notice):
        if "terminating connection" not in notice.message_primary:  # what the shard says when it goes down
            self.warnings.append(notice.message_primary)

    def run(self):
        try:
            self.client.execute("BEGIN")
            self.client.execute("UPDATE accounts SET balance = balance - 100 WHERE id = %s", (LOW,))
            self.client.execute("UPDATE accounts SET balance = balance + 100 WHERE id = %s", (HIGH,))
            self.client.execute("COMMIT")
        except Exception as error:
            self.error = error

    def end(self):
        self.join(60)
        assert not self.is_alive(), "COMMIT hangs"
        assert self.error is None, self.error


def cut_off(clusters, router):
    """Gives the transfer that is decided, and not known to the second shard, which is down."""
    router.environment["KINTSUGI_FAILPOINT"] = "stop txn.decided"
    router.start()
    transfer = Transfer(router)
    wait_until("the decision", lambda: stopped(router.process), 30)
    clusters[1].stop("immediate")
    os.kill(router.process.pid, signal.SIGCONT)
    return transfer


def balances(router):
    with connect(router) as reader:
        return [reader.execute("SELECT balance FROM accounts WHERE id = %s", (id,)).fetchone()[0] for id in (LOW, HIGH)]


def main():
    with small_bank({}, {}) as (clusters, router):
        router.stop()
        transfer = cut_off(clusters, router)
        assert transfer.is_alive() and clusters[1].start() is None
        transfer.end()
        assert transfer.warnings == [], transfer.warnings
        assert balances(router) == [START - 100, START + 100]

        # Not for ever: then it is said.
        router.stop()
        router.sections["limits"] = {"hold_timeout": "1s"}
        router.write_config()
        transfer = cut_off(clusters, router)
        transfer.end()
        assert transfer.warnings == ["the transaction is committed, and not to be seen on all shards yet"], transfer.warnings
        clusters[1].start()
        wait_until("the transfer to be seen", lambda: balances(router) == [START - 200, START + 200], 30)
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
