"""Frames of WebSockets, good and bad."""

import http.client
import socket
import threading
import unittest
from typing import Tuple

from atoll._errors import AtollError
from atoll._websocket import WebSocket


def pair() -> Tuple[WebSocket, socket.socket]:
    """Return a connection and the socket at its other end."""
    here, other = socket.socketpair()
    connection = http.client.HTTPConnection("localhost")
    connection.sock = here
    other.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    connection.putrequest("GET", "/")
    connection.endheaders()
    response = connection.getresponse()
    other.recv(4096)
    return WebSocket(response, connection), other


def frame(first: int, data: bytes, size: bytes = b"") -> bytes:
    return bytes([first]) + (size or bytes([len(data)])) + data


class WebSocketTest(unittest.TestCase):
    def setUp(self) -> None:
        self.connection, self.other = pair()
        self.addCleanup(self.other.close)
        self.addCleanup(self.connection.close)

    def test_fragments_with_pings_between(self) -> None:
        long = frame(0x82, b"x" * 300, bytes([126, 1, 44]))
        self.other.sendall(frame(0x02, b"ab") + frame(0x89, b"p") + frame(0x80, b"cd") + frame(0x81, b"text") + long + frame(0x88, b""))
        self.assertEqual(self.connection.receive(), (False, b"abcd"))
        self.assertEqual(self.connection.receive(), (True, b"text"))
        self.assertEqual(self.connection.receive(), (False, b"x" * 300))
        self.assertIsNone(self.connection.receive())
        pong = self.other.recv(7)
        self.assertEqual((pong[0], pong[1], pong[6] ^ pong[2]), (0x8A, 0x81, ord("p")))

    def test_what_is_sent_is_masked(self) -> None:
        self.connection.send(b"\x00\x01" * 100)
        sent = self.other.recv(4096)
        self.assertEqual(sent[:4], bytes([0x82, 0xFE, 0, 200]))
        self.assertEqual(bytes(byte ^ sent[4 + i % 4] for i, byte in enumerate(sent[8:])), b"\x00\x01" * 100)
        with self.assertRaises(ValueError):
            self.connection.send(b"x" * (1 << 16))

    def test_what_is_wrong_is_refused(self) -> None:
        for name, data in {
            "a masked frame": frame(0x82, b"", b"\x80"),
            "an extension": frame(0xC2, b"x"),
            "a message within another": frame(0x02, b"a") + frame(0x82, b"b"),
            "a continuation of nothing": frame(0x80, b"a"),
            "a message that is too long": frame(0x82, b"", bytes([127, 0, 0, 0, 1, 0, 0, 0, 0])),
            "an end in the middle": frame(0x82, b"a", b"\x09"),
        }.items():
            with self.subTest(name):
                connection, other = pair()
                other.sendall(data)
                other.shutdown(socket.SHUT_WR)
                with self.assertRaises(AtollError):
                    connection.receive()
                connection.close()
                other.close()

    def test_close_ends_who_waits(self) -> None:
        failed = threading.Event()

        def wait() -> None:
            try:
                self.connection.receive()
            except AtollError:
                failed.set()

        waiter = threading.Thread(target=wait)
        waiter.start()
        self.connection.close()
        waiter.join(10)
        self.assertTrue(failed.is_set())


if __name__ == "__main__":
    unittest.main()
