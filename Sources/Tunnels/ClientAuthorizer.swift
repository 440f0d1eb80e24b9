import Glibc
import Model
import SystemIO

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
