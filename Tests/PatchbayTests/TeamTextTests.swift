import ArgumentParser
import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

/// The output of `list`, `show`, `devices`, `watch` and `status` in a team.
@Suite struct TeamTextTests {
    private let now = SampleEndpoints.date
    private let shop = SampleEndpoints.endpoint("com.example.shop", on: "iphone", phone: SampleEndpoints.phone)

    private func host(_ name: String, minutesStale: Double? = nil) throws -> HostStatus {
        let name = try #require(HostName(name))
        return HostStatus(name: name, staleSince: minutesStale.map { now.addingTimeInterval(-60 * $0) })
    }

    /// The endpoint as lab1 lists it, on its own host or on another one.
    private func listed(on host: HostStatus) throws -> Endpoint {
        guard host.name.text != "lab1" else { return shop.listed(on: host.name) }
        var remote = shop.on(host.name)
        remote.host = host
        return remote
    }

    private func table(_ endpoints: [Endpoint]) -> [String] {
        EndpointTableView.table(of: endpoints, now: now).text(width: nil, isColoured: false)
            .split(separator: "\n").map {
                $0.split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
            }
    }

    @Test func `a list has hosts only in a team`() throws {
        #expect(!table([shop])[0].contains("HOST"))

        let rows = table([try listed(on: host("lab1")), try listed(on: host("lab2"))])

        #expect(rows[0] == "ID KIND APP STATE HOST ROUTE SEEN")
        #expect(rows[1] == "shop-iphone appreveal com.example.shop online lab1 usb:\(SampleEndpoints.phone):9876 now")
        #expect(rows[2] == "shop-iphone.lab2 appreveal com.example.shop online lab2 lab2: usb now")
    }

    @Test func `the time of the last answer is left open if the other host does not share it`() throws {
        var remote = try listed(on: host("lab2"))
        remote.lastSeenAt = nil
        #expect(table([remote])[1].hasSuffix(" lab2: usb -"))
        #expect(ShowCommand.text(remote, now: now, isColoured: false).contains("  last seen   -\n"))
    }

    @Test func `an outdated host is marked in words`() throws {
        let stale = try host("lab2", minutesStale: 3)

        #expect(table([try listed(on: stale)])[1].contains(" lab2 (as of 3 min ago) lab2: usb "))
        #expect(
            TeamText.staleNote(on: [try host("lab1"), stale, stale], now: now)
                == "lab2: as of 3 min ago: the team's registry is unreachable."
        )
        #expect(TeamText.staleNote(on: [try host("lab1")], now: now) == nil)
        let text = ShowCommand.text(try listed(on: stale), now: now, isColoured: false)
        #expect(text.contains("  team host   lab2, as of 3 min ago: the team's registry is unreachable\n"))
    }

    @Test func `a route of another host begins with the name of the host`() throws {
        var remote = try listed(on: host("lab2"))
        #expect(TeamText.route(of: shop) == nil)
        #expect(TeamText.route(of: remote) == "lab2: usb")
        let text = ShowCommand.text(remote, now: now, isColoured: false)
        #expect(text.contains("  routes      lab2: usb:\(SampleEndpoints.phone):9876, approved"))

        remote.hostRoutes?.insert(EndpointRoute(.network(NetworkRoute(address: "192.168.1.20", port: 1))), at: 0)
        #expect(TeamText.route(of: remote) == "lab2: network +1")
        remote.hostRoutes = []
        #expect(TeamText.route(of: remote) == "-")
    }

    @Test func `an unapproved endpoint of another host is approved there`() throws {
        var remote = try listed(on: host("lab2"))
        remote.approval = .pending

        let text = ShowCommand.text(remote, now: now, isColoured: false)

        #expect(text.contains("pending: not connected until `patchbay approve shop-iphone` on the host `lab2`"))
    }

    @Test func `the phones of a team have the host of a connection, and the number of others`() throws {
        var phone = SampleEndpoints.device(SampleEndpoints.phone)
        let plain = DevicesCommand.table(of: [phone], now: now).text(width: nil, isColoured: false)
        #expect(!plain.contains("HOST"))

        phone.routes = [
            DeviceRoute(host: try host("lab1"), transport: .usb), DeviceRoute(host: try host("lab2"), transport: .usb),
            DeviceRoute(host: try host("lab2"), transport: .network),
        ]
        let table = DevicesCommand.table(of: [phone], now: now).text(width: nil, isColoured: false)
        #expect(table.contains("HOST") && table.contains("  lab1 +1  "))
    }

    @Test func `a watch has a line for each host that comes, goes, or becomes outdated or current`() throws {
        let (lab2, stale, lab3) = (try host("lab2"), try host("lab2", minutesStale: 1), try host("lab3"))
        func lines(_ old: [HostStatus], _ new: [HostStatus], isFirst: Bool = false) -> [String] {
            TeamText.changes(from: old, to: new, isFirst: isFirst, now: now)
        }

        #expect(lines([], [lab2], isFirst: true) == [])
        #expect(lines([lab2], [lab2, lab3]) == ["+ host lab3"])
        #expect(lines([lab2, lab3], [stale]).last == "- host lab3")
        #expect(lines([lab2], [stale]) == ["~ host lab2, as of 1 min ago: the team's registry is unreachable"])
        #expect(lines([stale], [lab2]) == ["~ host lab2, current again"])
        #expect(lines([], [stale], isFirst: true).count == 1 && lines([stale], [stale]) == [])
    }

    @Test func `the status has the hosts of the team`() throws {
        let own: HostName = "lab1"
        #expect(TeamText.summary(of: own, [], now: now) == "host lab1; no other host is online")
        #expect(
            TeamText.summary(of: own, [try host("lab2"), try host("lab3", minutesStale: 3)], now: now)
                == "host lab1; others: lab2, lab3 (as of 3 min ago: the team's registry is unreachable)"
        )
    }

    @Test func `an ID without a host is this host's endpoint, and a short name of several hosts lists them`() throws {
        let all = [try listed(on: host("lab1")), try listed(on: host("lab2")), try listed(on: host("lab3"))]
        func choose(_ text: String, among endpoints: [Endpoint]) throws -> String {
            try EndpointSelector(text: text, command: "patchbay show").choose(among: endpoints).id.text
        }

        #expect(try choose("shop-iphone", among: all) == "shop-iphone")
        #expect(try choose("shop-iphone.lab1", among: all) == "shop-iphone")
        #expect(try choose("shop-iphone.lab3", among: all) == "shop-iphone.lab3")
        #expect(try choose("shop-iphone", among: [all[1]]) == "shop-iphone.lab2")
        for text in ["shop", "shop-i", "com.example.shop", SampleEndpoints.phone.text] {
            let error = #expect(throws: CLIError.self) { try choose(text, among: all) }
            #expect(error?.candidates.count == 3)
        }
        #expect(throws: CLIError.self) { try choose("shop-iphone", among: Array(all.dropFirst())) }
    }

    @Test func `list and watch accept a host`() throws {
        let command = try ListCommand.parse(["--host", "LAB2"])
        #expect(command.host?.text == "lab2")
        #expect(throws: (any Error).self) { try ListCommand.parse(["--host", "lab 2"]) }
        let filter = EndpointFilter(host: command.host)
        #expect(filter.matches(try listed(on: host("lab2"))))
        #expect(!filter.matches(try listed(on: host("lab1"))))
    }
}
