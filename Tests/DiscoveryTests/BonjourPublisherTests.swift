import Model
import Samples
import Testing

@testable import Discovery

@Suite struct BonjourPublisherTests {
    private let store = AdvertisementStore()
    private let avahi = FakeAvahi()

    /// A publisher and the ID of its one advertisement, `Demo`.
    private func makePublisher() throws -> (BonjourPublisher, id: String) {
        store.setAvailable(true)
        let id = try store.add(AdvertisementSpec(name: "Demo", type: .debug, port: 1))
        return (BonjourPublisher(store: store, logger: .quiet), id)
    }

    @Test func `an advertisement is published once, after the initial sync`() throws {
        var (publisher, id) = try makePublisher()
        publisher.update(on: avahi, availability: .ready, discovered: nil)
        #expect(avahi.drainCalls().isEmpty)
        #expect(store.advertisements.map(\.state) == [.registering])

        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        #expect(avahi.drainCalls() == [.publish(name: "Demo")])
        #expect(publisher.services.map(\.type) == ["_debug._tcp"])

        publisher.handle(.established, of: id)
        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        #expect(avahi.drainCalls().isEmpty)
        #expect(publisher.publishedCount == 1 && store.advertisements.map(\.state) == [.published])
    }

    @Test func `a name that another host already uses is not published`() throws {
        var (publisher, _) = try makePublisher()
        var table = ServiceTable()
        table.found(key("Demo", type: "_debug._tcp"))

        publisher.update(on: avahi, availability: .ready, discovered: table)

        #expect(avahi.drainCalls() == [.publish(name: "Demo #2")])
    }

    @Test func `an error of a call fails the advertisement, and a failure of the connection does not`() throws {
        var (publisher, _) = try makePublisher()
        avahi.codes[.publish(name: "Demo")] = -1
        avahi.fault = .absent
        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        #expect(store.advertisements.map(\.state) == [.registering])

        avahi.fault = nil
        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        #expect(store.advertisements.map(\.state) == [.failed])
        #expect(store.advertisements.first?.reason?.hasPrefix("Avahi returned an error: ") == true)
    }

    @Test func `a removed advertisement is freed`() throws {
        var (publisher, id) = try makePublisher()
        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        _ = avahi.drainCalls()

        try store.remove(id)
        publisher.update(on: avahi, availability: .starting, discovered: nil)

        #expect(avahi.drainCalls() == [.free(.group(id))])
        #expect(publisher.services.isEmpty)
    }

    @Test func `a withdrawn advertisement waits for Avahi and is then published at once`() throws {
        var (publisher, id) = try makePublisher()
        publisher.update(on: avahi, availability: .ready, discovered: ServiceTable())
        publisher.handle(.established, of: id)
        _ = avahi.drainCalls()

        publisher.withdrawAll(on: avahi)
        #expect(avahi.drainCalls() == [.withdraw(id)])
        publisher.update(on: nil, availability: .absent, discovered: nil)
        #expect(store.advertisements.map(\.state) == [.waiting])
        #expect(store.advertisements.first?.reason != nil)

        // Its name was in use before, so no other host is searched for.
        publisher.update(on: avahi, availability: .ready, discovered: nil)
        #expect(avahi.drainCalls() == [.publish(name: "Demo")])
    }
}
