import Glibc
import Model
import NIOCore
import NIOPosix
import SystemIO
import Transport

/// Connections to the remote listener of a broker on another machine.
extension HTTPConnection {
    /// Maps an error of connect(2), of the name lookup and of TLS to `ClientError`. Returns nil for any other error.
    package func failure(ofRemote error: any Error, _ request: OutgoingRequest) -> ClientError? {
        guard case .remote = address else { return nil }
        let broker = address.description
        if let failure = security?.failure(of: error) { return clientError(of: failure, request) }
        // NIO reports the end of the time without the errors of the addresses.
        if case ChannelError.connectTimeout = error {
            return .unreachable(address: broker, reason: Self.reason(error))
        }
        guard let error = error as? NIOConnectionError else { return nil }
        let causes = error.connectionErrors.map(\.error)
        // NIO reports an error of `ClientTransportSecurity.secure` as one of the address.
        if let failure = causes.lazy.compactMap({ security?.failure(of: $0) }).first {
            return clientError(of: failure, request)
        }
        if causes.contains(where: { ($0 as? IOError)?.errnoCode == ECONNREFUSED }) {
            return .noListener(address: broker)
        }
        return .unreachable(address: broker, reason: causes.last.map(Self.reason) ?? "the name is unknown")
    }

    private func clientError(of failure: ClientFailure, _ request: OutgoingRequest) -> ClientError {
        let broker = address.description
        return switch failure {
        case .otherKey: .otherKey(address: broker)
        case .keyRefused: .keyRefused(address: broker)
        case .notTrusted: .notTrusted(address: broker)
        case .closed: .connectionLost(what: request.name)
        case .failed(let reason): .tlsFailed(address: broker, reason: reason)
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case let error as IOError: SocketError.message(forConnect: error.errnoCode)
        case ChannelError.connectTimeout(let limit): "no answer for \(limit.nanoseconds / 1_000_000_000) s"
        default: "\(error)"
        }
    }
}
