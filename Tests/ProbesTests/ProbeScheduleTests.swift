import FoundationEssentials
import Model
import Testing

@testable import Probes

@Suite struct ProbeScheduleTests {
    private func endpoint(_ name: String, state: Endpoint.State = .online, routes: [Route]? = nil) -> Endpoint {
        Endpoint(
            id: EndpointID(app: Untrusted(name), place: ""),
            kind: .mcp,
            app: Untrusted(name),
            name: Untrusted(name),
            state: state,
            approval: .approved,
            routes: (routes ?? [.lan(LANRoute(address: "192.168.1.2", port: 80))]).map { EndpointRoute($0) },
            since: Date(),
            lastSeen: Date()
        )
    }

    @Test func `a new endpoint is probed at once and then every 15 seconds`() {
        var schedule = ProbeSchedule()
        let app = endpoint("app")

        #expect(schedule.take(from: [app], at: .zero).count == 1)
        #expect(schedule.take(from: [app], at: .seconds(14)).isEmpty)
        #expect(schedule.take(from: [app], at: .seconds(15)).count == 1)
    }

    @Test func `a suspect endpoint is probed again after 2 seconds, whatever was planned`() {
        var schedule = ProbeSchedule()
        _ = schedule.take(from: [endpoint("app")], at: .zero)

        #expect(schedule.take(from: [endpoint("app", state: .suspect)], at: .seconds(1)).isEmpty)
        #expect(schedule.take(from: [endpoint("app", state: .suspect)], at: .seconds(3)).count == 1)
    }

    @Test func `what cannot be dialled is not probed`() throws {
        var schedule = ProbeSchedule()
        let phone = USBRoute(udid: try #require(UDID("00008030-001A2B3C4D5E6F70")), port: 1)

        let due = schedule.take(
            from: [
                endpoint("gone", routes: []), endpoint("phone", routes: [.usb(phone)]), endpoint("no", state: .blocked),
            ],
            at: .zero
        )

        #expect(due.isEmpty)
    }

    @Test func `an endpoint that was forgotten leaves nothing behind`() {
        var schedule = ProbeSchedule()
        _ = schedule.take(from: [endpoint("app")], at: .zero)
        _ = schedule.take(from: [], at: .seconds(1))

        #expect(schedule.take(from: [endpoint("app")], at: .seconds(2)).count == 1)
    }
}
