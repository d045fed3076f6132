"""TLS on both sides: verify-full from the client and to the shard, channel binding, certificates renewed while running."""

import base64
import hashlib
import hmac
import os
import shutil
import signal
import ssl
import struct
import threading

import psycopg

from harness import Run, check, main, memory_kb, scaled
from postgres import DATABASE, PASSWORD, USER, wait_until
from protocol import SSL_REQUEST, RawClient, message, query, startup

CONNECTION = dict(sslmode="verify-full", host="localhost", hostaddr="127.0.0.1", channel_binding="prefer")


def secured(stage, name="extra-tls", sections=None, shard=None, certificate=None, **options):
    """A router with TLS towards its clients."""
    certificates = stage.make_certificates()
    cert, key = certificate or certificates.server(f"router-{name}")
    sections = {
        **(sections or {}),
        "server": {"tls_cert": cert, "tls_key": key, **(sections or {}).get("server", {})},
    }
    return stage.router(name, sections=sections, shard=shard, **options)


def connect(stage, router, **extra):
    options = {**CONNECTION, "sslrootcert": stage.make_certificates().ca, **extra}
    return psycopg.connect(Run(stage, router, None).conninfo(**options), autocommit=True)


def refused(stage, router, **extra):
    try:
        connect(stage, router, **extra).close()
    except psycopg.OperationalError as error:
        return str(error)
    raise AssertionError(f"connected with {extra}")


def shard_with_tls(stage):
    """The cluster of this program, given a certificate from our CA."""
    certificate = stage.make_certificates().server("shard")
    if "ssl" not in stage.cluster.settings:
        for source, target in zip(certificate, ("server.crt", "server.key")):
            stage.cluster._give(source, f"{stage.cluster.data}/{target}")
        stage.cluster.settings.update(ssl="on", ssl_cert_file="server.crt", ssl_key_file="server.key")
        stage.cluster.restart()


@check
def verified_by_the_client(stage):
    router = secured(stage)
    try:
        for mode in ("require", "verify-ca", "verify-full"):
            with connect(stage, router, sslmode=mode) as c:
                assert c.pgconn.ssl_in_use
                assert c.execute("SELECT sum(i) FROM generate_series(1, 1000) i").fetchone() == (500500,)
                assert len(c.execute("SELECT repeat('x', 5000000)").fetchone()[0]) == 5000000
                assert c.execute("SELECT length(%s)", ["y" * 3000000]).fetchone() == (3000000,)
        assert "certificate verify failed" in refused(stage, router, sslrootcert=stage.certificates.foreign_ca)
        assert "does not match host name" in refused(stage, router, host="elsewhere.example")
        with connect(stage, router, sslmode="disable") as c:
            assert not c.pgconn.ssl_in_use
        for version in ("TLSv1.2", "TLSv1.3"):
            with connect(
                stage, router, ssl_min_protocol_version=version, ssl_max_protocol_version=version
            ) as c:
                assert c.execute("SELECT 1").fetchone() == (1,)
    finally:
        router.stop()


@check
def old_protocols_are_refused(stage):
    router = secured(stage, "extra-old")
    try:
        text = refused(stage, router, ssl_min_protocol_version="TLSv1", ssl_max_protocol_version="TLSv1.1")
        assert "SSL error" in text or "protocol" in text or "no protocols available" in text, text
    finally:
        router.stop()


@check
def channel_binding_required(stage):
    """SCRAM-SHA-256-PLUS: the login is bound to this very TLS connection."""
    router = secured(stage, "extra-binding")
    try:
        for _ in range(3):
            with connect(stage, router, channel_binding="require") as c:
                assert c.execute("SELECT 1").fetchone() == (1,)
        with connect(stage, router, channel_binding="disable") as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
        assert "channel binding" in refused(stage, router, channel_binding="require", sslmode="disable")
        assert "password authentication failed" in refused(
            stage, router, channel_binding="require", password="wrong"
        )
    finally:
        router.stop()


@check
def a_binding_to_another_certificate_is_refused(stage):
    """What a man in the middle would send: a valid password, bound to his certificate."""

    router = secured(stage, "extra-middle")
    try:
        with RawClient("127.0.0.1", router.port) as c:
            c.send(struct.pack(">II", 8, SSL_REQUEST))
            assert c.exactly(1) == b"S"
            context = ssl.create_default_context(cafile=stage.certificates.ca)
            c.socket = context.wrap_socket(c.socket, server_hostname="localhost")

            c.send(startup(user=USER, database=DATABASE))
            kind, body = c.read()
            assert b"SCRAM-SHA-256-PLUS" in body and b"SCRAM-SHA-256\0" in body, body
            bare = f"n=,r={base64.b64encode(os.urandom(18)).decode()}"
            first = f"p=tls-server-end-point,,{bare}".encode()
            c.send(message("p", b"SCRAM-SHA-256-PLUS\0" + struct.pack(">I", len(first)) + first))
            server_first = c.read()[1][4:].decode()
            fields = dict(part.split("=", 1) for part in server_first.split(","))
            salted = hashlib.pbkdf2_hmac(
                "sha256", PASSWORD.encode(), base64.b64decode(fields["s"]), int(fields["i"])
            )
            key = hmac.digest(salted, b"Client Key", "sha256")
            wrong = base64.b64encode(b"p=tls-server-end-point,," + b"\x07" * 32).decode()
            final = f"c={wrong},r={fields['r']}"
            signature = hmac.digest(
                hashlib.sha256(key).digest(), f"{bare},{server_first},{final}".encode(), "sha256"
            )
            proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
            c.send(message("p", f"{final},p={proof}".encode()))
            kind, body = c.read()
            assert kind == "E" and b"C28" in body or b"08P01" in body, (kind, body)
            assert c.is_closed()
        with RawClient(
            "127.0.0.1", router.port
        ) as c:  # says it could bind but thinks we do not offer it: a downgrade
            c.send(struct.pack(">II", 8, SSL_REQUEST))
            assert c.exactly(1) == b"S"
            c.socket = ssl.create_default_context(cafile=stage.certificates.ca).wrap_socket(
                c.socket, server_hostname="localhost"
            )
            c.send(startup(user=USER, database=DATABASE))
            c.read()
            first = b"y,,n=,r=abcdefgh"
            c.send(message("p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(first)) + first))
            kind, body = c.read()
            assert kind == "E", (kind, body)
    finally:
        router.stop()


@check
def bytes_before_the_handshake(stage):
    """Plain bytes sent together with SSLRequest are an attack (CVE-2021-23214): refused, not used."""
    router = secured(stage, "extra-early-bytes")
    try:

        with RawClient("127.0.0.1", router.port) as c:
            c.send(
                struct.pack(">II", 8, SSL_REQUEST) + startup(user=USER, database=DATABASE) + query("SELECT 1")
            )
            try:
                answer = c.exactly(1)
            except Exception:
                answer = b""
            if answer == b"S":
                try:
                    ssl.create_default_context(cafile=stage.certificates.ca).wrap_socket(
                        c.socket, server_hostname="localhost"
                    )
                    raise AssertionError("the handshake went on after smuggled bytes")
                except (ssl.SSLError, OSError):
                    pass
        with RawClient("127.0.0.1", router.port) as c:
            c.send(struct.pack(">II", 8, SSL_REQUEST))
            assert c.exactly(1) == b"S"
            c.send(b"this is no handshake" * 10)
            c.is_closed()
        slow = RawClient("127.0.0.1", router.port)
        slow.send(struct.pack(">II", 8, SSL_REQUEST))
        assert slow.exactly(1) == b"S"
        slow.send(b"\x16\x03\x01\x02\x00\x01")  # a handshake that never comes
        with connect(stage, router) as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
        slow.socket.close()
    finally:
        router.stop()


@check
def verified_towards_the_shard(stage):
    shard_with_tls(stage)
    certificates = stage.make_certificates()
    dsn = stage.cluster.shard_dsn(
        host="localhost", hostaddr="127.0.0.1", sslmode="verify-full", sslrootcert=certificates.ca
    )
    dsn = stage.cluster.shard_dsn(host="localhost", sslmode="verify-full", sslrootcert=certificates.ca)
    stage.cluster.access("hostssl all all 127.0.0.1/32 scram-sha-256", "hostssl all all ::1/128 scram-sha-256")
    try:
        router = stage.router("extra-shard-tls", shard=dsn)
        try:
            with Run(stage, router, None).connect() as c:
                assert c.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (
                    True,
                )
                assert c.execute(
                    "SELECT length(%s), length(repeat('x', 3000000))", ["y" * 3000000]
                ).fetchone() == (3000000, 3000000)
        finally:
            router.stop()
        for name, wrong in (
            ("foreign", dsn.replace(certificates.ca, certificates.foreign_ca)),
            ("name", dsn.replace("host=localhost", "host=127.0.0.2")),
            ("plain", stage.cluster.shard_dsn(sslmode="disable")),
        ):
            if name == "name":
                continue  # 127.0.0.2 is not listened on here; the name check has its own test in the executor
            router = stage.router(
                f"extra-shard-{name}",
                shard=wrong,
                sections={"pool": {"connect_timeout": "2s", "wait_timeout": "3s"}},
            )
            try:
                try:
                    with Run(stage, router, None).connect() as c:
                        c.execute("SELECT 1")
                    raise AssertionError(f"a statement ran over an unverified connection ({name})")
                except psycopg.OperationalError as error:
                    assert PASSWORD not in str(error)
                assert PASSWORD not in router.log_tail(500), "a password in the log"
            finally:
                router.stop()
    finally:
        stage.cluster.access("host all all 127.0.0.1/32 scram-sha-256")


@check
def other_passwords_towards_the_shard(stage):
    """md5 and cleartext, where the shard asks for them."""
    with stage.cluster.admin() as admin:
        admin.execute(
            "SET password_encryption = md5; DROP ROLE IF EXISTS old; CREATE ROLE old LOGIN PASSWORD 'old-secret'"
        )
    for method in ("md5", "password", "trust"):
        stage.cluster.access(f"host all all 127.0.0.1/32 {method}")
        router = stage.router(
            f"extra-{method}",
            shard=stage.cluster.shard_dsn("old", "old-secret"),
            users=[{"name": "old", "password": "old-secret"}],
        )
        try:

            def works():
                try:
                    with Run(stage, router, None).connect(user="old", password="old-secret") as c:
                        return c.execute("SELECT current_user::text").fetchone() == ("old",)
                except psycopg.OperationalError:
                    return False

            wait_until(f"a login by {method}", works, 20)
        finally:
            router.stop()
    stage.cluster.access("host all all 127.0.0.1/32 scram-sha-256")


@check
def stored_verifier_instead_of_a_password(stage):
    with stage.cluster.admin() as admin:
        verifier = admin.execute("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [USER]).fetchone()[0]
    router = stage.router("extra-verifier", users=[{"name": USER, "scram": verifier}])
    try:
        with Run(stage, router, None).connect() as c:
            assert c.execute("SELECT 1").fetchone() == (1,)
        try:
            Run(stage, router, None).connect(password="wrong").close()
            raise AssertionError("a wrong password got in")
        except psycopg.OperationalError as error:
            assert "password authentication failed" in str(error), error
    finally:
        router.stop()


def serial_of(router, stage):
    context = ssl.create_default_context(cafile=stage.certificates.ca)
    with RawClient("127.0.0.1", router.port) as c:
        c.send(struct.pack(">II", 8, SSL_REQUEST))
        assert c.exactly(1) == b"S"
        with context.wrap_socket(c.socket, server_hostname="localhost") as secure:
            return secure.getpeercert()["serialNumber"]


@check
def certificate_renewed_on_sighup(stage):
    """New connections get the new certificate, old ones live on; a broken file leaves the old one in place."""

    certificates = stage.make_certificates()
    paths = f"{certificates.directory}/live.crt", f"{certificates.directory}/live.key"

    def install(name):
        for source, target in zip(certificates.server(name), paths):
            shutil.copyfile(source, target)

    install("first")
    router = secured(stage, "extra-reload", certificate=paths)
    try:
        before = serial_of(router, stage)
        old = connect(stage, router, channel_binding="require")
        old.execute("BEGIN")
        install("second")
        router.process.send_signal(signal.SIGHUP)
        wait_until("the new certificate", lambda: serial_of(router, stage) != before, 20)
        assert old.execute("SELECT 1").fetchone() == (1,)
        old.execute("COMMIT")
        now = serial_of(router, stage)
        with open(paths[0], "w") as file:
            file.write("not a certificate\n")
        router.process.send_signal(signal.SIGHUP)
        for _ in range(20):
            with connect(stage, router, channel_binding="require") as c:
                assert c.execute("SELECT 1").fetchone() == (1,)
        assert serial_of(router, stage) == now and router.process.poll() is None
        install("third")
        router.process.send_signal(signal.SIGHUP)
        wait_until("the third certificate", lambda: serial_of(router, stage) not in (before, now), 20)
        old.close()
    finally:
        router.stop()


@check
def certificate_renewed_under_load(stage):
    """Clients that log in meanwhile, their password bound to the certificate that they were shown, notice nothing."""
    certificates = stage.make_certificates()
    paths = f"{certificates.directory}/busy.crt", f"{certificates.directory}/busy.key"

    def install(name):
        for source, target in zip(certificates.server(name), paths):
            shutil.copyfile(source, target)

    install("one")
    router = secured(stage, "extra-busy", certificate=paths)
    stopping, logins, errors = threading.Event(), [0] * 4, []

    def log_in(number):
        while not stopping.is_set() and not errors:
            try:
                with connect(stage, router, channel_binding="require") as c:
                    assert c.execute("SELECT 7").fetchone() == (7,)
                logins[number] += 1
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=log_in, args=(number,), daemon=True) for number in range(len(logins))]
    try:
        for thread in threads:
            thread.start()
        for _ in range(scaled(12, 4)):
            before, served = serial_of(router, stage), list(logins)
            install("another")
            router.process.send_signal(signal.SIGHUP)
            wait_until("the other certificate", lambda: serial_of(router, stage) != before, 20)
            wait_until("logins with it", lambda: errors or all(n > m for n, m in zip(logins, served)), 20)
    finally:
        stopping.set()
        for thread in threads:
            thread.join(30)
        router.stop()
    assert not errors, errors


@check
def cancel_over_tls(stage):

    router = secured(stage, "extra-cancel")
    try:
        with connect(stage, router) as c, stage.cluster.admin() as admin:

            def cancel():
                wait_until(
                    "it to run",
                    lambda: admin.execute(
                        "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND "
                        "query LIKE 'SELECT pg_sleep(30)%'"
                    ).fetchone(),
                )
                c.cancel()

            t = threading.Thread(target=cancel)
            t.start()
            try:
                c.execute("SELECT pg_sleep(30)")
                raise AssertionError("not cancelled")
            except psycopg.errors.QueryCanceled:
                pass
            t.join()
    finally:
        router.stop()


@check
def a_stalled_client_over_tls(stage):
    """Back-pressure through TLS: constant memory as without."""
    router = secured(stage, "extra-stalled")
    try:
        with RawClient("127.0.0.1", router.port, 60) as c:
            c.send(struct.pack(">II", 8, SSL_REQUEST))
            assert c.exactly(1) == b"S"
            c.socket = ssl.create_default_context(cafile=stage.certificates.ca).wrap_socket(
                c.socket, server_hostname="localhost"
            )
            assert c.login() is None

            before = router.status_kb()
            c.send(query("SELECT repeat('x', 100000) FROM generate_series(1, 1000)"))
            assert c.read()[0] == "T"
            with connect(stage, router) as d:
                for _ in range(30):
                    d.execute("SELECT pg_sleep(0.01)")
            grown = router.status_kb() - before
            assert grown < memory_kb(10000), f"{grown} KB"
            while c.read()[0] != "Z":
                pass
    finally:
        router.stop()


@check
def loopback_only_without_users(stage):
    """A listener beyond loopback needs users with passwords (CONTRACT): else it does not start, and says why."""
    router = stage.router("extra-open", listen_host="0.0.0.0", users=[{"name": "nopassword"}], wait=False)
    try:
        status = router.process.wait(20)
        assert status in (1, 2, 3), status
        assert "password" in router.log_tail(), router.log_tail()
    finally:
        router.kill()


if __name__ == "__main__":
    main()
