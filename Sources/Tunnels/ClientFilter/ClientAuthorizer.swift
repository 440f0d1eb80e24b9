import Glibc
package import Logging
import Model
import Synchronization
package import SystemIO

/// Says who may come in through a tunnel's door, before anybody is dialled for them.
struct ClientAuthorizer: Sendable {
    enum Verdict: Sendable {
        /// With what is left to be watched in the relay.
        case open(RelayInspector?)
        /// The client is gone already.
        case left
        /// To be reset.
        case refused(DialError)
        /// To be told so.
        case browser(BrowserGuard.Refusal)
    }

    let spec: TunnelSpec
    /// Whose the tunnel is.
    let owner: UInt32
    let check: ClientOwnerCheck
    let screen: ClientInspector

    /// - Throws: `CancellationError`; `SocketError`.
    func verdict(on client: CInt, through listener: SocketAddress) async throws -> Verdict {
        // A unix socket has its mode; one on another address than loopback is open to more than this machine's users.
        if listener.isLoopback, !spec.allowsAnyUser {
            switch check.verdict(on: client, owner: owner) {
            case .passes: break
            case .left: return .left
            case .refused(let failure): return .refused(failure)
            }
        }
        // No browser connects to unix sockets.
        guard listener.port != nil, !spec.allowsBrowsers else { return .open(nil) }
        let guarding = BrowserGuard(address: SocketAddress.local(of: client))
        switch try await screen.look(at: client, with: guarding) {
        case .passes: return .open(nil)
        case .silent: return .open(RelayInspector(guarding, limits: screen.limits))
        case .refused(let refusal): return .browser(refusal)
        }
    }

    /// Who else can use an address that is not this machine's alone; nil on loopback and unix sockets.
    func warning(about listener: SocketAddress) -> String? {
        guard listener.port != nil, !listener.isLoopback else { return nil }
        let who = listener.isUnspecified ? "every address of this machine" : "that address"
        return "whoever reaches \(who) over the network can use this tunnel; 127.0.0.1 keeps it to its owner"
    }
}

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
