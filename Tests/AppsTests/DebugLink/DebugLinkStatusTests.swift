import FoundationEssentials
import Model
import SystemIO
import Testing

@testable import Apps

/// The line of the state debugger in `patchbay status`.
@Suite struct DebugLinkStatusTests {
    private let address = SocketAddress.ipv4(0x7F00_0001, port: 4_711)

    private func app(_ id: Int, place: Int?) -> DebugApp {
        DebugApp(id: id, peer: .ipv4(0x0A63_0001, port: 50_000), place: place, connectedAt: Date())
    }

    @Test func `the status has the address and the number of apps`() {
        let status = SourceStatus(
            debugLinkAt: address,
            apps: [app(1, place: 1), app(2, place: nil)],
            refusals: DebugRefusals(),
            forward: nil
        )

        #expect(status.name == "debuglink" && status.state == .ok && status.hint == nil)
        #expect(status.detail == "listens on 127.0.0.1:4711, 1 app connected, 1 without a message yet")
        #expect(SourceStatus.debugLinkOff.state == .off)
        #expect(SourceStatus.debugLinkOff.detail.hasPrefix("turned off"))
    }

    @Test func `the status has the other debugger, and the reason for the last refusal`() {
        var refusals = DebugRefusals()
        let isNew = [1, 2].map { refusals.add(.ipv4(0x0A63_0001, port: $0), because: "it sent HTTP") }
        #expect(isNew == [true, false])
        let status = SourceStatus(debugLinkAt: address, apps: [], refusals: refusals, forward: "Annas Mac")
        let reported = (1...20).count { refusals.add(.ipv4(0x0A63_0002, port: 1), because: "reason \($0)") }
        #expect(reported == 8)
        #expect(refusals.count == 22)

        #expect(
            status.detail == "listens on 127.0.0.1:4711, 0 apps connected, forwards 0 of 0 to \"Annas Mac\", "
                + "2 refused, the last one from 10.99.0.1:2: it sent HTTP"
        )
    }
}
