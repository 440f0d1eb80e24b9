"""MCP in lines: an app on TCP, and a client of `patchbay mcp`."""

import json
import select
import socket
import subprocess
import threading

from peer import Server, run

BOM = b"\xef\xbb\xbf"
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'


def spoken(write):
    """Returns a case: an app in lines that writes each response with `write(send, text, first)`."""
    def case(broker):
        words = Server()
        listener = socket.create_server(("127.0.0.1", 0))

        def serve(connection):
            first = True
            for line in connection.makefile("rb"):
                try:
                    message = json.loads(line)
                except ValueError:
                    return connection.close()
                words.received.append(message)
                if "id" in message and "method" in message:
                    write(connection.sendall, words.reply(message), first)
                    first = False

        def accept():
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        client = broker.client(broker.add(listener.getsockname()[1]))
        assert "hello" in client.tools()
        assert json.loads(client.call(arguments={"x": "1"})["content"][0]["text"]) == {"x": "1"}
    return case


def strange(broker):
    """An app whose first line is no message speaks another protocol, such as that of a login shell."""
    try:
        spoken(lambda send, text, first: send(b"Starting MCP server on stdio\n" + text + b"\n"))(broker)
    except AssertionError:
        return
    raise AssertionError("the app was taken for an MCP server")


def bytewise(send, text, first):
    for byte in text + b"\n":
        send(bytes([byte]))


def typed(*pieces, answers=(1, 2)):
    """Returns a case: a client of `patchbay mcp` writes these bytes and gets responses with these IDs."""
    def case(broker):
        process = subprocess.Popen([broker.program, "mcp", "--socket", broker.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            found = []
            for piece in pieces:
                process.stdin.write(piece)
                process.stdin.flush()
            while len(found) < len(answers):
                assert select.select([process.stdout], [], [], 10)[0], f"there are only {found}"
                line = process.stdout.readline()
                assert line, f"the output ended after {found}: {process.stderr.read()[:300]}"
                message = json.loads(line)
                if "result" in message or "error" in message:
                    found.append(message.get("id") if "result" in message else message["error"]["code"])
            assert sorted(map(str, found)) == sorted(map(str, answers)), found
        finally:
            process.stdin.close()
            process.wait(5)
    return case


def framed(text):
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


CASES = [
    ("php-mcp/laravel#22", "an app writes a log line after each response", spoken(lambda send, text, first: send(text + b"\nHandled a request\n"))),
    ("editor-code-assistant/eca#298", "an app greets with text: refused", strange),
    ("LouSputthole/Sbox-Claude#1", "an app begins with a BOM", spoken(lambda send, text, first: send((BOM if first else b"") + text + b"\n"))),
    ("buildomator/buildomator#2", "an app ends its lines with CR and LF", spoken(lambda send, text, first: send(text + b"\r\n"))),
    ("clacky-ai/openclacky#489", "an app writes single bytes", spoken(bytewise)),
    ("modelcontextprotocol/python-sdk#1720", "an app sends the ID as text", spoken(lambda send, text, first: send(json.dumps((v := json.loads(text)) | {"id": str(v["id"])}).encode() + b"\n"))),
    ("php-mcp/laravel#33", "a client ends its lines with CR and LF, and sends empty ones", typed(INITIALIZE + b"\r\n\r\n\n" + PING + b"\r\n")),
    ("Badgerati/Pode#1604", "a client begins with a BOM", typed(BOM + INITIALIZE + b"\n" + PING + b"\n")),
    ("lkm1developer/apollo-io-mcp-server#2", "a client writes a line that is no JSON", typed(INITIALIZE + b"\n", b"Apollo started\n", PING + b"\n", answers=(1, -32700, 2))),
    ("modelcontextprotocol/python-sdk#2546", "a client frames with Content-Length: refused", typed(framed(INITIALIZE) + b"\n", answers=(-32700, 1))),
    ("microsoft/azure-devops-mcp#147", "a client's last line has no end", typed(INITIALIZE + b"\n" + PING[:20], PING[20:] + b"\n")),
]

if __name__ == "__main__":
    run(CASES)
