/// A failed attempt of a call.
enum EtcdError: Error, Hashable {
    /// No connection was ready, so the server has not seen the request.
    case notConnected(reason: String)
    /// The connection or the stream ended, or nothing came in time. The server may have executed the request.
    case interrupted(reason: String)
    /// The server refused the certificate of this host, and has not seen the request. Another server can accept it.
    case refused(reason: String)
    /// The server answered with an error.
    case status(GRPCStatus)
    /// The server answered with this HTTP status instead of gRPC, as a proxy does without an etcd behind it.
    case httpStatus(String)
    /// The response is not one of gRPC.
    case invalidResponse(reason: String)
    /// The response has a message above `GRPCFrameDecoder.messageLimit`.
    case tooLarge(bytes: Int)

    /// True if the server has not executed the request.
    var isWithoutEffect: Bool {
        switch self {
        case .notConnected, .refused: true
        case .status(let status): status.isWithoutEffect
        // With 408 (timeout), 499 (client closed) and 5xx, a proxy may have passed the request on.
        case .httpStatus(let status): status.hasPrefix("4") && status != "408" && status != "499"
        case .interrupted, .invalidResponse, .tooLarge: false
        }
    }

    /// True if another attempt can succeed, at another server or later.
    var isTransient: Bool {
        switch self {
        case .notConnected, .interrupted, .refused, .httpStatus: true
        case .status(let status): status.code == .unavailable || status.isWithoutEffect
        case .invalidResponse, .tooLarge: false
        }
    }

    var asTeamStoreError: TeamStoreError {
        switch self {
        case .notConnected(let reason), .interrupted(let reason): .unreachable(reason: reason)
        case .refused(let reason): .denied(reason: reason)
        case .status(let status): status.asTeamStoreError
        case .httpStatus(let status): .unreachable(reason: "the server answered with HTTP status \(status)")
        case .invalidResponse(let reason): .failed(reason: reason)
        case .tooLarge(let bytes): .tooLarge(bytes: bytes)
        }
    }
}

extension GRPCStatus {
    /// The texts are those of etcd's `rpctypes/error.go`; several errors share a code.
    fileprivate enum Message {
        static let compacted = "etcdserver: mvcc: required revision has been compacted"
        static let leaseNotFound = "etcdserver: requested lease not found"
        static let noLeader = "etcdserver: no leader"
        static let oldAuthRevision = "etcdserver: revision of auth store is old"
        static let tooManyRequests = "etcdserver: too many requests"
    }

    /// True for the errors of checks that precede the execution.
    var isWithoutEffect: Bool {
        [Message.noLeader, Message.oldAuthRevision, Message.tooManyRequests].contains(message)
    }

    var asTeamStoreError: TeamStoreError {
        switch (code, message) {
        case (_, Message.compacted): .compacted
        case (_, Message.leaseNotFound): .sessionLeaseEnded
        case (_, Message.oldAuthRevision), (_, Message.tooManyRequests): .unreachable(reason: message)
        case (.unavailable, _), (.deadlineExceeded, _), (.cancelled, _): .unreachable(reason: message)
        case (.permissionDenied, _), (.unauthenticated, _): .denied(reason: message)
        default: .failed(reason: message.isEmpty ? "etcd answered with the gRPC status \(code.rawValue)" : message)
        }
    }
}
