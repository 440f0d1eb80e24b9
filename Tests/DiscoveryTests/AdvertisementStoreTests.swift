import Model
import Samples
import Testing

@testable import Discovery

@Suite struct AdvertisementStoreTests {
    private let spec = AdvertisementSpec(name: "Demo", type: .debug, port: 1)

    @Test func `an advertisement that Bonjour cannot carry is rejected before Avahi is called`() {
        let store = AdvertisementStore()

        #expect(throws: DiscoveryError.self) { try store.add(AdvertisementSpec(name: "", type: .debug, port: 1)) }
        #expect(throws: DiscoveryError.self) { try store.add(AdvertisementSpec(name: "x", type: .debug, port: 0)) }
        #expect(store.advertisements.isEmpty)
    }

    @Test func `IDs are never reused, and the number of advertisements is limited`() throws {
        let store = AdvertisementStore()
        #expect(try store.add(spec) == "a1")
        try store.remove("a1")
        #expect(try store.add(spec) == "a2")
        for _ in 1..<AdvertisementStore.limit { _ = try store.add(spec) }

        #expect(throws: DiscoveryError.tooManyAdvertisements(limit: AdvertisementStore.limit)) { try store.add(spec) }
    }

    @Test func `an unknown ID is an error that names the ID`() {
        let store = AdvertisementStore()

        #expect(throws: DiscoveryError.noSuchAdvertisement(id: "a9")) { try store.remove("a9") }
        #expect(throws: DiscoveryError.noSuchAdvertisement(id: "a9")) { try store.update("a9", txt: TXTRecord()) }
    }

    @Test func `without an Avahi thread an advertisement is reported as waiting at once`() async throws {
        let source = BonjourSource(options: DiscoveryOptions(), logger: .quiet)

        let advertisement = try await source.advertise(spec)

        #expect(advertisement.state == .waiting)
        #expect(await source.advertisements() == [advertisement])
        #expect(await source.status().state == .off)
        try await source.withdraw(advertisement.id)
        #expect(await source.advertisements().isEmpty)
    }

    @Test func `a caller waits until the newest specification is published`() async throws {
        let store = AdvertisementStore()
        store.setAvailable(true)
        let id = try store.add(spec)
        async let settled = store.waitUntilStable(id, within: .seconds(30), clock: ContinuousClock())

        // A report about an earlier specification does not end the wait.
        store.report(id, .init(state: .published, publishedName: SanitizedText("Demo"), isStable: true))
        #expect(store.takeDesired().map(\.id) == [id])
        store.report(id, .init(state: .published, publishedName: SanitizedText("Demo #2"), isStable: true))

        #expect(await settled?.publishedName.text == "Demo #2")
    }

    @Test func `a caller stops waiting for a hung Avahi at the time limit`() async throws {
        let store = AdvertisementStore()
        store.setAvailable(true)
        let id = try store.add(spec)

        let advertisement = await store.waitUntilStable(id, within: .milliseconds(20), clock: ContinuousClock())

        #expect(advertisement?.state == .waiting)
    }

    @Test func `the end of the source ends every wait`() async throws {
        let store = AdvertisementStore()
        store.setAvailable(true)
        let id = try store.add(spec)
        async let settled = store.waitUntilStable(id, within: .seconds(30), clock: ContinuousClock())

        store.setAvailable(false)

        #expect(await settled?.state == .waiting)
    }
}
