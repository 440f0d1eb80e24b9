import Model
import NIOCore
import NIOHTTP1
import Synchronization

/// The response of another host's broker, over a connection that may carry further requests. One task at a time reads it.
final class MemberResponse: HostResponse {
    let status: Int
    let headers: [(name: String, value: String)]

    /// The time without a part of the body after which the response fails; nil for an event stream.
    private let timeout: Duration?
    private let connection: HostConnection
    private let keep: @Sendable (HostConnection) -> Void
    private let isReusable: Bool
    private let state: Mutex<State>

    private struct State {
        /// The parts that have arrived and were not returned yet.
        var parts: [HTTPClientResponsePart]
        var isEnded = false
        /// True if the host went offline before the end.
        var isOffline = false
        /// Withdraws the action for the case that the host goes offline.
        var cancelPresence: (@Sendable () -> Void)?
    }

    /// - Parameters:
    ///   - connection: The connection of the request.
    ///   - parts: The first parts of the response.
    ///   - timeout: The time without a part of the response after which it fails.
    ///   - keep: Called after the end of the body, if the connection can carry another request.
    /// - Throws: `ResponseReader.End` unless the parts begin with a head.
    init(
        over connection: HostConnection,
        _ parts: [HTTPClientResponsePart],
        within timeout: Duration,
        keep: @escaping @Sendable (HostConnection) -> Void
    ) throws(ResponseReader.End) {
        guard case .head(let head)? = parts.first else { throw ResponseReader.End.broken(nil) }
        status = Int(head.status.code)
        headers = head.headers.map { ($0.name, $0.value) }
        let isEventStream = head.headers.first(name: "Content-Type")?.lowercased().hasPrefix("text/event-stream")
        self.timeout = isEventStream == true ? nil : timeout
        isReusable = head.isKeepAlive
        self.connection = connection
        self.keep = keep
        state = Mutex(State(parts: Array(parts.dropFirst())))
    }

    deinit { state.withLock { $0.cancelPresence }?() }

    private var host: HostName { connection.address.host }

    /// Ends the response when its host goes offline.
    func follow(_ presence: HostPresence) {
        let registration = presence.onEnd(of: host) { [weak self] in
            self?.state.withLock { $0.isOffline = !$0.isEnded }
            self?.close()
        }
        state.withLock { $0.cancelPresence = { presence.cancel(registration) } }
    }

    func next() async throws -> ByteBuffer? {
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
            if state.withLock({ $0.isEnded }) {
                // A response that was closed has no further bytes, and is not complete.
                try requireOnline()
                return nil
            }
            do {
                let parts = try await connection.next(within: timeout)
                state.withLock { $0.parts = parts }
            } catch let end as ResponseReader.End {
                close()
                try Task.checkCancellation()
                try requireOnline()
                throw end.error(of: host, after: timeout)
            }
        }
    }

    private func requireOnline() throws(HostError) {
        if state.withLock({ $0.isOffline }) { throw .wentOffline(host) }
    }

    private func take() -> HTTPClientResponsePart? {
        state.withLock { $0.parts.isEmpty ? nil : $0.parts.removeFirst() }
    }

    private func finish() {
        guard end() else { return }
        if isReusable { keep(connection) } else { connection.close() }
    }

    func close() { if end() { connection.close() } }

    /// Ends the exchange. Returns false if it has ended before.
    private func end() -> Bool {
        state.withLock { state in
            guard !state.isEnded else { return false }
            (state.isEnded, state.parts) = (true, [])
            return true
        }
    }
}

extension ResponseReader.End {
    /// Returns the error of a request that the broker of a host may have executed.
    func error(of host: HostName, after timeout: Duration?) -> HostError {
        guard case .timedOut = self, let timeout else { return .responseLost(host) }
        return .silent(host, seconds: Int((timeout / .seconds(1)).rounded(.up)))
    }
}
