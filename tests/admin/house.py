"""A router with a map store of its own over databases of one PostgreSQL, each of which is a shard."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "clients"))
import psycopg  # noqa: E402
from postgres import Cluster, PASSWORD, USER, die_with_parent, free_port, scratch_directory, wait_until  # noqa: E402

READER, READER_PASSWORD = "reader", "reader-secret"


class Answer:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text

    @property
    def json(self):
        return json.loads(self.text)


class House:
    def __init__(self, program, shards=2):
        self.program = program
        self.root = scratch_directory("kintsugi-admin-")
        self.cluster = Cluster(os.path.join(self.root), settings={"wal_level": "logical", "max_wal_senders": 10,
                                                                  "max_replication_slots": 10})
        with self.cluster.admin("postgres") as connection:
            connection.execute(f"ALTER ROLE {USER} SUPERUSER")
            connection.execute(f"CREATE ROLE {READER} LOGIN PASSWORD '{READER_PASSWORD}'")
            for i in range(1, shards + 1):
                connection.execute(f"CREATE DATABASE d{i} OWNER {USER}")
        self.data = os.path.join(self.root, "router")
        os.makedirs(self.data)
        self.port, self.admin_port = free_port(), free_port()
        self.log = os.path.join(self.data, "log")
        pathlib.Path(self.data, "kintsugi.toml").write_text(
            f'[server]\nlisten = "127.0.0.1:{self.port}"\nthreads = 2\n[admin]\nlisten = "127.0.0.1:{self.admin_port}"\n'
            f'[[user]]\nname = "{USER}"\npassword = "{PASSWORD}"\nadmin = true\n'
            f'[[user]]\nname = "{READER}"\npassword = "{READER_PASSWORD}"\n')
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.program, "serve", "--data", self.data], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, preexec_fn=die_with_parent)
        wait_until("the router", lambda: self.process.poll() is not None or (self.rest("GET", "/readyz", fails=None) or Answer(0, {}, "")).status == 200, 30)
        assert self.process.poll() is None, pathlib.Path(self.log).read_text()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(45)
        assert how != signal.SIGTERM or code == 0, pathlib.Path(self.log).read_text()

    def close(self):
        if self.process.poll() is None:
            self.stop()
        self.cluster.stop()

    def dsn(self, shard):
        return f"host=127.0.0.1 port={self.cluster.port} dbname=d{shard} user={USER} password={PASSWORD}"

    def shard(self, number):
        return psycopg.connect(self.dsn(number), autocommit=True)

    def sql(self, user=USER, password=PASSWORD, **more):
        return psycopg.connect(host="127.0.0.1", port=self.port, dbname="app", user=user, password=password, autocommit=True,
                               **more)

    @property
    def token_file(self):
        return os.path.join(self.data, "admin.token")

    @property
    def token(self):
        return pathlib.Path(self.token_file).read_text().strip()

    def rest(self, method, path, body=None, token="", headers=None, raw=None, fails=AssertionError):
        """One request. token "": the right one; None: none at all. raw: bytes instead of JSON."""
        head = dict(headers or {})
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            head.setdefault("Content-Type", "application/json")
        if token is not None and path.startswith("/v1"):
            head["Authorization"] = "Bearer " + (token or self.token)
        request = urllib.request.Request(f"http://127.0.0.1:{self.admin_port}{path}", data=data, headers=head, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as reply:
                return Answer(reply.status, reply.headers, reply.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read().decode("utf-8", "replace"))
        except OSError:
            if fails is None:
                return None
            raise

    def talk(self, head):
        """Sends the head of a request and nothing after it; what comes back until the router closes."""
        with socket.create_connection(("127.0.0.1", self.admin_port), 20) as connection:
            connection.settimeout(20)
            connection.sendall(head.encode())
            said = b""
            while piece := connection.recv(65536):
                said += piece
            return said.decode()

    def cli(self, *arguments, environment=None, stdin=subprocess.DEVNULL):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("KINTSUGI_")}
        run = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=400, stdin=stdin,
                             cwd=tempfile.gettempdir(),
                             env={**clean, "KINTSUGI_ADMIN": f"http://127.0.0.1:{self.admin_port}",
                                  "KINTSUGI_TOKEN": self.token, **(environment or {})})
        return run.returncode, run.stdout, run.stderr

    def cli_json(self, *arguments):
        code, out, err = self.cli(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)
