import Logging
import Model
import Testing

@testable import Discovery

@Suite struct AdvertisementStoreTests {
    private let spec = AdvertisementSpec(name: "Demo", type: .debug, port: 1)

    @Test func `what Bonjour cannot carry is refused before Avahi is asked`() {
        let board = AdvertisementStore()

        #expect(throws: DiscoveryError.self) { try board.add(AdvertisementSpec(name: "", type: .debug, port: 1)) }
        #expect(throws: DiscoveryError.self) { try board.add(AdvertisementSpec(name: "x", type: .debug, port: 0)) }
        #expect(board.advertisements.isEmpty)
    }

    @Test func `ids are never used again, and there is a limit`() throws {
        let board = AdvertisementStore()
        #expect(try board.add(spec) == "a1")
        try board.remove("a1")
        #expect(try board.add(spec) == "a2")
        for _ in 1..<AdvertisementStore.limit { _ = try board.add(spec) }

        #expect(throws: DiscoveryError.tooManyAdvertisements(limit: AdvertisementStore.limit)) { try board.add(spec) }
    }

    @Test func `an unknown id is an error that names it`() {
        let board = AdvertisementStore()

        #expect(throws: DiscoveryError.noSuchAdvertisement(id: "a9")) { try board.remove("a9") }
        #expect(throws: DiscoveryError.noSuchAdvertisement(id: "a9")) { try board.update("a9", txt: TXTRecord()) }
    }

    @Test func `without an Avahi thread an advertisement waits and says so at once`() async throws {
        let source = BonjourSource(options: DiscoveryOptions(), logger: Logger(label: "test"))

        let advertisement = try await source.advertise(spec)

        #expect(advertisement.state == .waiting)
        #expect(await source.advertisements() == [advertisement])
        #expect(await source.status().state == .off)
        try await source.withdraw(advertisement.id)
        #expect(await source.advertisements().isEmpty)
    }

    @Test func `a caller waits until the newest wish is fulfilled`() async throws {
        let board = AdvertisementStore()
        board.serve(true)
        let id = try board.add(spec)
        async let settled = board.settled(id, within: .seconds(30), clock: ContinuousClock())

        // A report about what was wished before is not an answer.
        board.report(id, .init(state: .published, finalName: SanitizedText("Demo"), isSettled: true))
        #expect(board.takeWishes().map(\.id) == [id])
        board.report(id, .init(state: .published, finalName: SanitizedText("Demo #2"), isSettled: true))

        #expect(await settled?.finalName.text == "Demo #2")
    }

    @Test func `a caller does not wait for ever for an Avahi that hangs`() async throws {
        let board = AdvertisementStore()
        board.serve(true)
        let id = try board.add(spec)

        let advertisement = await board.settled(id, within: .milliseconds(20), clock: ContinuousClock())

        #expect(advertisement?.state == .waiting)
    }

    @Test func `the end of the source lets every caller go`() async throws {
        let board = AdvertisementStore()
        board.serve(true)
        let id = try board.add(spec)
        async let settled = board.settled(id, within: .seconds(30), clock: ContinuousClock())

        board.serve(false)

        #expect(await settled?.state == .waiting)
    }
}
