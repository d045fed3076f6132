"""A tap on the wire: copies bytes between a client and a server, and afterwards says what the server said.

Two recordings are compared message by message, so a driver cannot be the only judge. What may differ between two runs
of the same thing is normalised here and nowhere else: process ids, secret keys, the authentication exchange, object
ids of what the scenario itself created, and the context line with which Kintsugi names the shard.
"""

import re
import selectors
import socket
import struct
import threading

# A hint that the router adds to PostgreSQL's own words.
ADDED_HINTS = {'This router serves the database "app".'}
SHARD_CONTEXT = re.compile(r"(^|\n)shard \"?s1\"?[^\n]*$")
FIRST_USER_OID = 16384
OID_TYPES = {26, 2205, 24, 2206, 4089}  # oid, regclass, regproc, regtype, regnamespace


class Connection:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.from_client, self.from_server = bytearray(), bytearray()


class Recorder:
    def __init__(self, host, port):
        self.target = (host, port)
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        self.connections = []
        self._open = True
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ, None)
        while self._open:
            for key, _ in selector.select(0.1):
                if key.data is None:
                    self._accept(selector)
                else:
                    self._copy(selector, key)
        for key in list(selector.get_map().values()):
            key.fileobj.close()
        selector.close()

    def _accept(self, selector):
        client, _ = self.listener.accept()
        try:
            server = socket.create_connection(self.target, 10)
        except OSError:
            client.close()
            return
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(30)
        connection = Connection(client, server)
        self.connections.append(connection)
        selector.register(client, selectors.EVENT_READ, (connection, server, connection.from_client))
        selector.register(server, selectors.EVENT_READ, (connection, client, connection.from_server))

    def _copy(self, selector, key):
        connection, other, log = key.data
        try:
            data = key.fileobj.recv(1 << 16)
            if data:
                log += data
                other.sendall(data)
                return
        except OSError:
            pass
        for end in (connection.client, connection.server):
            try:
                selector.unregister(end)
            except (KeyError, ValueError):
                pass
            end.close()

    def stop(self):
        self._open = False
        self._thread.join(5)

    def transcripts(self):
        """One list of lines a connection, in the order they were opened; cancel requests have none."""
        return [
            lines
            for lines in (describe(bytes(c.from_client), bytes(c.from_server)) for c in self.connections)
            if lines
        ]


def split(stream):
    """Server bytes to (type, body); what is cut off at the end is not shown."""
    at = 0
    while at + 5 <= len(stream):
        size = struct.unpack_from(">I", stream, at + 1)[0]
        if at + 1 + size > len(stream):
            return
        yield chr(stream[at]), stream[at + 5 : at + 1 + size]
        at += 1 + size


def error_fields(body):
    fields = {}
    for part in body.split(b"\0"):
        if part and chr(part[0]) not in "FLR":  # where in PostgreSQL's source it was raised
            fields[chr(part[0])] = part[1:].decode("utf8", "replace")
    if fields.get("H") in ADDED_HINTS:
        del fields["H"]
    if "W" in fields:
        fields["W"] = SHARD_CONTEXT.sub("", fields["W"])
        if not fields["W"]:
            del fields["W"]
    return fields


def columns_of(body):
    count, at, columns = struct.unpack_from(">H", body)[0], 2, []
    for _ in range(count):
        end = body.index(b"\0", at)
        name = body[at:end].decode("utf8", "replace")
        table, attribute, kind, size, modifier, form = struct.unpack_from(">IhIhih", body, end + 1)
        columns.append(
            (
                name,
                "own" if table >= FIRST_USER_OID else table,
                attribute,
                "own" if kind >= FIRST_USER_OID else kind,
                size,
                modifier,
                form,
            )
        )
        at = end + 19
    return columns


def values_of(body, columns):
    count, at, values = struct.unpack_from(">H", body)[0], 2, []
    for i in range(count):
        size = struct.unpack_from(">i", body, at)[0]
        at += 4
        if size < 0:
            values.append(None)
            continue
        value = body[at : at + size]
        at += size
        if columns and len(columns) == count and columns[i][3] in OID_TYPES:
            number = int(value) if value.isdigit() else struct.unpack(">I", value)[0] if size == 4 else 0
            if number >= FIRST_USER_OID:
                value = b"own"
        values.append(value if size <= 200 else f"{size} bytes, hash {hash(value):x}")
    return values


def describe(from_client, from_server):
    """The server's side of one connection as lines that two runs can be compared by."""
    if len(from_client) >= 8 and struct.unpack_from(">I", from_client, 4)[0] == 80877102:
        return []
    if len(from_client) >= 8 and struct.unpack_from(">I", from_client, 4)[0] in (80877103, 80877104):
        if from_server[:1] in (b"N", b"S"):
            from_server = from_server[1:]
    lines, columns, greeting = [], None, []
    starting = True
    for kind, body in split(from_server):
        if starting:
            if kind == "S":
                greeting.append(body.rstrip(b"\0").decode("utf8", "replace").replace("\0", "="))
                continue
            if kind in "RK":
                continue
            starting = False
            lines.append("greeting " + ", ".join(sorted(greeting)))
        if kind == "T":
            columns = columns_of(body)
            lines.append(f"T {columns}")
        elif kind == "D":
            lines.append(f"D {values_of(body, columns)}")
        elif kind in "EN":
            lines.append(f"{kind} {error_fields(body)}")
        elif kind == "A":
            lines.append(f"A {body[4:]!r}")
        elif kind == "t":
            types = struct.unpack_from(f">{struct.unpack_from('>H', body)[0]}I", body, 2)
            lines.append(f"t {['own' if t >= FIRST_USER_OID else t for t in types]}")
        elif kind == "d":
            lines.append(f"d {bytes(body) if len(body) < 300 else (len(body), hash(body))}")
        else:
            lines.append(f"{kind} {bytes(body)!r}")
    return lines
