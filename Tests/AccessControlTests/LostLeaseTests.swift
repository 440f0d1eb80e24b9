import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

/// Leases that end because their host lost the registry of the team, and their holders.
@Suite(.timeLimit(.minutes(1))) struct LostLeaseTests: PhoneLeaseSuite {
    private let registry = FakeClaimRegistry()
    let phone = UDID.sample
    private let one: FakeHost
    let shop: Endpoint
    var hosts: [FakeHost] { [one] }

    init() throws {
        shop = Fixture.endpoint("com.example.shop", udid: phone)
        one = try FakeHost("lab1", registry, ManualClock())
    }

    /// The ways in which the holder of a lost lease learns its end.
    enum Acknowledgement: CaseIterable {
        case newLease, refusedLease, release, end
    }

    @Test(arguments: Acknowledgement.allCases)
    func `after the loss of the registry, the calls of the holder are refused until it knows`(
        way: Acknowledgement
    ) async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
            one.service.endClaimed([.device(phone)], because: LeaseConflict.lostRegistry)

            for _ in 0..<3 {
                let error = #expect(throws: AccessError.self) {
                    try one.service.beginCall(of: shop, by: one.user(1).leaseHolder)
                }
                #expect(error?.description.hasPrefix("your lease \(lease.id) ended at 2") == true)
            }
            #expect(!mayConnect(one) && one.service.mayHaveLeases)
            #expect(mayCall(one, 2) && mayConnect(one, 2))
            // A renewal is no request for a new lease.
            await #expect(throws: AccessError.self) {
                try await one.service.take(shop, for: one.user(1), seconds: 60, renewing: lease.id)
            }
            #expect(!mayCall(one))

            switch way {
            case .newLease: _ = try await one.service.take(shop, for: one.user(1), seconds: 60)
            case .refusedLease:
                registry.set(.unreachable)
                _ = try? await one.service.take(shop, for: one.user(1), seconds: 60)
            case .release: one.service.release(shop, by: one.user(1))
            case .end:
                #expect(throws: AccessError.self) { try one.service.end(lease.id, among: [shop], by: one.user(1)) }
            }
            #expect(mayCall(one) && mayConnect(one))
        }
    }

    @Test func `another client and another phone are not affected by a lost lease`() async throws {
        try await running {
            let lease = try await one.service.take(shop, for: one.user(1), seconds: 60)
            one.service.endClaimed([.device(phone)], because: LeaseConflict.lostRegistry)
            let other = Fixture.endpoint("com.example.till")

            let call = try one.service.beginCall(of: other, by: one.user(1).leaseHolder)
            one.service.endCall(call)
            #expect(throws: AccessError.self) { try one.service.end(lease.id, among: [shop], by: one.user(2)) }

            #expect(!mayCall(one))
        }
    }
}
