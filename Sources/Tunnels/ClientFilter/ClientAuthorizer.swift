import Glibc
package import Logging
import Model
import Synchronization
package import SystemIO

/// Decides if a client may use a tunnel, before the target is dialed.
struct ClientAuthorizer: Sendable {
    enum Decision: Sendable {
        /// The client may connect. The inspector, if any, continues the check in the relay.
        case allowed(RelayInspector?)
        /// The client has already disconnected.
        case disconnected
        /// The client must be reset.
        case refused(DialError)
        /// The client gets an HTTP 403 response.
        case blockedBrowser(BrowserGuard.Refusal)
    }

    let spec: TunnelSpec
    /// The UID of the tunnel's owner.
    let owner: UInt32
    /// The holder of leases that created the tunnel; nil for the owner.
    let holder: String?
    let check: ClientOwnerCheck
    let policy: (any ConnectionPolicy)?
    let inspector: ClientInspector

    /// Checks the policy, the client's UID on loopback listeners, and the client's first bytes on TCP listeners.
    ///
    /// - Throws: `CancellationError`; `SocketError`.
    func authorize(_ client: CInt, on listener: SocketAddress) async throws -> Decision {
        // A listener on a non-loopback address serves clients of other machines too.
        if listener.isLoopback || listener.port == nil, !spec.allowAnyUser {
            let decision =
                listener.port == nil
                ? ClientOwnerCheck.evaluate(user: UnixPeer.user(of: client), owner: owner)
                : check.evaluate(client, owner: owner)
            switch decision {
            case .passes: break
            case .disconnected: return .disconnected
            case .refused(let failure): return .refused(failure)
            }
        }
        if let refusal = await policy?.refusal(of: spec.target, for: holder, owner: owner) { return .refused(refusal) }
        // Browsers cannot connect to unix sockets.
        guard listener.port != nil, !spec.allowBrowsers else { return .allowed(nil) }
        let browserGuard = BrowserGuard(address: SocketAddress.local(of: client))
        switch try await inspector.inspect(client, with: browserGuard) {
        case .passes: return .allowed(nil)
        case .silent: return .allowed(RelayInspector(browserGuard, limits: inspector.limits))
        case .refused(let refusal): return .blockedBrowser(refusal)
        }
    }

    /// A warning for an address that other machines can reach; nil for loopback addresses and unix sockets.
    func warning(about listener: SocketAddress) -> String? {
        guard listener.port != nil, !listener.isLoopback else { return nil }
        let address = listener.isUnspecified ? "an address of this machine" : "this address"
        return "every client that reaches \(address) over the network can use the tunnel; listen on 127.0.0.1 to "
            + "restrict it to its owner"
    }
}

/// Restricts a tunnel to clients of its owner, because every local user can connect to a loopback port.
///
/// A client with an unknown UID is rejected.
package final class ClientOwnerCheck: Sendable {
    /// Has the signature of `SocketOwnerLookup.owner(of:connectedTo:)`.
    package typealias Lookup = @Sendable (SocketAddress, SocketAddress) throws -> SocketOwnerLookup.Answer

    enum Decision: Equatable {
        case passes
        /// The client closed before the lookup and sent no data.
        case disconnected
        case refused(DialError)
    }

    private let lookup: Lookup
    private let logger: Logger
    /// Suppresses repeated log messages while the lookup fails.
    private let isLookupFailing = Atomic(false)

    package init(lookup: @escaping Lookup, logger: Logger) {
        self.lookup = lookup
        self.logger = logger
    }

    /// Looks clients up in the kernel (`SocketOwnerLookup`).
    package convenience init(logger: Logger) {
        let owners = SocketOwnerLookup()
        self.init(lookup: owners.owner(of:connectedTo:), logger: logger)
    }

    /// Looks up the UID of an accepted connection. The call takes microseconds and does not block.
    func evaluate(_ client: CInt, owner: UInt32) -> Decision {
        guard let peer = SocketAddress.peer(of: client), let local = SocketAddress.local(of: client) else {
            return .disconnected  // ENOTCONN: the client has reset the connection.
        }
        do {
            let answer = try lookup(peer, local)
            isLookupFailing.store(false, ordering: .relaxed)
            switch answer {
            case .user(owner): return .passes
            case .user(let user): return .refused(Self.foreignUser(user, owner: owner))
            case .closed:
                var byte: UInt8 = 0
                guard recv(client, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) > 0 else { return .disconnected }
                return .refused(Self.closedBeforeLookup)
            }
        } catch {
            if !isLookupFailing.exchange(true, ordering: .relaxed) {
                logger.error(
                    "tunnel clients are rejected: their users cannot be looked up",
                    metadata: ["reason": "\(error)"]
                )
            }
            return .refused(
                DialError(
                    .foreignUser,
                    "a client was rejected because its user could not be looked up: \(error); load the kernel module "
                        + "tcp_diag (`modprobe tcp_diag`), or open the tunnel with --allow-any-user"
                )
            )
        }
    }

    /// Checks the user of a client of a unix socket, whose file may allow other users to connect.
    static func evaluate(user: UInt32, owner: UInt32) -> Decision {
        // File permissions do not stop root, and the broker's own user owns the folder.
        [owner, 0, geteuid()].contains(user) ? .passes : .refused(foreignUser(user, owner: owner))
    }

    private static func foreignUser(_ user: UInt32, owner: UInt32) -> DialError {
        DialError(
            .foreignUser,
            "a client of user \(user) was rejected by a tunnel of user \(owner); let that user open a tunnel too, or "
                + "open this one with --allow-any-user"
        )
    }

    private static let closedBeforeLookup = DialError(
        .foreignUser,
        "a client sent data and closed before its user could be looked up, and was rejected; keep the connection open "
            + "until the response arrives, or open the tunnel with --allow-any-user"
    )
}
