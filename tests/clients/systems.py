"""What a scenario talks to: PostgreSQL itself, Kintsugi in front of it, or PgBouncer as a stand-in. Each is an address."""

import os
import pwd
import re
import signal
import socket
import subprocess

from postgres import DATABASE, OTHER, OTHER_PASSWORD, PASSWORD, SECOND, USER, die_with_parent, free_port, wait_until


class System:
    """An address that speaks PostgreSQL's protocol, and the process behind it where there is one of its own."""

    name = "?"
    host = "127.0.0.1"
    port = 0
    process = None

    def stop(self):
        pass

    def accepts(self):
        if self.process and self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with status {self.process.returncode}:\n{self.log_tail()}")
        try:
            socket.create_connection((self.host, self.port), 1).close()
            return True
        except OSError:
            return False

    def log_tail(self, lines=60):
        try:
            with open(self.log_path, errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        except (AttributeError, OSError):
            return ""

    def status_kb(self, field="VmRSS"):
        """VmRSS, VmHWM, Threads ... of the process, from /proc."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return int(re.search(rf"^{field}:\s+(\d+)", file.read(), re.M).group(1))

    def cpu_seconds(self):
        """(user, system) seconds this process has used, from /proc/PID/stat."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        tick = os.sysconf("SC_CLK_TCK")
        return int(fields[11]) / tick, int(fields[12]) / tick


class Direct(System):
    name = "direct"

    def __init__(self, cluster):
        self.port = cluster.port


class Kintsugi(System):
    """`kintsugi serve` with one shard. `extra` is more TOML, `sections` replaces keys: {"pool": {"size": 2}}."""

    name = "kintsugi"

    def __init__(
        self,
        program,
        cluster,
        root,
        name="router",
        sections=None,
        shard=None,
        users=None,
        wrapper=(),
        environment=None,
        listen_host="127.0.0.1",
        wait=True,
        store=False,  # shards come by CREATE SHARD
    ):
        self.program, self.cluster, self.root, self.name = program, cluster, root, name
        self.directory = os.path.join(root, name)
        os.makedirs(self.directory, exist_ok=True)
        self.log_path = os.path.join(self.directory, "log")
        self.port, self.admin_port = free_port(), free_port()
        self.sections = {
            "server": {"listen": f"{listen_host}:{self.port}", "threads": 2},
            "admin": {"listen": f"127.0.0.1:{self.admin_port}"},
            "database": {"name": DATABASE},
            "pool": {"mode": "transaction", "size": 2},
        }
        for section, keys in (sections or {}).items():
            self.sections.setdefault(section, {}).update(keys)
        self.users = users or [
            {"name": USER, "password": PASSWORD},
            {"name": OTHER, "password": OTHER_PASSWORD},
        ]
        self.shard = None if store else shard or cluster.shard_dsn()
        self.config = os.path.join(self.directory, "kintsugi.toml")
        self.wrapper, self.environment = list(wrapper), environment or {}
        self.write_config()
        self.start(wait)

    def write_config(self):
        def literal(value):
            if isinstance(value, bool):
                return "true" if value else "false"
            return str(value) if isinstance(value, int) else '"' + str(value).replace('"', '\\"') + '"'

        lines = []
        for section, keys in self.sections.items():
            lines += [f"[{section}]"] + [f"{key} = {literal(value)}" for key, value in keys.items()]
        for user in self.users:
            lines += ["[[user]]"] + [f"{key} = {literal(value)}" for key, value in user.items()]
        if self.shard:
            lines += ["[[shard]]", 'name = "s1"', f"dsn = {literal(self.shard)}"]
        if self.shard and os.environ.get("KINTSUGI_ROUTED"):
            # A second shard, though no table is there: every statement is planned.
            other = self.shard.replace(f"dbname={DATABASE}", f"dbname={SECOND}")
            lines += ["[[shard]]", 'name = "s2"', f"dsn = {literal(other)}"]
        with open(self.config, "w") as file:
            file.write("\n".join(lines) + "\n")

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrapper, self.program, "serve", "--config", self.config, "--data", self.directory],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
                env={**os.environ, **self.environment},
            )
        if wait:
            wait_until(f"{self.name} to listen", self.accepts, 60)

    def stop(self, expect_clean=True):
        """SIGTERM and wait. A sanitizer's report, a crash or a hang is an error here, whatever the scenario said."""
        if not self.process:
            return
        process, self.process = self.process, None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            status = process.wait(45)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{self.name} did not stop within 45 s of SIGTERM:\n{self.log_tail()}")
        if expect_clean and status != 0:
            raise RuntimeError(f"{self.name} ended with status {status}:\n{self.log_tail(200)}")

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


class PgBouncer(System):
    name = "pgbouncer"

    def __init__(self, cluster, root, mode="session", size=20, name="pgbouncer"):
        self.root, self.name = root, name
        self.directory = os.path.join(root, name)
        os.makedirs(self.directory, exist_ok=True)
        self.log_path = os.path.join(self.directory, "log")
        self.port = free_port()
        owner = {}
        users = os.path.join(self.directory, "users.txt")
        with open(users, "w") as file:
            file.write(f'"{USER}" "{PASSWORD}"\n"{OTHER}" "{OTHER_PASSWORD}"\n')
        config = os.path.join(self.directory, "pgbouncer.ini")
        with open(config, "w") as file:
            file.write(
                f"[databases]\n{DATABASE} = host=127.0.0.1 port={cluster.port} dbname={DATABASE}\n[pgbouncer]\n"
                f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = scram-sha-256\n"
                f"auth_file = {users}\npool_mode = {mode}\ndefault_pool_size = {size}\nmax_client_conn = 12000\n"
                "log_connections = 0\nlog_disconnections = 0\n"
                "ignore_startup_parameters = extra_float_digits,options,search_path,geqo,statement_timeout\n"
            )
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            owner = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            for path in (self.directory, users, config):
                os.chown(path, account.pw_uid, account.pw_gid)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["/usr/sbin/pgbouncer", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,
                **owner,
            )
        wait_until("PgBouncer to listen", self.accepts, 30)

    def stop(self):
        if self.process:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
