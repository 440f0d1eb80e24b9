import Client
import Model
import NIOCore
import Synchronization
import SystemIO

/// The brokers of the other hosts of the team: their addresses, and connections to them.
struct HostBrokers: Sendable {
    let members: TeamMembers
    let watcher: TeamWatcher
    let client: HostClient
    var presence = HostPresence()
    var phones = LastPhoneHosts()

    /// Returns where the broker of a host is reached, and the identity that it must prove.
    ///
    /// - Throws: `HostError.absent` for a host that is no member, or whose broker does not run.
    private func address(of host: HostName) throws(HostError) -> MemberAddress {
        guard let member = members[host], let published = watcher.host(host) else { throw .absent(host) }
        return MemberAddress(host: host, key: member.key, addresses: published.addresses)
    }

    /// Opens a stream through the broker of another host.
    ///
    /// - Throws: `DialError`, `CancellationError`, `SocketError`.
    func openStream(to target: TunnelTarget, on host: HostName, for caller: TeamCaller) async throws -> Connection {
        guard let value = caller.headerValue else { throw Self.dialError(.callerTooLarge(host)) }
        do {
            let opened = OpenedStream()
            let isOpen = try await presence.whilePresent(host) {
                opened.set(
                    try await client.openStream(
                        to: target,
                        at: address(of: host),
                        headers: [(TeamCaller.header, value)]
                    )
                )
                return true
            }
            guard isOpen == true, let stream = opened.take() else {
                throw HostError.unreachable(host, reason: "it went offline before its response")
            }
            return stream
        } catch let error as HostError {
            throw Self.dialError(error)
        } catch ClientError.refused(let problem) {
            let failure = DialError(ClientError.refused(problem))
            throw DialError(failure.reason, "on the host \(host): \(SanitizedText("\(failure)", limit: 1_000))")
        }
    }

    static func dialError(_ error: HostError) -> DialError { DialError(.unreachable, "\(error)") }
}

extension HostBrokers: HostConnector {
    func send(_ request: OutgoingRequest, to host: HostName, within timeout: Duration) async throws -> any HostResponse
    {
        let response = try await presence.whilePresent(host) {
            try await client.send(request, to: try address(of: host), within: timeout)
        }
        guard let response else { throw HostError.wentOffline(host) }
        response.follow(presence)
        return response
    }
}

/// A stream that a child task has opened. The result of a task cannot be noncopyable.
private final class OpenedStream: Sendable {
    private let stream = Mutex<Connection?>(nil)

    func set(_ opened: consuming Connection) {
        var opened = Optional(opened)
        stream.withLock { $0 = opened.take() }
    }

    func take() -> Connection? { stream.withLock { $0.take() } }
}
