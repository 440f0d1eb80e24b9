import Model
import TestSupport
import Testing

@testable import Discovery

/// A suite of tests of `ServiceTable`, with names and addresses of one network.
protocol ServiceTableSuite {
    var now: ContinuousClock.Instant { get }
}

extension ServiceTableSuite {
    var local: LocalInterfaces {
        LocalInterfaces(
            names: [2: "eth0"],
            networks: [
                .init(interface: 2, address: [10, 0, 0, 1], mask: [255, 255, 255, 0]),
                .init(
                    interface: 2,
                    address: [0xFE, 0x80] + [UInt8](repeating: 0, count: 13) + [1],
                    mask: [UInt8](repeating: 0xFF, count: 8) + [UInt8](repeating: 0, count: 8)
                ),
            ]
        )
    }

    func details(_ machine: String = "phone.local", port: UInt16 = 8080, _ txt: String...) -> ResolvedService {
        ResolvedService(machine: machine, port: port, txt: TXTRecord(items: txt.map { Array($0.utf8) }))
    }

    func machine(_ name: String = "phone.local") -> MachineKey { MachineKey(interface: 2, name: name) }

    /// A table that lists one service at 10.0.0.5.
    func listing(_ key: ServiceKey) throws -> ServiceTable {
        var table = ServiceTable()
        table.found(key)
        table.advance(now: now)
        table.resolved(key, details(), now: now)
        table.address(machine(), try #require(address(10, 0, 0, 5)), transport: 0, isPresent: true)
        _ = table.drainActions()
        #expect(table.drainEvents(seenFrom: local).count == 1)
        return table
    }
}

/// The services that are not listed, or only after a confirmation.
@Suite struct RefusedServiceTests: ServiceTableSuite {
    let now = ContinuousClock.now

    @Test func `a service with the mark of a broker is never listed, also if the mark comes later`() throws {
        let app = key("AppReveal-com.example.shop")
        var table = try listing(app)

        table.resolved(app, details("phone.local", port: 8080, "boot=b1", "Via=patchbay"), now: now)
        let events = table.drainEvents(seenFrom: local)
        guard case .lost? = events.first, events.count == 1 else {
            Issue.record("not withdrawn: \(events)")
            return
        }
        #expect(table.counts.refused == 1)

        table.resolved(app, details("phone.local", port: 8080, "via=proxy"), now: now)
        #expect(table.drainEvents(seenFrom: local).count == 1)
        #expect(table.counts.refused == 0)
    }

    @Test func `a loopback address from another interface needs the confirmation of this machine, for each port`()
        throws
    {
        let tool = key("Flutter Tools on rig", type: "_flutter_devices._tcp")
        var table = ServiceTable()
        func state(_ table: inout ServiceTable) -> (routes: [String], asked: [ServiceTable.Action]) {
            let events = table.drainEvents(seenFrom: local)
            let asked = table.drainActions().filter { if case .confirm = $0 { true } else { false } }
            guard case .seen(let sighting)? = events.last else { return ([], asked) }
            return (sighting.routes.map(\.description), asked)
        }
        table.found(tool)
        table.advance(now: now)
        table.resolved(tool, details(port: 8_181), now: now)
        table.address(machine(), try #require(address(127, 0, 0, 1)), transport: 0, isPresent: true)

        var seen = state(&table)
        #expect(seen.routes.isEmpty && seen.asked == [.confirm(LocalService(key: tool, port: 8_181))])
        table.confirm([LocalService(key: tool, port: 8_181)])
        seen = state(&table)
        #expect(seen.routes == ["127.0.0.1:8181"] && seen.asked.isEmpty)

        table.resolved(tool, details(port: 8_182), now: now)
        seen = state(&table)
        #expect(seen.routes.isEmpty && seen.asked == [.confirm(LocalService(key: tool, port: 8_182))])
    }

    @Test func `no other service and no other address is a reason to ask this machine`() throws {
        let services: [(String, [UInt8])] = [
            ("_debug._tcp", [127, 0, 0, 1]), ("_flutter_devices._tcp", [10, 0, 0, 1]),
        ]
        for (type, bytes) in services {
            let service = key("far", type: type)
            var table = ServiceTable()
            table.found(service)
            table.advance(now: now)
            table.resolved(service, details(), now: now)
            table.address(machine(), try #require(IPAddress(bytes: bytes)), transport: 0, isPresent: true)

            _ = table.drainEvents(seenFrom: local)

            #expect(!table.drainActions().contains { if case .confirm = $0 { true } else { false } }, "\(type)")
        }
    }
}
