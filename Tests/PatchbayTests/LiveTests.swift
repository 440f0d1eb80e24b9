import Client
import FoundationEssentials
import Model
import Synchronization
import TestSupport
import Testing

@testable import patchbay

@Suite struct LiveTests {
    private struct Stop: Error {}

    @Test func `an unreachable broker fails immediately on the first connection`() async {
        let stream = RetryingStream(clock: RecordingClock(isImmediate: true)) { _ in Issue.record("unexpected message")
        }

        await #expect(throws: ClientError.brokerNotRunning(path: "/x")) {
            try await stream.run { _ in throw ClientError.brokerNotRunning(path: "/x") }
        }
    }

    @Test func `a restart of the broker is retried and reported once`() async {
        let clock = RecordingClock(isImmediate: true)
        let notes = Mutex<[String]>([])
        var run = 0

        await #expect(throws: Stop.self) {
            try await RetryingStream(clock: clock) { text in notes.withLock { $0.append(text) } }.run { answered in
                run += 1
                switch run {
                case 1: answered()
                case 2...7: throw ClientError.brokerNotRunning(path: "/x")
                case 8:
                    answered()
                    throw Stop()
                default: Issue.record("retried after a permanent error")
                }
            }
        }

        #expect(
            notes.withLock { $0 } == ["lost the connection to the broker; reconnecting", "reconnected to the broker"]
        )
        let pauses = clock.sleeps
        #expect(pauses.count == 7)
        #expect(pauses.allSatisfy { $0 <= .seconds(2) })
        #expect(pauses[6] > pauses[0] * 5)
    }

    @Test func `a stream with a limit of attempts ends with the last error`() async {
        let clock = RecordingClock(isImmediate: true)
        var run = 0

        await #expect(throws: ClientError.brokerNotRunning(path: "/x")) {
            try await RetryingStream(clock: clock, attemptLimit: 3) { _ in }.run { answered in
                run += 1
                guard run > 1 else { return answered() }
                throw ClientError.brokerNotRunning(path: "/x")
            }
        }

        #expect(run == 4)
    }

    @Test func `a rejection is not retried`() async {
        let problem = Problem(.conflict, "tcp:8080 is taken")
        var run = 0

        await #expect(throws: ClientError.refused(problem)) {
            try await RetryingStream(clock: RecordingClock(isImmediate: true)) { _ in }.run { answered in
                run += 1
                guard run == 1 else { throw ClientError.refused(problem) }
                answered()
            }
        }
    }

    @Test func `a filter by state includes the change that leaves the state`() {
        let filter = EndpointFilter(state: .online)
        let gone = SampleEndpoints.endpoint("com.example.shop", on: "x", state: .offline)

        #expect(filter.matches(gone, wasShown: true))
        #expect(!filter.matches(gone))
        #expect(!EndpointFilter(app: "other").matches(gone, wasShown: true))
    }

    @Test func `a change is one line with sign, state and route`() {
        let endpoint = SampleEndpoints.endpoint("com.example.shop", on: "Test iPhone", phone: SampleEndpoints.phone)

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
                == "-  shop-test-iphone  removed"
        )
    }

    @Test func `an endpoint without an app is listed by name`() {
        let table = EndpointTableView.table(
            of: [SampleEndpoints.endpoint("", on: "x", name: "tcp on port 80")],
            now: SampleEndpoints.date
        )

        #expect(table.text(width: nil, isColoured: false).contains("  tcp on port 80  online  "))
    }

    @Test func `a change line lists the differences, and there is no line without a difference`() {
        let before = SampleEndpoints.endpoint(
            "com.example.shop",
            on: "x",
            phone: SampleEndpoints.phone,
            txt: ["a=1", "b=2"]
        )
        var after = before
        func line() -> String? {
            let change = EndpointChange(revision: 2, kind: .changed, endpoint: after)
            return WatchPrinter.line(change, before: before, isColoured: false)
        }

        after.lastSeenAt = SampleEndpoints.date.addingTimeInterval(15)
        #expect(line() == nil)

        after.state = .suspect
        after.reason = "nothing listens there"
        #expect(line() == "~  shop-x  suspect  was online: nothing listens there")

        after = before
        after.routes = []
        after.version = SanitizedText("2")
        after.txt = TXTRecord(items: ["a=1", "b=3", "c"].map { Array($0.utf8) })
        #expect(line() == "~  shop-x  online  version 2, was none; no routes; TXT b, +c")
    }
}
