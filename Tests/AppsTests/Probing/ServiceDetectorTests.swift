import FoundationEssentials
import Glibc
import Model
@testable import Apps
import Synchronization
import SystemIO
import TestSupport
import Testing

/// The detection result for servers that behave like real ones.
@Suite(.scratchFolder) struct ServiceDetectorTests {
    private let scratch = ScratchFolder.current
    private static let server =
        #"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"#
        + #""serverInfo":{"name":"Shop","version":"3"}}}"#

    /// The server's response to a request, given its method, path and text.
    private typealias Answer = @Sendable (_ method: Substring, _ path: Substring, _ text: String) -> String?

    private static func http(_ status: Int, _ body: String, _ type: String = "application/json") -> String {
        "HTTP/1.1 \(status) X\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    private static let status =
        #"{"value":{"ready":true,"os":{"name":"iOS","version":"17.1"},"ios":{},"build":{"time":"now","version":"9.1.0","#
        + #""productBundleIdentifier":"com.facebook.WebDriverAgentRunner"}},"sessionId":null}"#

    /// Runs a server on loopback. Returns the detection result and the number of connections it took.
    ///
    /// The server's port is one that the user configured, so that all `profiles` are tried.
    private func detect(
        _ profiles: [String] = [],
        _ answer: @escaping Answer
    ) async throws -> (service: ServerIdentity, connections: Int) {
        let profiles = try profiles.map(ShippedProfile.load)
        let count = Mutex(0)
        let server = try LoopbackServer(in: scratch) { connection in
            count.withLock { $0 += 1 }
            guard let text = Self.request(connection) else { return }
            let words = text.prefix { !$0.isNewline }.split(separator: " ")
            guard let reply = answer(words.first ?? "", words.dropFirst().first ?? "", text) else {
                // Silent until the client closes the connection.
                _ = Self.read(connection)
                return
            }
            _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
            if text.hasPrefix("{") || reply.contains("keep-open") { _ = Self.read(connection) }
        }
        let route = Route.network(NetworkRoute(address: "127.0.0.1", port: server.port))
        let detector = ServiceDetector(
            dialer: NetworkPlanner(),
            ports: ProbePorts([server.port], profiles: profiles),
            timeout: .seconds(1)
        )
        return (try await detector.detect(route), count.withLock { $0 })
    }

    private static func read(_ connection: CInt) -> String? {
        var buffer = [UInt8](repeating: 0, count: 8_192)
        let count = recv(connection, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }

    /// A complete HTTP request, or a line that does not start one.
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

    private static let shipped = ["app-debug", "debugbridge", "devicekit", "mobilecli", "simlock", "webdriveragent"]

    @Test func `a server that answers ok to everything is not identified`() async throws {
        let found = try await detect(Self.shipped) { _, _, _ in Self.http(200, #"{"status":"ok"}"#) }

        #expect(found.service.kind == .tcp)
        // Health, one request of each profile, the version of DevTools, and the two paths of MCP servers.
        #expect(found.connections == 4 + Self.shipped.count)
    }

    @Test func `a DevTools server is identified by its version`() async throws {
        let found = try await detect { _, path, _ in
            path == "/json/version"
                ? Self.http(200, #"{"Browser":"Chrome/140.0","Protocol-Version":"1.3"}"#)
                : Self.http(404, "")
        }

        #expect(found.service.kind == .web && found.service.name?.text == "Chrome")
        #expect(found.service.version?.text == "140.0" && found.connections == 2)
    }

    @Test func `app-debug is identified by its profile`() async throws {
        let found = try await detect(Self.shipped) { _, path, _ in
            path == "/actions" ? Self.http(200, #"["buy"]"#) : Self.http(404, "")
        }

        #expect(found.service == ServerIdentity(kind: EndpointKind("app-debug")))
    }

    @Test func `app-debug is identified even if it closes the connection on unknown paths`() async throws {
        let found = try await detect(["app-debug"]) { _, path, _ in
            path == "/actions" ? Self.http(200, #"["buy"]"#) : ""
        }

        #expect(found.service.kind == EndpointKind("app-debug"))
    }

    @Test func `WebDriverAgent is identified by its profile, with its app and version`() async throws {
        let found = try await detect(Self.shipped) { _, path, _ in
            path == "/status" ? Self.http(200, Self.status) : Self.http(404, "")
        }

        #expect(
            found.service
                == ServerIdentity(
                    kind: EndpointKind("webdriveragent"),
                    app: SanitizedText("com.facebook.WebDriverAgentRunner"),
                    version: SanitizedText("9.1.0")
                )
        )
    }

    @Test func `a server that requires its token for calls is marked`() async throws {
        let found = try await detect(["debugbridge"]) { _, path, _ in
            switch path {
            case "/healthz": Self.http(200, #"{"version":"1","build":"42","accessor_hash":"9f","bundle_id":"a.b"}"#)
            case "/elements": Self.http(401, #"{"error":"unauthorized"}"#)
            default: Self.http(404, "")
            }
        }

        #expect(found.service.wantsToken && found.service.app?.text == "a.b")
    }

    private static let appReveal = #"{"status":"ok","port":9876,"bonjour":true}"#

    @Test(arguments: [true, false])
    func `an app that does not tell its name in time is known in part only`(isSilent: Bool) async throws {
        let found = try await detect { _, path, _ in
            if path == "/health" { return Self.http(200, Self.appReveal) }
            return isSilent ? nil : Self.http(500, "")
        }

        #expect(found.service.kind == .appreveal && found.service.app == nil)
        #expect(found.service.isPartial == isSilent)
    }

    @Test(arguments: [true, false])
    func `a server that is not identified is known in part only if it left out a response`(isSilent: Bool) async throws
    {
        let found = try await detect { _, path, _ in
            isSilent && path == "/health" ? nil : Self.http(404, "")
        }

        #expect(found.service.kind == .tcp && found.service.isPartial == isSilent)
    }

    @Test func `an MCP server is identified although profiles are tried before`() async throws {
        let found = try await detect(Self.shipped) { method, path, text in
            path == "/mcp" && method == "POST" ? Self.http(200, Self.server) : Self.http(404, "")
        }

        #expect(found.service.kind == .mcp)
    }

    @Test func `a detection ends when a stream is opened to the port`() async throws {
        let count = Mutex(0)
        let server = try LoopbackServer(in: scratch) { connection in
            count.withLock { $0 += 1 }
            guard Self.request(connection) != nil else { return }
            let reply = Self.http(404, "")
            _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
        }
        let detector = ServiceDetector(dialer: NetworkPlanner(), timeout: .seconds(1)) { _ in
            count.withLock { $0 } == 2
        }
        let route = Route.network(NetworkRoute(address: "127.0.0.1", port: server.port))

        await #expect(throws: PortInUse.self) { try await detector.detect(route) }
        #expect(count.withLock { $0 } == 2)
    }

    @Test(arguments: ["/mcp", "/"]) func `an MCP server is found at its path, with the Accept that it requires`(
        path: String
    ) async throws {
        let found = try await detect { method, asked, text in
            guard asked == path, method == "POST" else { return Self.http(404, "Not Found", "text/plain") }
            guard text.contains("Accept: application/json, text/event-stream\r\n") else {
                return Self.http(
                    406,
                    #"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not Acceptable"}}"#
                )
            }
            return Self.http(200, Self.server)
        }

        #expect(found.service == ServerIdentity(kind: .mcp, name: SanitizedText("Shop"), version: SanitizedText("3")))
    }

    /// The server closes the connection while the client is still sending its request.
    @Test func `a response counts even if the server closes the connection at once`() async throws {
        let server = try LoopbackServer(in: scratch) { connection in
            guard Self.read(connection) != nil else { return }
            let reply = Self.http(200, #"{"status":"ok"}"#)
            _ = reply.withCString { send(connection, $0, strlen($0), CInt(MSG_NOSIGNAL)) }
        }
        let route = Route.network(NetworkRoute(address: "127.0.0.1", port: server.port))
        for _ in 0..<300 {
            var exchange = HTTPExchange(
                ServiceProbe.health,
                over: AppConnection(over: route, try await NetworkPlanner().dial(route)),
                limits: ResponseLimits(),
                clock: PollerClock()
            )
            #expect(try await exchange.response().status == 200)
        }
    }

    @Test func `an MCP server that responds with an open event stream is identified`() async throws {
        let found = try await detect { _, path, _ in
            path == "/mcp"
                ? "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX: keep-open\r\n\r\n"
                    + "event: message\ndata: \(Self.server)\n\n"
                : Self.http(404, "")
        }

        #expect(found.service.kind == .mcp)
    }

    /// The reactions of servers with a line protocol to an HTTP request: nothing, an error per line, or a close.
    @Test(arguments: [nil, #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"# + "\n", ""])
    func `a server with a line protocol is identified, however it reacts to HTTP`(toHTTP: String?) async throws {
        let found = try await detect { _, _, text in text.hasPrefix("{") ? Self.server + "\n" : toHTTP }

        #expect(found.service.kind == .mcp && found.service.name?.text == "Shop")
        // Each connection disconnects the client that such a server already has.
        #expect(found.connections == 2)
    }

    @Test func `bytes before the message that form no line are ignored`() async throws {
        let beat = "\u{1}\u{1}heartbeat!"
        let found = try await detect { _, _, text in text.hasPrefix("{") ? beat + Self.server + "\n" : nil }

        #expect(found.service.kind == .mcp && found.connections == 2)
    }

    @Test func `a server with a line protocol that is not MCP is not identified`() async throws {
        let found = try await detect { _, _, text in
            text.hasPrefix("{") ? #"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"# + "\n" : ""
        }

        #expect(found.service.kind == .tcp)
    }

    @Test func `a silent server is abandoned after three requests`() async throws {
        let found = try await detect { _, _, _ in nil }

        #expect(found.service.kind == .tcp && found.connections == 3)
    }
}
