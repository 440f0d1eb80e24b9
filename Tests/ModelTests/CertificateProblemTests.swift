import FoundationEssentials
import Model
import Testing

/// The owner's own certificate of the remote listener in `patchbay status` and `patchbay doctor`.
@Suite struct CertificateProblemTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func problem(endingIn days: Double?, problem: String? = nil) -> BrokerProblem? {
        let own = days.map { RemoteCertificates.Configured(names: ["lab"], expiresAt: now + $0 * 86_400) }
        return RemoteStatus(
            state: .listening,
            address: "0.0.0.0:7283",
            configured: true,
            pin: nil,
            reachable: [],
            connections: 0,
            refusedHandshakes: 0,
            problem: nil,
            certificates: RemoteCertificates(
                names: [],
                expiresAt: now,
                authority: "",
                configured: own,
                problem: problem
            )
        ).certificateProblem(now: now)
    }

    @Test func `a certificate that ends soon is a warning, and one that has ended a problem`() {
        #expect(problem(endingIn: 15) == nil && problem(endingIn: nil) == nil)
        #expect(problem(endingIn: 13)?.severity == .warning)
        let ended = problem(endingIn: -1, problem: "new.pem: the certificate has expired")
        #expect(ended?.severity == .problem)
        #expect(ended?.text.contains("ended at 2027-01-14T08:00:00Z, and clients refuse it") == true)
        #expect(problem(endingIn: 90, problem: "it could not be read")?.severity == .warning)
    }
}
