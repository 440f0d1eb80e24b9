import Client
import Glibc
import Model

/// Redeems an invite, and repeats the request after a lost response.
struct InviteRedeemer {
    let client: PatchbayClient
    /// The name of the grant in the broker; nil for `user@host`.
    let name: String?
    /// The key by which the broker recognizes a repeated request.
    var key = CredentialStore.makeKey()

    /// Redemption attempts after a lost response. The same client gets the same grant for 60 s.
    private static let attempts = 5

    func redeem(_ invite: Secret) async throws -> IssuedGrant {
        let spec = RedemptionSpec(token: invite.reveal(), client: key, name: SanitizedText(name ?? Self.ownName))
        for _ in 1..<Self.attempts {
            do { return try await client.redeem(spec) } catch ClientError.connectionLost {
                // A restarting broker is polled: nothing announces that the socket listens again.
                try await ContinuousClock().sleep(for: .seconds(1))
            } catch ClientError.timedOut {
                // The timeout was the pause before the next attempt.
            }
        }
        return try await client.redeem(spec)
    }

    /// The default name of a grant: `user@host`.
    static var ownName: String {
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, host.count - 1)
        let machine = String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
        return "\(userName(of: geteuid()))@\(machine)"
    }

    /// Returns the name of a user; the numeric user ID if there is none, as in some containers.
    static func userName(of user: uid_t) -> String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        // A longer entry counts as missing.
        var buffer = [CChar](repeating: 0, count: 16 << 10)
        let code = getpwuid_r(user, &entry, &buffer, buffer.count, &found)
        guard code == 0, let name = found?.pointee.pw_name else { return "\(user)" }
        return String(cString: name)
    }
}
