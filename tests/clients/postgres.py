"""One PostgreSQL cluster of our own: initdb, start, stop, restart; gone with the process that started it.

Everything lives under one directory that the `postgres` user may enter. The superuser comes in over the Unix socket
(trust, only this machine's temporary directory); everybody else over TCP with SCRAM.
"""

import ctypes
import faulthandler
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import psycopg

from ports import free_port  # noqa: F401 (for those who import it from here)

BIN = "/usr/lib/postgresql/15/bin"
DATABASE, SECOND = "app", "app_2"
USER, PASSWORD = "app", "app-secret"
OTHER, OTHER_PASSWORD = "other", "other-secret"

# A test that hangs says where, before ctest kills it.
if "KINTSUGI_TEST_TIMEOUT" in os.environ:
    faulthandler.dump_traceback_later(max(5, int(os.environ["KINTSUGI_TEST_TIMEOUT"]) - 10), exit=True)


def wait_until(what, condition, seconds=30, pause=0.02):
    """Waits for a condition, not for a time; says what it waited for when the deadline passes."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(pause)


def die_with_parent():
    """For Popen's preexec_fn: the child gets SIGTERM when the test is killed, so that nothing is left behind."""
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGTERM)


def die_with_parent_fast():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGINT)  # PostgreSQL: fast shutdown


def scratch_directory(prefix="kintsugi-clients-"):
    path = tempfile.mkdtemp(prefix=prefix)
    os.chmod(path, 0o755)
    return path


class Certificates:
    """A CA made here, a server certificate for localhost and 127.0.0.1, and an unrelated CA that signed nothing."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)
        self.ca = self._authority("ca")
        self.foreign_ca = self._authority("foreign")

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.directory, check=True, capture_output=True)

    def _authority(self, name):
        self._openssl(
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "30",
            "-subj",
            f"/CN=Kintsugi test {name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.crt",
        )
        return os.path.join(self.directory, f"{name}.crt")

    def server(self, name, common_name="localhost", names="DNS:localhost,IP:127.0.0.1"):
        """A new certificate signed by our CA; returns (certificate, key)."""
        with open(os.path.join(self.directory, f"{name}.ext"), "w") as file:
            file.write(f"subjectAltName={names}\n")
        self._openssl(
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            f"/CN={common_name}",
            "-keyout",
            f"{name}.key",
            "-out",
            f"{name}.csr",
        )
        self._openssl(
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "30",
            "-sha256",
            "-extfile",
            f"{name}.ext",
            "-out",
            f"{name}.crt",
        )
        os.chmod(os.path.join(self.directory, f"{name}.key"), 0o600)
        return os.path.join(self.directory, f"{name}.crt"), os.path.join(self.directory, f"{name}.key")


class Cluster:
    def __init__(self, root, name="pg", certificate=None, settings=None):
        self.root, self.name = root, name
        self.data = os.path.join(root, name)
        self.port = None
        self.process = None
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "max_connections": 200,
            "fsync": "off",
            "shared_buffers": "64MB",
            "unix_socket_directories": root,
            "password_encryption": "scram-sha-256",
            "lc_messages": "C",
            "timezone": "UTC",
            "max_prepared_transactions": 20,
            "logging_collector": "off",
            "autovacuum": "off",
            **(settings or {}),
        }
        self._owner = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            self._owner = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(root, account.pw_uid, account.pw_gid)
        self._run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
        )
        if certificate:
            for source, target in zip(certificate, ("server.crt", "server.key")):
                self._give(source, os.path.join(self.data, target))
            self.settings.update(ssl="on", ssl_cert_file="server.crt", ssl_key_file="server.key")
        self.access("host all all 127.0.0.1/32 scram-sha-256")
        self.start()
        with self.admin("postgres") as connection:
            for user, password in ((USER, PASSWORD), (OTHER, OTHER_PASSWORD)):
                connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
            connection.execute(f"GRANT {OTHER} TO {USER}")
            connection.execute(f"GRANT pg_read_all_stats, pg_signal_backend TO {USER}")
            connection.execute(f"CREATE DATABASE {DATABASE} OWNER {USER}")
            if os.environ.get("KINTSUGI_ROUTED"):
                connection.execute(f"CREATE DATABASE {SECOND} OWNER {USER}")
        self.fresh_schema()

    def _run(self, program, *arguments):
        done = subprocess.run(
            [f"{BIN}/{program}", *arguments], cwd=self.root, capture_output=True, text=True, **self._owner
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr}")

    def _give(self, source, target):
        shutil.copyfile(source, target)
        os.chmod(target, 0o600)
        if self._owner:
            os.chown(target, self._owner["user"], self._owner["group"])

    def access(self, *lines):
        """pg_hba.conf: these lines for TCP; the superuser over the socket always."""
        path = os.path.join(self.root, f"{self.name}.hba")
        with open(path, "w") as file:
            file.write("local all postgres trust\n" + "\n".join(lines) + "\n")
        self._give(path, os.path.join(self.data, "pg_hba.conf"))
        if self.process:
            self.process.send_signal(signal.SIGHUP)

    def start(self):
        """Starts on the port it had before, or on a new one the first time."""
        for attempt in range(5):
            port = self.port or free_port()
            arguments = [f"{BIN}/postgres", "-D", self.data, "-p", str(port)]
            for key, value in self.settings.items():
                arguments += ["-c", f"{key}={value}"]
            log = open(os.path.join(self.root, f"{self.name}.log"), "ab")
            self.process = subprocess.Popen(
                arguments,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent_fast,
                start_new_session=True,
                **self._owner,
            )
            log.close()
            if self._ready(port):
                self.port = port
                return
            if self.port:
                break
        raise RuntimeError(f"PostgreSQL did not start; see {self.root}/{self.name}.log")

    def _ready(self, port):
        def answers():
            if self.process.poll() is not None:
                return "dead"
            try:
                psycopg.connect(host=self.root, port=port, user="postgres", dbname="postgres").close()
                return "up"
            except psycopg.OperationalError:
                return None

        return wait_until("PostgreSQL to start", answers, 60) == "up"

    def stop(self, mode="fast"):
        if not self.process:
            return
        self.process.send_signal(
            {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode]
        )
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
        self.process = None

    def restart(self, mode="fast"):
        self.stop(mode)
        self.start()

    def admin(self, database=DATABASE):
        return psycopg.connect(
            host=self.root, port=self.port, user="postgres", dbname=database, autocommit=True
        )

    def fresh_schema(self):
        """What every run starts from: an empty schema public that belongs to the application."""
        with self.admin() as connection:
            connection.execute("SET client_min_messages = warning; SET lock_timeout = '20s'")
            for (gid,) in connection.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
                connection.execute(f"ROLLBACK PREPARED '{gid}'")
            connection.execute(
                f"DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public AUTHORIZATION {USER}; "
                "GRANT ALL ON SCHEMA public TO PUBLIC"
            )

    def shard_dsn(self, user=USER, password=PASSWORD, **extra):
        parts = {
            "host": "127.0.0.1",
            "port": self.port,
            "dbname": DATABASE,
            "user": user,
            "password": password,
            **extra,
        }
        return " ".join(f"{key}={value}" for key, value in parts.items())
