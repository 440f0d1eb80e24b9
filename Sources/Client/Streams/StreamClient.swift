package import Model
import NIOCore
import NIOHTTP1
package import SystemIO
import Transport

/// Streams to endpoints and devices.
package struct StreamClient: Sendable {
    /// Time for the broker to dial the target of a stream. It tries several routes, each for 5 s.
    private static let dialTimeout = Duration.seconds(30)

    let client: PatchbayClient

    /// Checks whether the broker allows a stream to a target now. The broker does not dial.
    ///
    /// - Throws: `ClientError.refused` with the problem that `open` has, and the other cases of `ClientError`.
    package func check(to target: TunnelTarget) async throws {
        // Without the header Upgrade, the response is a refusal in every case.
        do {
            try await client.perform(OutgoingRequest(method: .GET, path: ["streams"], query: target.query))
        } catch ClientError.refused(let problem) where problem.code == .upgradeRequired {
            return
        }
    }

    /// Opens a stream through the broker to an endpoint or to a port of a device.
    ///
    /// Each stream is a connection of its own. The descriptor is a socket of this process; a reset of either side resets
    /// the other.
    /// - Throws: `ClientError`, `CancellationError`, `SocketError`.
    package func open(to target: TunnelTarget) async throws -> Connection {
        let connection = client.connection(idleTimeout: max(client.timeout, Self.dialTimeout))
        let request = OutgoingRequest(method: .GET, path: ["streams"], query: target.query)
        let (inner, outer) = try loopbackSocketPair()
        let descriptor = Descriptor(owning: outer)
        let upgrade = StreamUpgrade(request, over: connection, to: Descriptor(owning: inner))
        let (channel, result) = try await connection.connect(for: request) { channel in
            (channel, try upgrade.addHandlers(to: channel))
        }
        let timeoutError = connection.timeoutError(of: request)
        let timeout = channel.eventLoop.scheduleTask(in: TimeAmount(connection.idleTimeout)) {
            channel.pipeline.fireErrorCaught(timeoutError)
            channel.close(promise: nil)
        }
        defer { timeout.cancel() }
        do {
            let bridge = try await withTaskCancellationHandler {
                try await result.get().bridge()
            } onCancel: {
                channel.close(promise: nil)
            }
            bridge.start()
            upgrade.releaseInput(of: channel)
        } catch {
            channel.close(promise: nil)
            try Task.checkCancellation()
            throw await connection.reasonOfSSH(connection.translated(error, request))
        }
        return Connection(descriptor: descriptor, halfClose: .propagates)
    }
}

extension TunnelTarget {
    fileprivate var query: [(name: String, value: String?)] {
        switch self {
        case .endpoint(let id): [("endpoint", id.text)]
        case .device(let route):
            switch route.socket {
            case .port(let port): [("device", route.udid.text), ("port", "\(port)")]
            case .abstract(let name): [("device", route.udid.text), ("abstractSocket", name.text)]
            }
        }
    }
}

extension DialError {
    /// A stream that could not be opened.
    package init(_ error: ClientError) {
        let text = error.hint.map { "\(error.description); \($0)" } ?? error.description
        guard case .refused(let problem) = error else {
            self.init(.failed, text)
            return
        }
        // The text of a failed dial has a hint.
        if let reason = problem.reason {
            self.init(reason, problem.detail)
            return
        }
        switch problem.code {
        case .notFound: self.init(.noRoute, text)
        case .unauthorized, .forbidden: self.init(.forbidden, text)
        case .leased: self.init(.leased, text)
        case .limit, .slowDown: self.init(.limit, text)
        default: self.init(.failed, text)
        }
    }
}
