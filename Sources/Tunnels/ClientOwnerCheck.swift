import Glibc
package import Logging
import Model
package import SystemIO
import Synchronization

/// Lets only the clients of a tunnel's owner in: a port on loopback can be connected to by every user of the machine.
///
/// Who cannot be known is not let in.
package final class ClientOwnerCheck: Sendable {
    /// As `SocketOwnerLookup.owner(of:connectedTo:)`.
    package typealias Question = @Sendable (SocketAddress, SocketAddress) throws -> SocketOwnerLookup.Answer

    enum Verdict: Equatable {
        case passes
        /// It closed before it could be asked about, and sent nothing.
        case left
        case refused(DialError)
    }

    private let question: Question
    private let logger: Logger
    /// So that a kernel that does not answer fills no journal.
    private let isSilent = Atomic(false)

    package init(asking question: @escaping Question, logger: Logger) {
        self.question = question
        self.logger = logger
    }

    /// Asks the kernel.
    package convenience init(logger: Logger) {
        let owners = SocketOwnerLookup()
        self.init(asking: owners.owner(of:connectedTo:), logger: logger)
    }

    /// Looks whose an accepted connection is. Takes microseconds and waits for nothing.
    func verdict(on client: CInt, owner: UInt32) -> Verdict {
        guard let peer = SocketAddress.peer(of: client), let local = SocketAddress.local(of: client) else {
            return .left  // Reset already: ENOTCONN.
        }
        do {
            let answer = try question(peer, local)
            isSilent.store(false, ordering: .relaxed)
            switch answer {
            case .user(owner): return .passes
            case .user(let user): return .refused(Self.foreign(user, owner))
            case .nobody:
                var byte: UInt8 = 0
                guard recv(client, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) > 0 else { return .left }
                return .refused(Self.gone)
            }
        } catch {
            if !isSilent.exchange(true, ordering: .relaxed) {
                logger.error(
                    "clients of tunnels cannot be told apart and are refused",
                    metadata: ["reason": "\(error)"]
                )
            }
            return .refused(
                DialError(
                    .foreignUser,
                    "a client was turned away, because whose it is could not be found out: \(error); load the kernel module "
                        + "tcp_diag (`modprobe tcp_diag`), or open the tunnel with --allow-any-user"
                )
            )
        }
    }

    private static func foreign(_ user: UInt32, _ owner: UInt32) -> DialError {
        DialError(
            .foreignUser,
            "a client of user \(user) was turned away from a tunnel of user \(owner); let that user open a tunnel too, or open "
                + "this one with --allow-any-user"
        )
    }

    private static let gone = DialError(
        .foreignUser,
        "a client sent something and closed before it could be seen whose it is, and was turned away; keep the connection "
            + "open until the answer, or open the tunnel with --allow-any-user"
    )
}
