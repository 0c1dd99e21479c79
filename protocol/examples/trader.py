#!/usr/bin/env python3
"""A trader over TCP in plain Python: logs on, places an order, cancels it, logs out.

    trader.py HOST:PORT KEY_ID [SYMBOL] < secret

Reads the key's secret from standard input. SYMBOL is the symbol's number, in order of definition; 0 if it is left
out. Offsets are those of FORMATS.md. Prints one line per step.

An error ends it. Whoever wants to know what became of a command then logs on again: the Welcome names the last
sequence that was decided (FORMATS.md, "What a client knows of commands under way").
"""

import hashlib
import hmac
import os
import socket
import struct
import sys
import time

SCHEMA = 0x4C54
NEW_ORDER, CANCEL_ORDER = 1, 2
ORDER_RESULT, ORDER_CANCELED, REJECTED = 202, 203, 240
HELLO, CHALLENGE, PROOF, WELCOME, REFUSED = 300, 301, 302, 303, 304
LOGOUT, HEARTBEAT, SESSION_CLOSED = 320, 321, 322
TERMINAL = 1
WHOLE = 100_000_000
# RefusalReason.
REFUSALS = {1: "Malformed", 2: "Version", 3: "NotAuthenticated", 4: "RoleNotPermitted", 5: "InvalidHello",
            6: "TooManySessions", 7: "Rejected", 8: "LogUnavailable", 9: "HistoryLost", 10: "NoFeed"}
# So much a session keeps of what it is told besides answers.
TOLD_MAX = 65_536


def place(address):
    """Host and port; an address of IPv6 stands in brackets."""
    host, port = address.rsplit(":", 1)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port)


def message(template, block):
    """A message: the header states the length of what follows it."""
    return struct.pack("<HHHH", len(block), template, SCHEMA, 1) + block


def refusal(data):
    """Why the engine opens no session."""
    reason, major, minor, reject = struct.unpack_from("<HHHH", data, 8)
    why = f"refused, reason {reason} {REFUSALS.get(reason, '(unknown)')}"
    if REFUSALS.get(reason) == "Version":
        why += f": the engine speaks {major}.{minor}"
    # The core's own reason, a RejectReason.
    return f"{why}: reject reason {reject}" if reject else why


class Session:
    """A stream session: what is sent is a message, what comes is one."""

    def __init__(self, address, key_id, secret, name):
        self.socket = socket.create_connection(place(address), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.key_id = key_id
        # What came besides answers, as pairs of template and message: what others did to its orders, and perhaps
        # a Gap (241), which says that some of that is missing. Whoever keeps orders open has to look at it, and
        # takes out what it has seen.
        self.told = []
        # Until the Welcome says otherwise.
        self.heartbeat = 60
        text = name.encode()
        hello = message(HELLO, struct.pack(
            "<HHBBBBQB31sIIIBB2xQ16s", 1, 1, 1, 1, 0, 1, key_id, len(text), text,
            0, 0, 0, 0, 0, 0, os.urandom(16)))
        self.send(hello)
        nonce = self.expect(CHALLENGE)[8:40]
        mac = hmac.new(secret.encode(), nonce + hello, hashlib.sha256).digest()
        self.send(message(PROOF, mac))
        welcome = self.expect(WELCOME)
        self.session, self.epoch, self.sequence = struct.unpack_from("<IIQ", welcome, 8)
        self.heartbeat, = struct.unpack_from("<I", welcome, 36)
        # An engine of which nothing comes for three intervals is gone.
        self.socket.settimeout(3 * self.heartbeat)

    def send(self, data):
        self.socket.sendall(data)
        self.said = time.monotonic()

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                raise SystemExit("the engine closed the connection")
            data += piece
        return bytes(data)

    def read(self):
        head = self.exactly(8)
        length, template = struct.unpack_from("<HH", head)
        data = head + self.exactly(length)
        # The engine says something in each interval, so there is always an occasion.
        if time.monotonic() - self.said >= self.heartbeat:
            self.send(message(HEARTBEAT, bytes(24)))
        return template, data

    def expect(self, wanted):
        template, data = self.read()
        if template == REFUSED:
            raise SystemExit(refusal(data))
        if template != wanted:
            raise SystemExit(f"expected message {wanted}, got {template}: {data.hex()}")
        return data

    def command(self, template, body):
        """Sends a command under the next sequence."""
        self.sequence += 1
        header = struct.pack("<QQQQII", self.sequence, self.sequence, 0, self.key_id,
                             self.session, self.epoch)
        self.send(message(template, header + body))

    def call(self, template, body):
        """Sends a command; its terminal reply, without the envelope."""
        self.command(template, body)
        while True:
            kind, data = self.read()
            # Heartbeats and the session's end have no envelope.
            if kind >= HELLO:
                continue
            sequence = struct.unpack_from("<Q", data, 16)[0]
            if sequence == self.sequence and data[44] & TERMINAL:
                if kind == REJECTED:
                    raise SystemExit("rejected, reason %d" % struct.unpack_from("<H", data, 48))
                return kind, data[48:]
            if len(self.told) == TOLD_MAX:
                raise SystemExit("nobody looks at what the engine tells")
            self.told.append((kind, data))


def main():
    try:
        address, key_id, symbol = (sys.argv[1:] + ["0"])[:3]
        key_id, symbol = int(key_id), int(symbol)
        place(address)
    except ValueError:
        raise SystemExit("usage: trader.py HOST:PORT KEY_ID [SYMBOL] < secret") from None
    try:
        session = Session(address, key_id, sys.stdin.readline().strip(), "python")
    except OSError as error:
        raise SystemExit(f"{address}: {error}") from None
    print(f"session {session.session} epoch {session.epoch}")
    # Buy, LIMIT, good till cancelled.
    order = struct.pack("<IBBBBqqqqq40sB7x", symbol, 1, 1, 1, 0, 10 * WHOLE, 2 * WHOLE, 0, 0, 0, b"", 0)
    kind, result = session.call(NEW_ORDER, order)
    assert kind == ORDER_RESULT, kind
    order_id, account = struct.unpack_from("<QI", result)
    print(f"placed {order_id} account {account}")
    kind, canceled = session.call(CANCEL_ORDER, struct.pack("<IIQ", symbol, 0, order_id))
    assert kind == ORDER_CANCELED, kind
    print(f"canceled {struct.unpack_from('<Q', canceled)[0]}")
    session.command(LOGOUT, b"")
    # A heartbeat may come in front of it.
    while session.read()[0] != SESSION_CLOSED:
        pass
    print("logged out")


if __name__ == "__main__":
    main()
