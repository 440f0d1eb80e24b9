package import Apps
package import Client
package import Model
package import NIOCore

/// Sends requests to the brokers of other hosts of the team.
///
/// `HostBrokers` implements it.
package protocol HostConnector: Sendable {
    /// Sends a request, and waits for the head of the response.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - host: The other host.
    ///   - timeout: The time without a part of the response after which the request fails. The body of an event stream
    ///     has no limit.
    /// - Returns: The response.
    /// - Throws: `HostError`, `CancellationError`.
    func send(_ request: OutgoingRequest, to host: HostName, within timeout: Duration) async throws -> any HostResponse
}

/// The response of another host's broker.
package protocol HostResponse: AnyObject, Sendable {
    var status: Int { get }
    var headers: [(name: String, value: String)] { get }

    /// Returns the next bytes of the body; nil at its end. The other broker sends no more than is read.
    ///
    /// - Throws: `HostError.responseLost`, `.silent`, `.wentOffline`; `CancellationError`.
    func next() async throws -> ByteBuffer?

    /// Ends the exchange. Before the end of the body, the other broker sees a disconnect.
    func close()
}

/// A failure of a request to the broker of another host.
package enum HostError: Error, Hashable, Sendable {
    /// The broker got no request. The reason is a clause.
    case unreachable(HostName, reason: String)
    /// The team has no running broker of this host.
    case absent(HostName)
    /// The broker may have executed the request, and the connection ended before the response.
    case responseLost(HostName)
    /// The broker may have executed the request, and sent nothing for this number of seconds.
    case silent(HostName, seconds: Int)
    /// The entries of the host in the team registry ended during the request. The broker may have executed the request.
    case wentOffline(HostName)
    /// The grant of the client names too many endpoints or tools for a request to another host.
    case callerTooLarge(HostName)
}

extension HostError {
    /// The error of a call that the app may have executed; nil if the other broker has not received the call.
    package var unknownResult: AppError? {
        switch self {
        case .responseLost, .wentOffline: .responseLost
        case .silent(_, let seconds): .timedOut(seconds: seconds, cause: problem.hint)
        case .unreachable, .absent, .callerTooLarge: nil
        }
    }
}

extension HostError: CustomStringConvertible {
    package var description: String { "\(problem.detail); \(problem.hint ?? "")" }

    /// The error as an HTTP problem, with the next step.
    package var problem: Problem {
        switch self {
        case .unreachable(let host, let reason):
            Problem(
                .unavailable,
                "the broker of the host \(host) is unreachable: \(reason)",
                hint: "check the network between both hosts and `systemctl status patchbayd` on \(host)"
            )
        case .absent(let host):
            Problem(
                .unavailable,
                "the broker of the host \(host) is not running, or has left the team",
                hint: "start patchbayd on \(host); `patchbay team status` lists the hosts"
            )
        case .responseLost(let host):
            Problem(
                .unavailable,
                "the connection to the host \(host) ended before its response; it may have executed the request",
                hint: "check the result before you try again: patchbay leases, or patchbay show"
            )
        case .silent(let host, let seconds):
            Problem(
                .unavailable,
                "the host \(host) has not answered for \(seconds) s; it may have executed the request",
                hint: "see `systemctl status patchbayd` on \(host), and check the result before you try again"
            )
        case .wentOffline(let host):
            Problem(
                .unavailable,
                "the host \(host) went offline before its response; it may have executed the request",
                hint: "see `systemctl status patchbayd` on \(host), and check the result before you try again"
            )
        case .callerTooLarge(let host):
            Problem(
                .tooLarge,
                "your grant names too many endpoints or tools for a request to the host \(host)",
                hint: "ask an owner for a grant with fewer of them, or with --team-host \(host)"
            )
        }
    }
}
