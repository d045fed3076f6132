"""A write that meets the fence of a move waits and is run again when it can be; what cannot be repeated gets 40001.

The fence is put up by hand, with the trigger that a move makes. The router waits for a change of the map; where none comes
(what is open in the map was closed on the shard by a crash, and is opened there) it tries again.
"""

import os
import shutil
import sys
import threading
import time

import psycopg

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "clients"))

from postgres import DATABASE, PASSWORD, USER, Cluster, scratch_directory  # noqa: E402
from systems import Kintsugi  # noqa: E402

FENCE = (
    "CREATE OR REPLACE TRIGGER fence_in BEFORE INSERT OR UPDATE ON accounts FOR EACH ROW "
    "WHEN (NEW.id BETWEEN 0 AND 9) EXECUTE FUNCTION kintsugi.refuse_moved('77'); "
    "CREATE OR REPLACE TRIGGER fence_out BEFORE UPDATE OR DELETE ON accounts FOR EACH ROW "
    "WHEN (OLD.id BETWEEN 0 AND 9) EXECUTE FUNCTION kintsugi.refuse_moved('77')"
)
UNFENCE = "DROP TRIGGER fence_in ON accounts; DROP TRIGGER fence_out ON accounts"


class Held:
    def __init__(self, router, shards):
        self.router, self.shards = router, shards
        self.names = 0

    def connect(self, autocommit=True, **more):
        return psycopg.connect(
            f"host=127.0.0.1 port={self.router.port} dbname={DATABASE} user={USER} password={PASSWORD}",
            autocommit=autocommit, **more)

    def on_source(self, sql):
        self.shards[0].execute(sql)  # where the keys below 10 live

    def next_map(self, admin):
        """Any change will do."""
        self.names += 1
        admin.execute("ALTER SHARDLET c RENAME TO x")
        admin.execute("ALTER SHARDLET x RENAME TO c")

    def meets_fence(self, work, patience, told=True):
        """Runs `work` against the fence, takes the fence down when it has ended or after a while, and gives back what came of it."""
        result = []

        def run():
            try:
                result.append(work())
            except Exception as error:  # looked at by the caller
                result.append(error)

        self.on_source(FENCE)
        thread = threading.Thread(target=run, daemon=True)
        began = time.monotonic()
        thread.start()
        thread.join(patience)
        waited = thread.is_alive()
        self.on_source(UNFENCE)
        if told:
            with self.connect() as admin:
                self.next_map(admin)
        thread.join(20)
        assert not thread.is_alive(), "it hangs"
        assert result, time.monotonic() - began
        return waited, result[0]

    def seen(self, key):
        with self.connect() as connection:
            return connection.execute("SELECT seen FROM accounts WHERE id = %s", [key]).fetchone()[0]

    def check_held(self, name, work, keys):
        for told in (True, False):
            before = [self.seen(key) for key in keys]
            waited, result = self.meets_fence(work, 0.25 if told else 0.8, told)
            assert not isinstance(result, Exception), f"{name}: {result!r}"
            assert waited, f"{name} did not wait"
            after = [self.seen(key) for key in keys]
            assert after == [value + 1 for value in before], f"{name}: {before} became {after}"
            print(f"held and run once, {'by the next map' if told else 'tried again'}: {name}")

    def check_refused(self, name, work, keys):
        before = [self.seen(key) for key in keys]
        waited, result = self.meets_fence(work, patience=20)  # what would wait ends with 57014 after hold_timeout
        assert isinstance(result, psycopg.errors.SerializationFailure), f"{name}: {result!r}"
        assert not waited, f"{name} waited"
        assert [self.seen(key) for key in keys] == before, name
        print(f"40001, and nothing is left of it: {name}")

    # ---- what can be repeated

    def simple(self):
        with self.connect() as c:
            done = c.cursor()
            c.pgconn.exec_(b"SELECT 1")
            result = c.pgconn.exec_(b"UPDATE accounts SET seen = seen + 1 WHERE id = 1")
            assert result.command_tuples == 1, result.error_message
            del done

    def simple_returning(self):
        with self.connect() as c:
            result = c.pgconn.exec_(b"UPDATE accounts SET seen = seen + 1 WHERE id = 1 RETURNING id, seen")
            assert (result.ntuples, result.get_value(0, 0)) == (1, b"1"), result.error_message

    def simple_two_statements(self):
        with self.connect() as c:
            result = c.pgconn.exec_(b"UPDATE accounts SET seen = seen + 1 WHERE id = 1; SELECT 7 FROM accounts WHERE id = 1")
            assert result.ntuples == 1, result.error_message

    def extended(self):
        with self.connect() as c:
            done = c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s RETURNING id", [1])
            assert done.fetchall() == [(1,)]

    def prepared(self):
        with self.connect(prepare_threshold=0) as c:
            done = c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [1], prepare=True)
            assert done.rowcount == 1

    def pipeline_of_one_batch(self):
        """The refused one is the first of its transaction: all of it comes again."""
        with self.connect(prepare_threshold=0) as c:
            update = "UPDATE accounts SET seen = seen + 1 WHERE id = %s"
            c.execute(update, [12], prepare=True)
            with c.pipeline():
                done = [c.execute(update, [key]) for key in (1, 2, 11)]
            assert [cursor.rowcount for cursor in done] == [1, 1, 1], done

    def fan_out(self):
        with self.connect() as c:
            done = c.execute("UPDATE accounts SET seen = seen + 1 WHERE id IN (1, 2, 15, 25)")
            assert done.rowcount == 4, done.rowcount

    def fan_out_by_parameters(self):
        with self.connect() as c:
            done = c.execute("UPDATE accounts SET seen = seen + 1 WHERE id BETWEEN %s AND %s", [1, 29])
            assert done.rowcount == 29, done.rowcount

    def first_of_a_transaction(self):
        with self.connect(autocommit=False) as c:
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [1])
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [11])
            c.commit()

    def first_on_its_shard(self):
        """What the transaction has done is on another shard, and stays."""
        with self.connect(autocommit=False) as c:
            c.execute("SAVEPOINT here")
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [25])
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [1])
            c.execute("RELEASE here")
            c.commit()

    def fan_out_first(self):
        with self.connect(autocommit=False) as c:
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id IN (1, 25)")
            c.commit()

    # ---- what cannot

    def second_of_a_transaction(self):
        with self.connect(autocommit=False) as c:
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [11])
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [1])
            c.commit()

    def second_of_a_script(self):
        with self.connect() as c:
            result = c.pgconn.exec_(b"UPDATE accounts SET seen = seen + 1 WHERE id = 11; UPDATE accounts SET seen = seen "
                                    b"+ 1 WHERE id = 1")
            if result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"40001":
                raise psycopg.errors.SerializationFailure(result.error_message.decode())

    def second_of_a_pipeline(self):
        with self.connect(prepare_threshold=0) as c:
            update = "UPDATE accounts SET seen = seen + 1 WHERE id = %s"
            c.execute(update, [12], prepare=True)
            with c.pipeline():
                for key in (11, 1):
                    c.execute(update, [key])

    def copy(self):
        with self.connect() as c, c.cursor() as cursor:
            with cursor.copy("COPY accounts (id, balance) FROM STDIN") as copy:
                copy.write_row((200, 1))  # on the other shard: nothing of it may stay
                copy.write_row((5, 1))

    def fan_out_second(self):
        with self.connect(autocommit=False) as c:
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = 11")
            c.execute("UPDATE accounts SET seen = seen + 1 WHERE id IN (1, 25)")
            c.commit()

    # ---- a deadline

    def too_long(self):
        self.on_source(FENCE)
        try:
            with self.connect() as c:
                began = time.monotonic()
                try:
                    c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = 1")
                    raise AssertionError("the fence let it through")
                except psycopg.errors.QueryCanceled as error:
                    assert "handed over" in str(error), error
                assert 1.5 < time.monotonic() - began < 15
                assert c.execute("SELECT 1").fetchone() == (1,)
        finally:
            self.on_source(UNFENCE)
        print("a statement waits for hold_timeout and no longer")

    def canceled(self):
        self.on_source(FENCE)
        try:
            with self.connect() as c:
                over = threading.Event()

                def cancel():
                    while not over.wait(0.3):
                        c.cancel()

                canceling = threading.Thread(target=cancel)
                canceling.start()
                try:
                    c.execute("UPDATE accounts SET seen = seen + 1 WHERE id = %s", [1])
                    raise AssertionError("the fence let it through")
                except psycopg.errors.QueryCanceled as error:
                    assert "user request" in str(error), error
                finally:
                    over.set()
                    canceling.join()
                assert c.execute("SELECT 1").fetchone() == (1,)
        finally:
            self.on_source(UNFENCE)
        print("a statement that waits can be canceled")

    def run(self):
        self.check_held("a simple query", self.simple, [1])
        self.check_held("a simple query with rows", self.simple_returning, [1])
        self.check_held("a query of two statements, the first refused", self.simple_two_statements, [1])
        self.check_held("an extended query", self.extended, [1])
        self.check_held("a prepared statement", self.prepared, [1])
        self.check_held("a pipeline", self.pipeline_of_one_batch, [1, 2, 11])
        self.check_held("a write to several shards", self.fan_out, [1, 2, 15, 25])
        self.check_held("a write to several shards, by parameters", self.fan_out_by_parameters, [1, 15, 29])
        self.check_held("the first statement of a transaction", self.first_of_a_transaction, [1, 11])
        self.check_held("a transaction's first statement on a shard", self.first_on_its_shard, [1, 25])
        self.check_held("a transaction's first statement, to several shards", self.fan_out_first, [1, 25])
        self.check_refused("a later statement of a transaction", self.second_of_a_transaction, [1, 11])
        self.check_refused("the second of two statements in one query", self.second_of_a_script, [1, 11])
        self.check_refused("the second statement of a pipeline", self.second_of_a_pipeline, [1, 11])
        self.check_refused("a later statement to several shards", self.fan_out_second, [1, 11, 25])
        self.check_refused("COPY", self.copy, [1])
        with self.connect() as c:
            assert c.execute("SELECT count(*) FROM accounts").fetchone() == (30,), "a COPY that failed has left rows"
        self.too_long()
        self.canceled()


def main():
    root = scratch_directory("kintsugi-held-")
    cluster = None
    try:
        os.mkdir(os.path.join(root, "pg"))
        os.chmod(os.path.join(root, "pg"), 0o755)
        cluster = Cluster(os.path.join(root, "pg"), settings={"max_prepared_transactions": 50})
        with cluster.admin("postgres") as admin:
            admin.execute(f"ALTER ROLE {USER} SUPERUSER")
            for i in range(2):
                admin.execute(f"CREATE DATABASE shard{i + 1} OWNER {USER}")
        router = Kintsugi(os.environ["KINTSUGI_PROGRAM"], cluster, root,
                          sections={"pool": {"size": 10}, "limits": {"hold_timeout": "2s"}},
                          users=[{"name": USER, "password": PASSWORD, "admin": True}], store=True)
        shards = [cluster.admin(f"shard{i + 1}") for i in range(2)]
        held = Held(router, shards)
        with held.connect() as admin:
            for i in range(2):
                admin.execute(f"CREATE SHARD s{i + 1} DSN 'host=127.0.0.1 port={cluster.port} dbname=shard{i + 1} "
                              f"user={USER} password={PASSWORD}'")
            admin.execute("CREATE SHARD MAP keys BY RANGE (bigint)")
            for name, low, high, shard in (("a", "MINVALUE", 10, "s1"), ("b", 10, 20, "s1"), ("c", 20, "MAXVALUE", "s2")):
                admin.execute(f"CREATE SHARDLET {name} OF keys FOR VALUES FROM ({low}) TO ({high}) ON SHARD {shard}")
            admin.execute("CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, "
                          "seen bigint NOT NULL DEFAULT 0) SHARD BY keys (id)")
            for i in range(30):
                if i != 5:
                    admin.execute("INSERT INTO accounts (id, balance) VALUES (%s, 100)", [i])
            admin.execute("INSERT INTO accounts (id, balance) VALUES (5, 1)")
            admin.execute("DELETE FROM accounts WHERE id = 5")
            admin.execute("INSERT INTO accounts (id, balance) VALUES (5, 100)")
        held.run()
        for shard in shards:
            shard.close()
        router.stop()
    finally:
        if cluster:
            cluster.stop()
        shutil.rmtree(root, ignore_errors=True)
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
