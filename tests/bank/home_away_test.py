"""While the home shard is away a statement over several shards is an error; when it is back the sum is whole.

What names mean is asked of a shard before a session's first statement. When nobody answers, a sharded table must not be
taken for one of the home shard: that would be half of the rows, without a word.

    home_away_test.py        KINTSUGI_PROGRAM: the program to test
"""

import sys

import psycopg
from small_bank import SUM as WHOLE
from small_bank import connect, small_bank

SUM = "SELECT sum(balance) FROM accounts"
AS_CLIENTS_SEND_THEM = {
    "simple": lambda c: c.execute(SUM),
    "extended": lambda c: c.execute(SUM + " WHERE id > %s", (-1,)),
    "prepared": lambda c: c.execute(SUM, prepare=True),
    "script": lambda c: c.execute("SELECT 1; " + SUM),
    "write": lambda c: c.execute(f"UPDATE accounts SET balance = balance WHERE id = 30 RETURNING {WHOLE}"),
}


def last_of(cursor):
    while cursor.nextset():
        pass
    return cursor.fetchone()[0]


def main():
    with small_bank({}, {}) as (clusters, router):
        with connect(router) as admin:
            assert last_of(admin.execute(SUM)) == WHOLE
        clusters[0].stop("immediate")
        sessions = {}
        for how, send in AS_CLIENTS_SEND_THEM.items():
            sessions[how] = connect(router)
            for _ in range(2):
                try:
                    send(sessions[how])
                except psycopg.Error as error:
                    assert error.sqlstate in ("KG005", "57P03"), (how, error.sqlstate, error)
                else:
                    raise AssertionError(f"{how}: an answer while the home shard is away")
        # In a block that has failed for it, too, ROLLBACK is heard.
        in_block = connect(router)
        in_block.execute("BEGIN")
        try:
            in_block.execute(SUM)
            raise AssertionError("an answer while the home shard is away")
        except psycopg.Error as error:
            assert error.sqlstate in ("KG005", "57P03"), error
        in_block.execute("ROLLBACK")
        sessions["in a block before"] = in_block
        AS_CLIENTS_SEND_THEM["in a block before"] = lambda c: c.execute(SUM)
        clusters[0].start()
        for how, session in sessions.items():
            for _ in range(3):
                found = last_of(AS_CLIENTS_SEND_THEM[how](session))
                assert found == WHOLE, f"{how}: {found}"
            session.close()
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
