import SystemIO
import Testing

@testable import Apps

@Suite struct ResourceSubscriptionsTests {
    private let subscriptions = ResourceSubscriptions()

    @Test func `a new resource opens the change stream again, and a known one does not`() {
        let first = subscriptions.nextChange()
        subscriptions.add("a://1", for: "one")
        #expect(first.isCompleted)

        let second = subscriptions.nextChange()
        subscriptions.add("a://1", for: "one")
        subscriptions.add("a://1", for: "two")
        #expect(!second.isCompleted)
    }

    @Test func `a resource stays while another holder is subscribed to it`() {
        subscriptions.add("a://1", for: "one")
        subscriptions.add("a://1", for: "two")

        subscriptions.remove("a://1", for: "one")
        #expect(subscriptions.uris == ["a://1"])
        subscriptions.remove("a://1", for: "two")
        #expect(subscriptions.uris.isEmpty)
    }

    @Test func `a holder displaces only its own oldest resources`() {
        subscriptions.add("a://other", for: "other")
        for number in 0...ResourceSubscriptions.holderLimit { subscriptions.add("a://\(number)", for: "busy") }

        #expect(subscriptions.uris.count == ResourceSubscriptions.holderLimit + 1)
        #expect(subscriptions.uris.contains("a://other"))
        #expect(!subscriptions.uris.contains("a://0"))
    }

    @Test func `at the total limit the holder with the most resources loses its oldest one`() {
        for number in 1...ResourceSubscriptions.holderLimit { subscriptions.add("a://\(number)", for: "busy") }
        for number in 1...10 { subscriptions.add("b://\(number)", for: "calm") }
        for number in 1...ResourceSubscriptions.holderLimit { subscriptions.add("c://\(number)", for: "late") }

        #expect(subscriptions.uris.count == ResourceSubscriptions.limit)
        #expect(subscriptions.uris.count { $0.hasPrefix("b://") } == 10)
    }
}
