import Glibc
package import Logging
import Model
import Synchronization
package import SystemIO

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
    ///
    /// - Parameters:
    ///   - client: The accepted socket.
    ///   - peer: The client's address.
    ///   - local: The address that the client connected to.
    ///   - owner: The UID that may connect.
    /// - Returns: The decision, with the reason for a refusal.
    func evaluate(_ client: CInt, from peer: SocketAddress, to local: SocketAddress, owner: UInt32) -> Decision {
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
