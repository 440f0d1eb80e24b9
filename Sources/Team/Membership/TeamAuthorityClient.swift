import Client
package import Model
import NIOCore
import Transport

/// Sends the request of a host that joins to the authority of the team.
package protocol TeamAuthorityClient: Sendable {
    /// Asks for a certificate. The invite is sent only after the authority has proved its key.
    ///
    /// - Throws: `Problem`.
    func admit(_ spec: TeamMemberSpec, at pairing: TeamPairingString) async throws -> TeamAdmission
}

/// The authority at its team listener, over TLS.
package struct RemoteTeamAuthority: TeamAuthorityClient {
    package func admit(_ spec: TeamMemberSpec, at pairing: TeamPairingString) async throws -> TeamAdmission {
        let client = PatchbayClient(
            address: .remote(host: pairing.host, port: pairing.port, pin: pairing.pin),
            timeout: .seconds(30),
            security: JoinSecurity(tls: try ClientTLS(identity: nil))
        )
        do { return try await client.team.admit(spec) } catch ClientError.refused(let problem) {
            throw problem
        } catch let error as ClientError {
            throw Problem(
                .unavailable,
                "the authority of the team at \(TeamAddress(host: pairing.host, port: pairing.port)) did not answer: "
                    + "\(error)",
                hint: "check the address and its broker, then join again"
            )
        }
    }
}

/// TLS of a host that joins: it has no certificate, and knows the key of the authority.
private struct JoinSecurity: ClientTransportSecurity {
    let tls: ClientTLS

    func secure(_ channel: any Channel, pin: KeyPin) throws { try tls.secure(channel, pin: pin) }

    func failure(of error: any Error) -> TransportSecurityFailure? { TransportSecurityFailure(ofTLS: error) }
}
