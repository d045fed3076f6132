"""A client of the wire protocol with no manners: sends any bytes, and says what came back."""

import base64
import functools
import hashlib
import hmac
import os
import socket
import struct

from postgres import DATABASE, PASSWORD, USER
from recorder import columns_of, error_fields

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


class Closed(Exception):
    pass


def message(kind, body=b""):
    return kind.encode() + struct.pack(">I", len(body) + 4) + body


def query(text):
    return message("Q", text.encode() + b"\0")


def parse(name, text, oids=()):
    return message(
        "P", name.encode() + b"\0" + text.encode() + b"\0" + struct.pack(f">H{len(oids)}I", len(oids), *oids)
    )


def bind(portal, name, values=(), formats=(), results=()):
    body = (
        portal.encode()
        + b"\0"
        + name.encode()
        + b"\0"
        + struct.pack(f">H{len(formats)}H", len(formats), *formats)
    )
    body += struct.pack(">H", len(values))
    for value in values:
        body += struct.pack(">i", -1) if value is None else struct.pack(">I", len(value)) + value
    return message("B", body + struct.pack(f">H{len(results)}H", len(results), *results))


def describe(kind, name):
    return message("D", kind.encode() + name.encode() + b"\0")


def execute(portal="", rows=0):
    return message("E", portal.encode() + b"\0" + struct.pack(">I", rows))


def close(kind, name):
    return message("C", kind.encode() + name.encode() + b"\0")


SYNC, FLUSH, TERMINATE = message("S"), message("H"), message("X")


def startup(version=(3, 0), **parameters):
    body = struct.pack(">HH", *version)
    for key, value in parameters.items():
        body += key.encode() + b"\0" + value.encode() + b"\0"
    body += b"\0"
    return struct.pack(">I", len(body) + 4) + body


class RawClient:
    def __init__(self, host, port, seconds=20):
        self.socket = socket.create_connection((host, port), seconds)
        self.socket.settimeout(seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.parameters, self.pid, self.secret, self.said = {}, 0, 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *pieces):
        try:
            self.socket.sendall(b"".join(pieces))
        except (BrokenPipeError, ConnectionResetError):
            raise Closed

    def exactly(self, size):
        while len(self.buffer) < size:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Closed
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read(self):
        head = self.exactly(5)
        return chr(head[0]), self.exactly(struct.unpack(">I", head[1:])[0] - 4)

    def until_ready(self):
        """All messages up to ReadyForQuery or the end of the connection, as readable lines."""
        lines = []
        while True:
            try:
                kind, body = self.read()
            except Closed:
                return lines + ["closed"]
            lines.append(readable(kind, body))
            if kind == "Z":
                return lines

    def ask(self, *pieces):
        self.send(*pieces)
        return self.until_ready()

    def is_closed(self):
        """Waits for the other side to close; True if it does before the timeout."""
        try:
            while self.read():
                pass
        except Closed:
            return True
        except TimeoutError:
            return False

    def login(self, user=USER, password=PASSWORD, database=DATABASE, version=(3, 0), **parameters):
        """Startup and SCRAM; returns the lines of a refusal, or None when logged in."""
        self.send(startup(version, user=user, database=database, **parameters))
        lines = []
        while True:
            try:
                kind, body = self.read()
            except Closed:
                return lines + ["closed"]
            if kind == "R":
                code = struct.unpack_from(">I", body)[0]
                if code == 10:
                    nonce = base64.b64encode(os.urandom(18)).decode()
                    bare = f"n=,r={nonce}"
                    first = f"n,,{bare}".encode()
                    self.send(message("p", b"SCRAM-SHA-256\0" + struct.pack(">I", len(first)) + first))
                elif code == 11:
                    self.send(message("p", scram_final(password, bare, body[4:].decode())))
            elif kind == "S":
                name, value = body[:-1].decode().split("\0")
                self.parameters[name] = value
            elif kind == "K":
                self.pid, self.secret = struct.unpack(">II", body[:8])
            elif kind == "Z":
                self.said = lines  # notices, NegotiateProtocolVersion
                return None
            else:
                lines.append(readable(kind, body))


@functools.lru_cache(1000)
def salted_password(password, salt, iterations):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)


def scram_final(password, client_first_bare, server_first):
    fields = dict(part.split("=", 1) for part in server_first.split(","))
    salted = salted_password(password, base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    without_proof = f"c={base64.b64encode(b'n,,').decode()},r={fields['r']}"
    signature = hmac.digest(
        hashlib.sha256(key).digest(), f"{client_first_bare},{server_first},{without_proof}".encode(), "sha256"
    )
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature))).decode()
    return f"{without_proof},p={proof}".encode()


def readable(kind, body):
    if kind in "EN":
        fields = error_fields(body)
        return f"{kind} {fields.get('V')} {fields.get('C')} {fields.get('M')}"
    if kind == "T":
        return f"T {[(c[0], c[3], c[6]) for c in columns_of(body)]}"
    if kind == "A":
        return f"A {bytes(body[4:])!r}"
    return f"{kind} {bytes(body)!r}"


def logged_in(run_or_system, **options):
    client = RawClient(
        "127.0.0.1", run_or_system.port, **({"seconds": options.pop("seconds")} if "seconds" in options else {})
    )
    refused = client.login(**options)
    if refused is not None:
        client.socket.close()
        raise AssertionError(f"login refused: {refused}")
    return client
