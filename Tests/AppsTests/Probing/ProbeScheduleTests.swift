import FoundationEssentials
import Model
import Samples
import TestSupport
import Testing

@testable import Apps

@Suite struct ProbeScheduleTests {
    private var random = SeededGenerator(seed: 1)

    private func endpoint(
        _ name: String,
        kind: EndpointKind = .mcp,
        state: Endpoint.State = .online,
        routes: [Route]? = nil
    ) -> Endpoint {
        Endpoint(
            id: EndpointID(app: SanitizedText(name), location: ""),
            kind: kind,
            app: SanitizedText(name),
            name: SanitizedText(name),
            state: state,
            approval: .approved,
            routes: (routes ?? [.network(NetworkRoute(address: "192.168.1.2", port: 80))]).map { EndpointRoute($0) },
            firstSeenAt: Date(),
            lastSeenAt: Date()
        )
    }

    /// The IDs of the endpoints that are due at a time.
    private mutating func take(
        from schedule: inout ProbeSchedule,
        at seconds: Double,
        watched: WatchedEndpoints = .all,
        inUse: Set<Route> = []
    ) -> [String] {
        schedule.due(at: .seconds(seconds), watched: watched, isInUse: inUse.contains, using: &random).map(\.id.text)
    }

    @Test mutating func `a new endpoint is probed at once and then at least every 15 seconds`() {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("app")])

        #expect(take(from: &schedule, at: 0) == ["app"])
        #expect(take(from: &schedule, at: 11).isEmpty)
        #expect(take(from: &schedule, at: 15) == ["app"])
    }

    @Test mutating func `an unwatched endpoint is probed every minute`() {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("app"), endpoint("tunnelled")])
        let watched = WatchedEndpoints.only(["tunnelled"])
        _ = take(from: &schedule, at: 0, watched: watched)

        #expect(take(from: &schedule, at: 15, watched: watched) == ["tunnelled"])
        #expect(take(from: &schedule, at: 44, watched: watched) == ["tunnelled"])
        #expect(Set(take(from: &schedule, at: 60, watched: watched)) == ["app", "tunnelled"])
    }

    @Test mutating func `an endpoint with an old probe is probed at once when a client starts to watch it`() {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("app")])
        _ = take(from: &schedule, at: 0, watched: .only([]))

        #expect(take(from: &schedule, at: 30, watched: .only([])).isEmpty)
        #expect(take(from: &schedule, at: 30.5) == ["app"])
    }

    @Test mutating func `the probes of many endpoints are spread over time`() {
        var schedule = ProbeSchedule()
        schedule.update((0..<500).map { endpoint("app-\($0)") })

        #expect(take(from: &schedule, at: 0).count == 500)
        let later = (2...240).map { take(from: &schedule, at: Double($0) / 2).count }

        // An even spread would give 19 per step.
        #expect(later.suffix(60).allSatisfy { (1...60).contains($0) }, "\(later)")
    }

    @Test mutating func `a suspect endpoint is probed again after 2 seconds`() {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("app")])
        _ = take(from: &schedule, at: 0, watched: .only([]))

        schedule.update([endpoint("app", state: .suspect)])
        #expect(take(from: &schedule, at: 1, watched: .only([])).isEmpty)
        #expect(take(from: &schedule, at: 2, watched: .only([])) == ["app"])
    }

    @Test mutating func `an endpoint with an open connection is not probed, and is due when the connection ends`() {
        var schedule = ProbeSchedule()
        let routes = [UInt16(80), 81].map { Route.network(NetworkRoute(address: "192.168.1.2", port: $0)) }
        schedule.update([endpoint("app", state: .suspect, routes: routes)])

        #expect(take(from: &schedule, at: 0, inUse: [routes[1]]).isEmpty)
        #expect(take(from: &schedule, at: 60, inUse: [routes[0]]).isEmpty)
        #expect(take(from: &schedule, at: 60) == ["app"])
    }

    @Test mutating func `an HTTP server with an open connection is probed, because it accepts many clients`() {
        var schedule = ProbeSchedule()
        let route = Route.network(NetworkRoute(address: "192.168.1.2", port: 80))
        schedule.update([endpoint("app", kind: .appreveal, state: .suspect, routes: [route])])

        #expect(take(from: &schedule, at: 0, inUse: [route]) == ["app"])
    }

    @Test mutating func `an endpoint that must not be dialled is not probed`() throws {
        var schedule = ProbeSchedule()
        let phone = USBRoute(udid: "00008030-001A2B3C4D5E6F70", port: 1)
        schedule.update([
            endpoint("gone", routes: []), endpoint("phone", routes: [.usb(phone)]), endpoint("no", state: .blocked),
        ])

        #expect(take(from: &schedule, at: 0).isEmpty)
    }

    @Test mutating func `a removed endpoint is removed from the schedule`() {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("app")])
        _ = take(from: &schedule, at: 0)
        schedule.update([])
        #expect(take(from: &schedule, at: 1).isEmpty)

        schedule.update([endpoint("app")])
        #expect(take(from: &schedule, at: 2) == ["app"])
    }

    @Test mutating func `without probed endpoints nothing is due`() {
        var schedule = ProbeSchedule()
        #expect(schedule.nextDue(after: .zero, watched: .all) == nil)

        schedule.update([endpoint("app"), endpoint("no", state: .blocked)])
        _ = take(from: &schedule, at: 0)
        schedule.update([endpoint("no", state: .blocked)])
        #expect(schedule.nextDue(after: .zero, watched: .all) == nil)
    }

    @Test mutating func `the next due time is that of the first endpoint that is due`() throws {
        var schedule = ProbeSchedule()
        schedule.update([endpoint("online"), endpoint("suspect", state: .suspect)])
        _ = take(from: &schedule, at: 10)
        #expect(schedule.nextDue(after: .seconds(10), watched: .all) == .seconds(12))

        schedule.update([endpoint("online")])
        for watched in [WatchedEndpoints.all, .only([])] {
            let time = try #require(schedule.nextDue(after: .seconds(10), watched: watched))
            #expect((time > .seconds(10) + ProbeSchedule.whileOnline) == (watched != .all))
            #expect(schedule.due(at: time - .milliseconds(1), watched: watched, using: &random).isEmpty)
            var later = schedule
            #expect(later.due(at: time, watched: watched, using: &random).map(\.id.text) == ["online"])
        }
    }

    @Test mutating func `an endpoint that is due and in use is checked again after 2 seconds`() {
        var schedule = ProbeSchedule()
        let route = Route.network(NetworkRoute(address: "192.168.1.2", port: 80))
        schedule.update([endpoint("app", routes: [route])])

        #expect(take(from: &schedule, at: 60, inUse: [route]).isEmpty)
        #expect(schedule.nextDue(after: .seconds(60), watched: .all) == .seconds(62))
    }
}
