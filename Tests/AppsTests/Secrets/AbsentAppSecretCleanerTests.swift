import FoundationEssentials
import Model
import Samples
import Testing

@testable import Apps

@Suite struct AbsentAppSecretCleanerTests {
    private let now = Date(timeIntervalSince1970: 1_000_000)

    private func endpoint(seen seconds: Double?, sources: [Sighting.Source] = []) throws -> Endpoint {
        Endpoint.sample(
            state: .offline,
            sources: sources,
            firstSeenAt: now.addingTimeInterval(-200_000),
            lastSeenAt: seconds.map { now.addingTimeInterval(-$0) }
        )
    }

    @Test func `an app is absent after a day without a sighting`() throws {
        #expect(AbsentAppSecretCleaner.isGone(nil, at: now))
        #expect(AbsentAppSecretCleaner.isGone(try endpoint(seen: 86_400), at: now))
        #expect(!AbsentAppSecretCleaner.isGone(try endpoint(seen: 86_399), at: now))
        #expect(AbsentAppSecretCleaner.isGone(try endpoint(seen: nil), at: now))
        #expect(
            !AbsentAppSecretCleaner.isGone(try endpoint(seen: 200_000, sources: [.config]), at: now),
            "it is written down"
        )
        #expect(!AbsentAppSecretCleaner.isGone(try endpoint(seen: -500), at: now), "the clock went back")
    }
}
