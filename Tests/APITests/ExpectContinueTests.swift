import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import API

/// `Expect: 100-continue` (RFC 9110, section 10.1.1).
@Suite struct ExpectContinueTests {
    private let channel: EmbeddedChannel

    init() {
        let timeouts = RequestTimeoutHandler(maxHeadSize: 1_024, awaitsHandshake: false)
        let limiter = ConnectionLimiter()
        channel = EmbeddedChannel(
            handler: RequestProgressHandler(notifying: timeouts, tracker: ResponseTracker(), limiter: limiter)
        )
    }

    private func send(_ version: HTTPVersion = .http1_1, expecting expectation: String = "100-continue") throws {
        var head = HTTPRequestHead(version: version, method: .POST, uri: "/mcp")
        head.headers.add(name: "Connection", value: "keep-alive")
        head.headers.add(name: "Content-Length", value: "5")
        head.headers.add(name: "Expect", value: expectation)
        try channel.writeInbound(HTTPServerRequestPart.head(head))
    }

    private func sendBody() throws {
        try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "12345")))
        try channel.writeInbound(HTTPServerRequestPart.end(nil))
    }

    private func acceptBody() { channel.triggerUserOutboundEvent(RequestProgressHandler.ContinueEvent(), promise: nil) }

    /// Writes a response, and returns the heads of all responses.
    private func respond() throws -> [HTTPResponseHead] {
        try channel.writeOutbound(HTTPServerResponsePart.head(HTTPResponseHead(version: .http1_1, status: .ok)))
        try channel.writeOutbound(HTTPServerResponsePart.end(nil))
        var heads: [HTTPResponseHead] = []
        while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
            if case .head(let head) = part { heads.append(head) }
        }
        return heads
    }

    @Test(arguments: ["100-continue", "100-Continue"])
    func `a client that waits gets 100 once, when its body is read`(expectation: String) throws {
        try send(expecting: expectation)
        acceptBody()
        acceptBody()
        try sendBody()

        #expect(try respond().map(\.status.code) == [100, 200])
    }

    @Test func `a client that does not wait gets no 100`() throws {
        try send()
        try sendBody()
        acceptBody()
        #expect(try respond().map(\.status.code) == [200])

        try send(expecting: "something")
        acceptBody()
        try sendBody()
        #expect(try respond().map(\.status.code) == [200])
    }

    @Test func `a client of HTTP 1 0 gets no 100`() throws {
        try send(.http1_0)
        acceptBody()

        #expect(try respond().map(\.status.code) == [200])
    }

    @Test func `a connection ends with a final response in place of 100, and goes on otherwise`() throws {
        try send()
        acceptBody()
        try sendBody()
        #expect(try respond().map { $0.headers["Connection"] } == [[], []])

        try send()
        #expect(try respond().map { $0.headers["Connection"] } == [["close"]])
    }
}
