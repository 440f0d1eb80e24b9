import FoundationEssentials
import Model
import Samples
import Synchronization
import TestSupport
import Testing

@testable import AccessControl

/// Leases of a phone that is also reached without its cable.
@Suite struct LinkedLeaseTests {
    private static let udid = UDID("00008101-000123456789ABCD")

    private let links = Links()
    private let clock = ManualClock()
    private let service: LeaseService
    private let wireless = Fixture.endpoint("com.example.shop", at: "wifi")
    private let cabled = Fixture.endpoint("com.example.shop", at: "cable", udid: udid)
    private let anna = Fixture.grantee("anna")
    private let ben = Fixture.grantee("ben")

    init() { service = LeaseService(phones: { [links] in links.phones.withLock { $0 } }, clock: clock) }

    /// The links that the registry reports.
    private final class Links: Sendable { let phones = Mutex<[EndpointID: UDID]>([:]) }

    private func link(_ phone: UDID?) { links.phones.withLock { $0[wireless.id] = phone } }

    private func mayChange(_ endpoint: Endpoint, _ principal: Principal) -> Bool {
        guard let call = try? service.beginCall(of: endpoint, by: principal.leaseHolder) else { return false }
        service.endCall(call)
        return true
    }

    private func mayConnect(_ target: LeaseTarget, _ principal: Principal) -> Bool {
        service.connectionConflict(on: target, holderKey: principal.leaseHolder.key) == nil
    }

    /// Expects that Anna has the phone alone, over the cable and without it.
    private func expectSharedLease() throws {
        let udid = Self.udid
        for endpoint in [wireless, cabled] { #expect(mayChange(endpoint, anna) && !mayChange(endpoint, ben)) }
        for target in [.device(udid), .endpoint(wireless.id)] as [LeaseTarget] {
            #expect(mayConnect(target, anna) && !mayConnect(target, ben))
        }
        let shown = service.withLeases([wireless, cabled], for: ben)
        #expect(shown.map(\.lease?.holder.text) == ["grant anna", "grant anna"])
        #expect(service.leases(of: [wireless, cabled], for: anna).count == 1)
    }

    @Test(arguments: [true, false]) func `both entries of one phone share a lease, taken at either`(isCabled: Bool)
        async throws
    {
        link(Self.udid)
        _ = try await service.take(isCabled ? cabled : wireless, for: anna, seconds: 60)

        try expectSharedLease()
        await #expect(throws: AccessError.self) {
            try await service.take(isCabled ? wireless : cabled, for: ben, seconds: 60)
        }
    }

    @Test(arguments: [true, false]) func `a link that is found during a lease is covered at once`(isCabled: Bool)
        async throws
    {
        _ = try await service.take(isCabled ? cabled : wireless, for: anna, seconds: 60)
        #expect(mayChange(isCabled ? wireless : cabled, ben))

        link(Self.udid)

        try expectSharedLease()
    }

    @Test func `the end of a link frees neither entry during a lease`() async throws {
        link(Self.udid)
        let lease = try await service.take(cabled, for: anna, seconds: 60)

        link(nil)

        #expect(!mayChange(wireless, ben) && !mayChange(cabled, ben))
        try service.end(lease.id, among: [], by: anna)
        #expect(mayChange(wireless, ben) && mayChange(cabled, ben))
    }

    @Test func `a new link takes no phone from its holder`() async throws {
        _ = try await service.take(wireless, for: ben, seconds: 60)
        let lease = try await service.take(cabled, for: anna, seconds: 60)

        link(Self.udid)

        #expect(mayChange(cabled, anna) && !mayChange(cabled, ben) && !mayChange(wireless, ben))
        #expect(service.withLeases([cabled], for: anna).map(\.lease?.isOwn) == [true])
        // The other lease then gets the phone.
        try service.end(lease.id, among: [], by: anna)
        #expect(mayChange(cabled, ben) && !mayChange(cabled, anna))
    }

    @Test func `a lease covers one phone, whatever its endpoint claims later`() async throws {
        let other = UDID("00008101-FFFFFFFFFFFFFFFF")
        let victim = Fixture.endpoint("com.example.bank", at: "desk", udid: other)
        link(Self.udid)
        _ = try await service.take(wireless, for: ben, seconds: 60)

        link(other)

        #expect(mayChange(victim, anna))
        #expect(!mayChange(cabled, anna))
    }

    @Test func `clients wait in one queue for both entries`() async throws {
        link(Self.udid)
        let first = try await service.take(cabled, for: anna, seconds: 60)
        async let second = service.take(wireless, for: ben, seconds: 60, wait: .seconds(50))
        await clock.waitForSleepers(1)

        try service.end(first.id, among: [], by: anna)

        #expect(try await second.isOwn)
        #expect(!mayChange(cabled, anna))
    }

    @Test func `a running call at one entry delays the lease at the other, also if the link is new`() async throws {
        let call = try service.beginCall(of: wireless, by: ben.leaseHolder)
        link(Self.udid)

        let error = await #expect(throws: AccessError.self) { try await service.take(cabled, for: anna, seconds: 60) }
        service.endCall(call)

        #expect(error?.description.hasPrefix("a changing call of another client still runs on ") == true)
        #expect(try await service.take(cabled, for: anna, seconds: 60).isOwn)
    }

    @Test func `a client with certain endpoints learns no phone from a lease`() async throws {
        link(Self.udid)
        let lease = try await service.take(wireless, for: ben, seconds: 60)

        #expect(lease.device == nil)
        #expect(service.leases(of: [wireless], for: ben).map(\.device) == [nil])
        #expect(service.leases(of: [cabled], for: ben).map(\.device) == [Self.udid])
    }
}
