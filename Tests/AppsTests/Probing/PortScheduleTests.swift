import Model
import Samples
import Testing

@testable import Apps

@Suite struct PortScheduleTests {
    private let port: USBRoute
    private let start = ContinuousClock.now
    private var schedule = PortSchedule()

    init() throws { port = USBRoute(udid: "00008030-001A2B3C4D5E6F70", port: 9_876) }

    /// Returns true if the port is tried this many seconds after the start.
    private mutating func isTried(at seconds: Int, isUrgent: Bool = false, isFound: Bool = false) -> Bool {
        schedule.markTriedIfDue(port, isUrgent: isUrgent, isFound: isFound, at: start + .seconds(seconds))
    }

    @Test mutating func `a port is tried every second while a client is present`() {
        let tries = (0..<4).map { isTried(at: $0, isUrgent: true, isFound: true) }

        #expect(tries == [true, true, true, true])
    }

    @Test mutating func `without a client a port is tried every 3 s, or every 15 s if it has a server`() {
        #expect((0...6).filter { isTried(at: $0) } == [0, 3, 6])
        #expect((7...40).filter { isTried(at: $0, isFound: true) } == [21, 36])
    }

    @Test mutating func `a new client has every port tried within a second`() {
        _ = isTried(at: 0, isFound: true)

        #expect(!isTried(at: 1, isFound: true))
        #expect(isTried(at: 1, isUrgent: true, isFound: true))
    }

    @Test mutating func `the ports of a replugged device are tried at once`() {
        _ = isTried(at: 0)
        schedule.retain([])

        #expect(isTried(at: 0))
    }
}
