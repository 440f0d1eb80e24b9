import Client
import FoundationEssentials
import Model
import Synchronization
import Testing

@testable import patchbay

@Suite struct LiveTests {
    /// A clock on which every sleep ends at once, and that remembers how long they were.
    private final class HastyClock: Clock, Sendable {
        let slept = Mutex<[Duration]>([])

        var now: ContinuousClock.Instant { ContinuousClock.now }
        var minimumResolution: Duration { .zero }

        func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
            slept.withLock { $0.append(ContinuousClock.now.duration(to: deadline)) }
            try Task.checkCancellation()
        }
    }

    private struct Enough: Error {}

    @Test func `a broker that was never there is said at once`() async {
        let reconnection = RetryingStream(clock: HastyClock()) { _ in Issue.record("there is nothing to say yet") }

        await #expect(throws: ClientError.brokerNotRunning(path: "/x")) {
            try await reconnection.keep { _ in throw ClientError.brokerNotRunning(path: "/x") }
        }
    }

    @Test func `a broker that restarts is waited for and said once`() async {
        let clock = HastyClock()
        let notes = Mutex<[String]>([])
        var run = 0

        await #expect(throws: Enough.self) {
            try await RetryingStream(clock: clock) { text in notes.withLock { $0.append(text) } }.keep { answered in
                run += 1
                switch run {
                case 1: answered()
                case 2...7: throw ClientError.brokerNotRunning(path: "/x")
                case 8:
                    answered()
                    throw Enough()
                default: Issue.record("it goes on after an error that waiting does not mend")
                }
            }
        }

        #expect(notes.withLock { $0 } == ["the broker went away; waiting for it", "the broker is back"])
        let pauses = clock.slept.withLock { $0 }
        #expect(pauses.count == 7)
        #expect(pauses.allSatisfy { $0 <= .seconds(2) })
        #expect(pauses[6] > pauses[0] * 5)
    }

    @Test func `a refusal is not waited for`() async {
        let problem = Problem(.conflict, "tcp:8080 is taken")
        var run = 0

        await #expect(throws: ClientError.refused(problem)) {
            try await RetryingStream(clock: HastyClock()) { _ in }.keep { answered in
                run += 1
                guard run == 1 else { throw ClientError.refused(problem) }
                answered()
            }
        }
    }

    @Test func `a filter by state shows how an endpoint leaves it`() {
        let selection = WatchPrinter.Selection(state: .online)
        let gone = Samples.endpoint("com.example.shop", on: "x", state: .offline)

        #expect(selection.fits(gone, wasShown: true))
        #expect(!selection.fits(gone, wasShown: false))
        #expect(!WatchPrinter.Selection(app: "other").fits(gone, wasShown: true))
    }

    @Test func `a change is one line with its sign, state and way`() {
        let endpoint = Samples.endpoint("com.example.shop", on: "Test iPhone", phone: Samples.phone)

        #expect(
            WatchPrinter.line(
                EndpointChange(revision: 1, kind: .added, endpoint: endpoint),
                before: nil,
                isColoured: false
            )
                == "+  shop-test-iphone  online  usb:00008101-000123456789ABCD:9876"
        )
        #expect(
            WatchPrinter.line(
                EndpointChange(revision: 2, kind: .removed, endpoint: endpoint),
                before: nil,
                isColoured: false
            )
                == "-  shop-test-iphone  forgotten"
        )
    }

    @Test func `an endpoint without an app is listed by its name`() {
        let table = EndpointTableView.table(
            of: [Samples.endpoint("", on: "x", name: "tcp on port 80")],
            now: Samples.date
        )

        #expect(table.text(width: nil, isColoured: false).contains("  tcp on port 80  online  "))
    }

    @Test func `a changed line says what changed, and there is none where nothing did`() {
        let before = Samples.endpoint("com.example.shop", on: "x", phone: Samples.phone, txt: ["a=1", "b=2"])
        var after = before
        func line() -> String? {
            let change = EndpointChange(revision: 2, kind: .changed, endpoint: after)
            return WatchPrinter.line(change, before: before, isColoured: false)
        }

        after.lastSeen = Samples.date.addingTimeInterval(15)
        #expect(line() == nil)

        after.state = .suspect
        after.reason = "nothing listens there"
        #expect(line() == "~  shop-x  suspect  was online: nothing listens there")

        after = before
        after.routes = []
        after.version = SanitizedText("2")
        after.txt = TXTRecord(items: ["a=1", "b=3", "c"].map { Array($0.utf8) })
        #expect(line() == "~  shop-x  online  version 2, was none; no route now; TXT b, +c")
    }
}
