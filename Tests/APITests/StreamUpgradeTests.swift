import HTTPTypes
import Model
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import API

/// The headers that turn a connection into a stream, and the end of a connection behind which no request is parsed.
@Suite struct StreamUpgradeTests {
    @Test(arguments: [
        [("Connection", "Upgrade"), ("Upgrade", "patchbay-stream/1")],
        [("Connection", "keep-alive , UPGRADE"), ("Upgrade", "Patchbay-Stream/1")],
        [("Connection", "keep-alive"), ("Connection", "upgrade"), ("Upgrade", "h2c, patchbay-stream/1")],
        [("Connection", "upgrade"), ("Upgrade", "h2c"), ("Upgrade", "patchbay-stream/1"), ("Content-Length", "0")],
    ])
    func `an upgrade may be one member of several, in any case`(fields: [(String, String)]) throws {
        try StreamRoutes.requireUpgrade(headers(fields))
    }

    @Test(arguments: [
        [("Upgrade", "patchbay-stream/1")], [("Connection", "upgrade")],
        [("Connection", "keep-alive"), ("Upgrade", "patchbay-stream/1")],
        [("Connection", "upgrade x"), ("Upgrade", "patchbay-stream/1")],
        [("Connection", "no-upgrade"), ("Upgrade", "patchbay-stream/1")],
        [("Connection", "upgrade"), ("Upgrade", "patchbay-stream/1.0")],
        [("Connection", "upgrade"), ("Upgrade", "patchbay-stream /1")],
        [("Connection", "upgrade"), ("Upgrade", "websocket")],
    ])
    func `without both headers the answer is 426`(fields: [(String, String)]) {
        let problem = #expect(throws: Problem.self) { try StreamRoutes.requireUpgrade(headers(fields)) }
        #expect(problem?.code == .upgradeRequired && problem?.hint == "patchbay stdio")
    }

    @Test(arguments: [
        ("Content-Length", "1"), ("Content-Length", "00"), ("Transfer-Encoding", "chunked"), ("Transfer-Encoding", ""),
    ])
    func `an upgrade with a body is refused`(name: String, value: String) {
        let fields = [("Connection", "upgrade"), ("Upgrade", "patchbay-stream/1"), (name, value)]
        let problem = #expect(throws: Problem.self) { try StreamRoutes.requireUpgrade(headers(fields)) }
        #expect(problem?.code == .badRequest)
    }

    private func headers(_ fields: [(String, String)]) -> HTTPFields {
        HTTPFields(fields.compactMap { name, value in HTTPField.Name(name).map { HTTPField(name: $0, value: value) } })
    }

    @Test(arguments: [
        (HTTPVersion.http1_1, "GET", [("Connection", "upgrade"), ("Upgrade", "h2c")], true),
        (.http1_1, "CONNECT", [], true), (.http1_1, "GET", [("Connection", "te, close")], true),
        (.http1_0, "GET", [], true), (.http1_0, "GET", [("Connection", "keep-alive")], false),
        (.http1_1, "GET", [], false), (.http1_1, "POST", [("Transfer-Encoding", "chunked")], false),
        (.http1_1, "POST", [("Transfer-Encoding", "identity")], true),
        (.http1_1, "POST", [("Transfer-Encoding", "xchunked")], true),
        (.http1_1, "POST", [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")], true),
    ])
    func `the connection closes after the response to its last request, and not before`(
        version: HTTPVersion,
        method: String,
        fields: [(String, String)],
        closes: Bool
    ) throws {
        let connection = try Connection()
        try connection.request(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/first"))
        try connection.request(
            HTTPRequestHead(
                version: version,
                method: HTTPMethod(rawValue: method),
                uri: "/second",
                headers: HTTPHeaders(fields)
            )
        )

        #expect(try connection.respond()["Connection"] == [])
        #expect(connection.channel.isActive)

        #expect(try connection.respond()["Connection"] == (closes ? ["close"] : []))
        #expect(connection.channel.isActive == !closes)
    }

    @Test(arguments: [
        (HTTPVersion.http1_1, [("Upgrade", "h2c")]), (.http1_1, [("Connection", "close")]), (.http1_0, []),
    ])
    func `a request behind the last one of a connection is dropped`(
        version: HTTPVersion,
        fields: [(String, String)]
    ) throws {
        let connection = try Connection()
        let last = HTTPRequestHead(version: version, method: .GET, uri: "/last", headers: HTTPHeaders(fields))
        try connection.request(last)
        try connection.request(HTTPRequestHead(version: .http1_1, method: .GET, uri: "/behind"))

        #expect(try connection.respond()["Connection"] == ["close"])
        #expect(!connection.channel.isActive)
        var uris: [String] = []
        while let part = try connection.channel.readInbound(as: HTTPServerRequestPart.self) {
            if case .head(let head) = part { uris.append(head.uri) }
        }
        #expect(uris == ["/last"])
    }

    @Test(arguments: [(HTTPVersion.http1_0, false), (.http1_1, true)])
    func `an upgrade with HTTP 1 0 is ignored`(version: HTTPVersion, arrives: Bool) throws {
        let connection = try Connection()
        try connection.request(
            HTTPRequestHead(version: version, method: .GET, uri: "/", headers: ["Upgrade": "patchbay-stream/1"])
        )

        let part = try connection.channel.readInbound(as: HTTPServerRequestPart.self)
        guard case .head(let head)? = part else {
            Issue.record("\(String(describing: part))")
            return
        }
        #expect(head.headers.contains(name: "Upgrade") == arrives)
    }

    @Test(arguments: ["Upgrade: patchbay-stream/1", "Upgrade: h2c, patchbay-stream/1"])
    func `bytes behind an upgrade are kept, with and behind its head and behind another request`(field: String) throws {
        let timeoutHandler = RequestTimeoutHandler(maxHeadSize: 1_024, awaitsHandshake: false)
        let channel = EmbeddedChannel()
        try channel.pipeline.syncOperations.addHandlers(
            timeoutHandler,
            ByteToMessageHandler(RequestDecoder(maxHeadSize: 1_024, notifying: timeoutHandler)),
            RequestProgressHandler(notifying: timeoutHandler, tracker: ResponseTracker(), limiter: ConnectionLimiter())
        )
        try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
        let head = "GET /v1/streams HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\(field)\r\n\r\n"

        let first = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        try channel.writeInbound(ByteBuffer(string: first + head + "\n"))
        #expect(timeoutHandler.unparsed == ByteBuffer(string: "\n"))
        try channel.writeInbound(ByteBuffer(string: "GET / HTTP/1.1\r\n\r\n"))
        #expect(timeoutHandler.unparsed == ByteBuffer(string: "\nGET / HTTP/1.1\r\n\r\n"))

        // More than a head may have, and for longer than a head may take.
        try channel.writeInbound(ByteBuffer(repeating: 1, count: 100_000))
        channel.embeddedEventLoop.advanceTime(by: RequestTimeoutHandler.bodyTimeout)
        #expect(channel.isActive && timeoutHandler.unparsed?.readableBytes == 100_019)
        try channel.writeInbound(ByteBuffer(repeating: 1, count: RequestTimeoutHandler.maxUnparsedSize))
        #expect(!channel.isActive)
        let problem = try #require(try channel.readOutbound(as: ByteBuffer.self))
        #expect(String(buffer: problem).hasPrefix("HTTP/1.1 400 "))
    }

    /// A server's connection behind its HTTP decoder.
    private struct Connection {
        let channel = EmbeddedChannel()

        init() throws {
            let timeoutHandler = RequestTimeoutHandler(maxHeadSize: 1_024, awaitsHandshake: false)
            let progressHandler = RequestProgressHandler(
                notifying: timeoutHandler,
                tracker: ResponseTracker(),
                limiter: ConnectionLimiter()
            )
            try channel.pipeline.syncOperations.addHandler(progressHandler)
            try channel.connect(to: SocketAddress(unixDomainSocketPath: "/peer")).wait()
        }

        func request(_ head: HTTPRequestHead) throws {
            try channel.writeInbound(HTTPServerRequestPart.head(head))
            try channel.writeInbound(HTTPServerRequestPart.end(nil))
        }

        /// Sends a response and returns its headers.
        func respond() throws -> HTTPHeaders {
            try channel.writeOutbound(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)))
            try channel.writeOutbound(HTTPServerResponsePart.end(nil))
            guard case .head(let head)? = try channel.readOutbound(as: HTTPServerResponsePart.self) else { return [:] }
            _ = try channel.readOutbound(as: HTTPServerResponsePart.self)
            return head.headers
        }
    }
}
