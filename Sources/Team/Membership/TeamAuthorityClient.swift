import Client
package import Model
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
        // The host has no certificate yet, and knows the key of the authority.
        let client = PatchbayClient(
            address: .remote(host: pairing.host, port: pairing.port, pin: pairing.pin),
            timeout: .seconds(30),
            security: try ClientTLS(identity: nil)
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
