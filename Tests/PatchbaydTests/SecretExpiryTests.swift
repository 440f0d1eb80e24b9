import FoundationEssentials
import Model
import Testing

@testable import patchbayd

@Suite struct SecretExpiryTests {
    private let now = Date(timeIntervalSince1970: 1_000_000)

    private func endpoint(seen seconds: Double?, sources: [Sighting.Source] = []) throws -> Endpoint {
        Endpoint(
            id: try #require(EndpointID("shop")),
            kind: .appreveal,
            app: Untrusted("com.example.shop"),
            name: Untrusted("Shop"),
            state: .offline,
            approval: .approved,
            sources: sources,
            since: now.addingTimeInterval(-200_000),
            lastSeen: seconds.map { now.addingTimeInterval(-$0) }
        )
    }

    @Test func `an app is gone when nobody has seen it for a day`() throws {
        #expect(SecretExpiry.isGone(nil, at: now))
        #expect(SecretExpiry.isGone(try endpoint(seen: 86_400), at: now))
        #expect(!SecretExpiry.isGone(try endpoint(seen: 86_399), at: now))
        #expect(SecretExpiry.isGone(try endpoint(seen: nil), at: now))
        #expect(!SecretExpiry.isGone(try endpoint(seen: 200_000, sources: [.config]), at: now), "it is written down")
        #expect(!SecretExpiry.isGone(try endpoint(seen: -500), at: now), "the clock went back")
    }
}
