import Glibc
import Model
import TestSupport
import SystemIO
import Synchronization
import Testing

@testable import Probing

/// What a port is said to be, by servers that behave as those in the field do.
@Suite struct ServiceDetectorTests {
    private static let server =
        #"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"#
        + #""serverInfo":{"name":"Shop","version":"3"}}}"#

    /// What a server answers to a request: its method, path and whole text.
    private typealias Answer = @Sendable (_ method: Substring, _ path: Substring, _ text: String) -> String?

    private static func http(_ status: Int, _ body: String, _ type: String = "application/json") -> String {
        "HTTP/1.1 \(status) X\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// The identity of a server on loopback, and how many connections finding it out took.
    private func identify(_ answer: @escaping Answer) async throws -> (identity: ServerIdentity, connections: Int) {
        try await withScratchFolder { scratch in
            let count = Mutex(0)
            let server = try LoopbackServer(in: scratch) { connection in
                count.withLock { $0 += 1 }
                guard let text = Self.request(connection) else { return }
                let words = text.prefix { !$0.isNewline }.split(separator: " ")
                guard let reply = answer(words.first ?? "", words.dropFirst().first ?? "", text) else {
                    // Silent for as long as the other side waits.
                    _ = Self.read(connection)
                    return
                }
                _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
                if text.hasPrefix("{") || reply.contains("keep-open") { _ = Self.read(connection) }
            }
            let route = Route.lan(LANRoute(address: "127.0.0.1", port: server.port))
            let identifier = ServiceDetector(dialer: LANDialer(), patience: .seconds(1))
            return (try await identifier.identify(route), count.withLock { $0 })
        }
    }

    private static func read(_ connection: CInt) -> String? {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        let count = recv(connection, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// A whole HTTP request, or a line that begins none.
    private static func request(_ connection: CInt) -> String? {
        var text = ""
        while let more = read(connection) {
            text += more
            if text.hasPrefix("{"), text.hasSuffix("\n") { return text }
            guard let head = text.firstRange(of: "\r\n\r\n") else { continue }
            let length = text.firstRange(of: "Content-Length: ").flatMap {
                Int(text[$0.upperBound...].prefix { $0.isNumber })
            }
            if text[head.upperBound...].utf8.count >= length ?? 0 { return text }
        }
        return nil
    }

    @Test func `a server that says ok to everything is none of those that are known`() async throws {
        let found = try await identify { _, _, _ in Self.http(200, #"{"status":"ok"}"#) }

        #expect(found.identity.kind == .tcp)
    }

    @Test func `app-debug is known by the array of its actions`() async throws {
        let found = try await identify { _, path, _ in
            path == "/actions" ? Self.http(200, #"["buy"]"#) : Self.http(404, "")
        }

        #expect(found.identity.kind == .appDebug)
    }

    @Test func `app-debug is known also where it closes the connection on paths that it does not have`() async throws {
        let found = try await identify { _, path, _ in path == "/actions" ? Self.http(200, #"["buy"]"#) : "" }

        #expect(found.identity.kind == .appDebug)
    }

    @Test(arguments: ["/mcp", "/"]) func `an MCP server is found at its path, with the Accept that it wants`(
        path: String
    ) async throws {
        let found = try await identify { method, asked, text in
            guard asked == path, method == "POST" else { return Self.http(404, "Not Found", "text/plain") }
            guard text.contains("Accept: application/json, text/event-stream\r\n") else {
                return Self.http(
                    406,
                    #"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not Acceptable"}}"#
                )
            }
            return Self.http(200, Self.server)
        }

        #expect(found.identity == ServerIdentity(kind: .mcp, name: SanitizedText("Shop"), version: SanitizedText("3")))
    }

    /// The server ends the connection while the client is still busy with its request.
    @Test func `an answer counts, however soon the server closes the connection behind it`() async throws {
        try await withScratchFolder { scratch in
            let server = try LoopbackServer(in: scratch) { connection in
                guard Self.read(connection) != nil else { return }
                let reply = Self.http(200, #"["buy"]"#)
                _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
            }
            let route = Route.lan(LANRoute(address: "127.0.0.1", port: server.port))
            for _ in 0..<300 {
                let answer = try await ServiceProbe.actions.run(over: try await LANDialer().dial(route))
                #expect(answer.status == 200)
            }
        }
    }

    @Test func `an MCP server that answers in a stream and keeps it open is found`() async throws {
        let found = try await identify { _, path, _ in
            path == "/mcp"
                ? "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX: keep-open\r\n\r\n"
                    + "event: message\ndata: \(Self.server)\n\n"
                : Self.http(404, "")
        }

        #expect(found.identity.kind == .mcp)
    }

    /// What servers in lines do with a request of HTTP: nothing, an error for each line, or an end.
    @Test(arguments: [
        nil, #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"# + "\n", "",
    ])
    func `a server in lines is found, whatever it makes of HTTP`(toHTTP: String?) async throws {
        let found = try await identify { _, _, text in text.hasPrefix("{") ? Self.server + "\n" : toHTTP }

        #expect(found.identity.kind == .mcp && found.identity.takesLines)
        #expect(found.identity.name?.text == "Shop")
        // Each connection throws the client out that such a server has.
        #expect(found.connections == 2)
    }

    @Test func `bytes before the message that are no line do not count`() async throws {
        let beat = "\u{1}\u{1}heartbeat!"
        let found = try await identify { _, _, text in text.hasPrefix("{") ? beat + Self.server + "\n" : nil }

        #expect(found.identity.takesLines)
    }

    @Test func `a server in lines that is no MCP server is none that is known`() async throws {
        let found = try await identify { _, _, text in
            text.hasPrefix("{") ? #"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"# + "\n" : ""
        }

        #expect(found.identity.kind == .tcp)
    }

    @Test func `one that is silent is given up after three questions`() async throws {
        let found = try await identify { _, _, _ in nil }

        #expect(found.identity.kind == .tcp && found.connections == 3)
    }
}
