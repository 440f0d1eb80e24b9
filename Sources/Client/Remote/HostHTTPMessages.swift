import Model
package import NIOCore
import NIOHTTP1
import Synchronization

/// A request to the broker of another host.
package struct HostHTTPRequest: Sendable {
    let method: String
    let target: String
    let headers: [(name: String, value: String)]
    let body: [UInt8]
    /// True if a second execution of the request changes nothing.
    let isIdempotent: Bool
    /// The time without a part of the response after which the request fails. The body of an event stream has no limit.
    let timeout: Duration

    /// - Parameters:
    ///   - method: The method.
    ///   - target: The path and the query, percent-encoded.
    ///   - headers: The headers without those of the connection.
    ///   - body: The body; empty without a body.
    ///   - isIdempotent: True if a second execution of the request changes nothing.
    ///   - timeout: The time without a part of the response after which the request fails.
    package init(
        method: String,
        target: String,
        headers: [(name: String, value: String)],
        body: [UInt8],
        isIdempotent: Bool,
        timeout: Duration
    ) {
        (self.method, self.target, self.headers, self.body) = (method, target, headers, body)
        (self.isIdempotent, self.timeout) = (isIdempotent, timeout)
    }

    /// The request's name in error messages.
    var name: String { "\(method) \(target)" }

    /// The error of a request without a part of the response for `timeout`.
    var timeoutError: ClientError { .timedOut(what: name, seconds: timeout / .seconds(1)) }

    func head(to host: HostName) -> HTTPRequestHead {
        var fields = HTTPHeaders([("Host", host.text)])
        fields.add(contentsOf: headers.map { ($0.name, $0.value) })
        if !body.isEmpty { fields.add(name: "Content-Length", value: "\(body.count)") }
        return HTTPRequestHead(version: .http1_1, method: HTTPMethod(rawValue: method), uri: target, headers: fields)
    }
}

/// The response of another host's broker. One task at a time reads it.
package final class HostHTTPResponse: Sendable {
    package let status: Int
    package let headers: [(name: String, value: String)]

    private let name: String
    /// The time without a part of the body after which the response fails; nil for an event stream.
    private let timeout: Duration?
    private let timeoutError: ClientError
    private let connection: HostConnection
    private let keep: @Sendable (HostConnection) -> Void
    private let isReusable: Bool
    private let state: Mutex<State>

    private struct State {
        /// The parts that have arrived and were not returned yet.
        var parts: [HTTPClientResponsePart]
        var isEnded = false
    }

    /// - Parameters:
    ///   - request: The request.
    ///   - connection: Its connection.
    ///   - parts: The first parts of the response.
    ///   - keep: Called after the end of the body, if the connection can carry another request.
    /// - Throws: `ResponseReader.End` unless the parts begin with a head.
    init(
        to request: HostHTTPRequest,
        over connection: HostConnection,
        _ parts: [HTTPClientResponsePart],
        keep: @escaping @Sendable (HostConnection) -> Void
    ) throws(ResponseReader.End) {
        var parts = parts
        guard case .head(let head)? = parts.first else { throw ResponseReader.End.broken(nil) }
        parts.removeFirst()
        status = Int(head.status.code)
        headers = head.headers.map { ($0.name, $0.value) }
        name = request.name
        let isEventStream = head.headers.first(name: "Content-Type")?.lowercased().hasPrefix("text/event-stream")
        timeout = isEventStream == true ? nil : request.timeout
        timeoutError = request.timeoutError
        isReusable = head.isKeepAlive
        self.connection = connection
        self.keep = keep
        state = Mutex(State(parts: parts))
    }

    /// Returns the next bytes of the body; nil at its end.
    ///
    /// - Throws: `ClientError.connectionLost`, `.timedOut`, `CancellationError`.
    package func next() async throws -> ByteBuffer? {
        while true {
            if let part = take() {
                switch part {
                case .head: continue
                case .body(let bytes): return bytes
                case .end:
                    finish()
                    return nil
                }
            }
            if state.withLock({ $0.isEnded }) { return nil }
            do {
                let parts = try await connection.next(within: timeout)
                state.withLock { $0.parts = parts }
            } catch let end as ResponseReader.End {
                close()
                try Task.checkCancellation()
                if case .timedOut = end { throw timeoutError }
                throw ClientError.connectionLost(what: name)
            }
        }
    }

    private func take() -> HTTPClientResponsePart? {
        state.withLock { $0.parts.isEmpty ? nil : $0.parts.removeFirst() }
    }

    private func finish() {
        let isFirst = state.withLock { state in
            defer { state.isEnded = true }
            return !state.isEnded
        }
        guard isFirst else { return }
        if isReusable { keep(connection) } else { connection.close() }
    }

    /// Ends the exchange. Closes the connection unless the body was read to its end.
    package func close() {
        let isFirst = state.withLock { state in
            defer { (state.isEnded, state.parts) = (true, state.isEnded ? state.parts : []) }
            return !state.isEnded
        }
        if isFirst { connection.close() }
    }
}
