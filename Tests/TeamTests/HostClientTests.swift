import Client
import Glibc
import Model
import NIOCore
import NIOHTTP1
import NIOPosix
import Samples
import Synchronization
import TestSupport
import Testing

@testable import Team

/// Requests over kept-alive connections to the broker of another host. TLS is left out.
@Suite struct HostClientTests {
    /// A server that answers the requests of each connection by a script, and then closes the connection.
    private final class Server: Sendable {
        let port: UInt16
        private let server: LoopbackServer
        private let log: Log

        final class Log: Sendable {
            let heads = Mutex<[String]>([])
            let sockets = Mutex<[CInt]>([])
        }

        /// The connection with the index 0 gets the first script. The last script applies to all further connections.
        init(_ scripts: [[String]]) throws {
            let log = Log()
            self.log = log
            server = try LoopbackServer(in: nil) { socket in
                let index = log.sockets.withLock { sockets in
                    defer { sockets.append(socket) }
                    return sockets.count
                }
                for answer in scripts[min(index, scripts.count - 1)] {
                    guard let head = Self.readRequest(from: socket) else { return }
                    log.heads.withLock { $0.append(head) }
                    guard !answer.isEmpty else { return }
                    _ = answer.withCString { Glibc.send(socket, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
                }
            }
            port = server.port
        }

        var connections: Int { log.sockets.withLock { $0.count } }
        var heads: [String] { log.heads.withLock { $0 } }

        /// Sends bytes over the connection with this index, which is open.
        func send(_ text: String, over index: Int) {
            let socket = log.sockets.withLock { $0[index] }
            _ = text.withCString { Glibc.send(socket, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
        }

        func stop() { server.stop() }

        private static func readRequest(from socket: CInt) -> String? {
            var text = ""
            while true {
                if let end = text.firstRange(of: "\r\n\r\n") {
                    let length = text.firstMatch(of: /Content-Length: (\d+)/).flatMap { Int($0.1) } ?? 0
                    if text[end.upperBound...].utf8.count >= length { return text }
                }
                var buffer = [UInt8](repeating: 0, count: 64 << 10)
                let count = recv(socket, &buffer, buffer.count, 0)
                guard count > 0 else { return nil }
                text += String(decoding: buffer.prefix(count), as: UTF8.self)
            }
        }
    }

    private static func answer(_ body: String, _ headers: String = "") -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
    }

    private func address(_ ports: UInt16...) throws -> MemberAddress {
        MemberAddress(
            host: "lab2",
            key: try #require(KeyPin(String(repeating: "A", count: 52))),
            addresses: ports.map { "127.0.0.1:\($0)" }
        )
    }

    private func request(_ method: HTTPMethod = .GET, body: String = "") -> OutgoingRequest {
        OutgoingRequest(
            method: method,
            target: "/v1/status",
            headers: [("Accept", "application/json")],
            body: body.isEmpty ? nil : Array(body.utf8)
        )
    }

    private func text(_ response: MemberResponse) async throws -> String {
        defer { response.close() }
        var text = ""
        while let bytes = try await response.next() { text += String(buffer: bytes) }
        return text
    }

    @Test func `several requests in turn use one connection`() async throws {
        let server = try Server([[Self.answer("one"), Self.answer("two"), Self.answer("three")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        for expected in ["one", "two", "three"] {
            let response = try await client.send(
                request(.POST, body: "{}"),
                to: try address(server.port),
                within: .seconds(30)
            )
            #expect(try await text(response) == expected)
        }
        #expect(server.connections == 1)
        #expect(server.heads[0].contains("POST /v1/status HTTP/1.1\r\nHost: lab2\r\n"))
        client.closeIdle(to: "lab2")
    }

    @Test(arguments: ["Connection: close\r\n"])
    func `a connection that the other broker ends after its response is not used again`(header: String) async throws {
        let server = try Server([[Self.answer("one", header)], [Self.answer("two")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        for expected in ["one", "two"] {
            #expect(
                try await text(try await client.send(request(), to: try address(server.port), within: .seconds(30)))
                    == expected
            )
        }
        #expect(server.connections == 2)
    }

    @Test(arguments: [HTTPMethod.GET, .POST])
    func `a request that meets the close of an idle connection is sent again on a new one`(method: HTTPMethod)
        async throws
    {
        // The first connection reads a second request and closes without a response, as at a restart.
        let server = try Server([[Self.answer("one"), ""], [Self.answer("two")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        for expected in ["one", "two"] {
            let response = try await client.send(request(method), to: try address(server.port), within: .seconds(30))
            #expect(try await text(response) == expected)
        }
        #expect(server.connections == 2)
    }

    @Test func `after a broken connection, no other idle one of the host is tried`() async throws {
        let server = try Server([
            [Self.answer("one"), Self.answer("never")], [Self.answer("two"), "no HTTP\r\n\r\n"],
            [Self.answer("three")],
        ])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let first = try await client.send(request(), to: try address(server.port), within: .seconds(30))
        let second = try await client.send(request(), to: try address(server.port), within: .seconds(30))
        for (response, expected) in [(first, "one"), (second, "two")] {
            #expect(try await text(response) == expected)
        }

        // The connection that was idle for the shorter time is used first.
        #expect(
            try await text(try await client.send(request(), to: try address(server.port), within: .seconds(30)))
                == "three"
        )
        #expect(server.connections == 3)
    }

    @Test func `the kernel ends a connection to a host that acknowledges nothing for ten seconds`() async throws {
        // The script waits for a request: a server that closed the connection at once would race with the question below.
        let server = try Server([[""]])
        defer { server.stop() }
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: Int(server.port)) { channel in
                channel.eventLoop.makeCompletedFuture {
                    _ = try HostConnection.addHandlers(to: channel)
                    return channel
                }
            }
        let option = ChannelOptions.Types.SocketOption(
            level: .tcp,
            name: NIOBSDSocket.Option(rawValue: TCP_USER_TIMEOUT)
        )
        #expect(try await channel.getOption(option).get() == 10_000)
        try? await channel.close()
    }

    @Test func `a request that a new connection loses is not sent again`() async throws {
        let server = try Server([[""], [Self.answer("never")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        await #expect(throws: HostError.responseLost("lab2")) {
            _ = try await client.send(request(.POST), to: try address(server.port), within: .seconds(30))
        }
        #expect(server.connections == 1)
    }

    @Test func `a response that ends too early is an error, and its connection is closed`() async throws {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!"
        let server = try Server([[cut], [Self.answer("two")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let response = try await client.send(request(.POST), to: try address(server.port), within: .seconds(30))
        await #expect(throws: HostError.responseLost("lab2")) { _ = try await text(response) }
        #expect(
            try await text(try await client.send(request(), to: try address(server.port), within: .seconds(30)))
                == "two"
        )
    }

    @Test func `a response that is closed before its end closes the connection`() async throws {
        let endless = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
        let server = try Server([[endless, Self.answer("never")], [Self.answer("two")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let stream = try await client.send(request(), to: try address(server.port), within: .seconds(30))
        let first = try await stream.next()
        #expect(first.map { String(buffer: $0) } == "one")
        stream.close()
        #expect(try await stream.next() == nil)
        #expect(
            try await text(try await client.send(request(), to: try address(server.port), within: .seconds(30)))
                == "two"
        )
        #expect(server.connections == 2)
    }

    @Test func `the addresses are tried in order, and the one that works is tried first the next time`() async throws {
        let free = try FreePorts.take()[0]
        let server = try Server([[Self.answer("one", "Connection: close\r\n")]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let address = try address(free, server.port)
        for _ in 0..<2 {
            #expect(try await text(try await client.send(request(), to: address, within: .seconds(30))) == "one")
        }
    }

    @Test func `an unreachable host is an error that names its last address`() async throws {
        let free = try FreePorts.take()[0]
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        await #expect(throws: HostError.unreachable("lab2", reason: "nothing listens at 127.0.0.1:\(free)")) {
            _ = try await client.send(request(), to: try address(free), within: .seconds(30))
        }
    }

    @Test func `the end of the task ends a request without a response`() async throws {
        // The last line keeps the connection open: the server waits for a third request.
        let server = try Server([[Self.answer("one"), "HTTP/1.1 ", ""]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        #expect(
            try await text(try await client.send(request(), to: try address(server.port), within: .seconds(30)))
                == "one"
        )
        let address = try address(server.port)
        await withTaskGroup { group in
            group.addTask {
                await #expect(throws: CancellationError.self) {
                    _ = try await client.send(request(.POST), to: address, within: .seconds(30))
                }
            }
            while server.heads.count < 2 { await Task.yield() }
            group.cancelAll()
        }
    }

    /// A time limit for a broker that does not answer, and its error.
    private static let limit = Duration.milliseconds(125)
    private static let timeoutError = HostError.silent("lab2", seconds: 1)

    @Test(.timeLimit(.minutes(1)), arguments: [0, 1])
    func `a broker that does not answer within the time limit of a request is an error, and is asked once`(
        earlier: Int
    ) async throws {
        // The last line keeps the connection open: the server waits for a further request.
        let server = try Server([Array(repeating: Self.answer("one"), count: earlier) + ["HTTP/1.1 ", ""]])
        let other = try Server([[Self.answer("never")]])
        defer { for server in [server, other] { server.stop() } }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let address = try address(server.port, other.port)
        for _ in 0..<earlier {
            #expect(try await text(try await client.send(request(), to: address, within: .seconds(30))) == "one")
        }

        await #expect(throws: Self.timeoutError) {
            _ = try await client.send(request(), to: address, within: Self.limit)
        }

        #expect(server.connections == 1 && server.heads.count == earlier + 1 && other.connections == 0)
    }

    @Test(.timeLimit(.minutes(1))) func `a response that stops in its middle is an error after the time limit`()
        async throws
    {
        let cut = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!"
        let server = try Server([[cut, ""]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let response = try await client.send(request(), to: try address(server.port), within: Self.limit)

        await #expect(throws: Self.timeoutError) { _ = try await text(response) }
    }

    @Test(.timeLimit(.minutes(1))) func `an event stream may be silent for longer than the time limit of its request`()
        async throws
    {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        // The server waits for a further request on each connection, so both stay open.
        let server = try Server([["\(head)3\r\none\r\n", ""], ["HTTP/1.1 ", ""]])
        defer { server.stop() }
        let client = HostClient(addressRefusal: { _ in nil }) { _ in NoSecurity() }
        let address = try address(server.port)
        let stream = try await client.send(request(), to: address, within: Self.limit)
        let first = try await stream.next()
        #expect(first.map { String(buffer: $0) } == "one")

        async let next = stream.next()
        // The time limit passes during a second request.
        await #expect(throws: Self.timeoutError) {
            _ = try await client.send(request(), to: address, within: Self.limit)
        }
        server.send("3\r\ntwo\r\n", over: 0)

        let second = try await next
        #expect(second.map { String(buffer: $0) } == "two")
        stream.close()
    }

    @Test(arguments: [
        ("10.0.0.5:7284", "10.0.0.5", 7_284), ("[fd00::7]:80", "fd00::7", 80),
        ("lab2.example.com:1", "lab2.example.com", 1),
    ])
    func `an address is a host and a port`(text: String, host: String, port: UInt16) throws {
        let parsed = try #require(MemberAddress.parse(text))
        #expect(parsed == (host, port))
    }

    @Test(arguments: ["", "10.0.0.5", ":80", "fd00::7:80", "[]:80", "10.0.0.5:0", "10.0.0.5:65536", "10.0.0.5:x"])
    func `any other text is no address`(text: String) { #expect(MemberAddress.parse(text) == nil) }
}
