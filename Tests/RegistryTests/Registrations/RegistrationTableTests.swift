import Model
import Registry
import Testing

/// The rules of registrations, without clock and registry.
@Suite struct RegistrationTableTests {
    private static let phone = RegistrationTable.Registrant(
        grant: "G1",
        name: SanitizedText("Anna's iPhone"),
        address: "10.0.0.7"
    )

    private static func spec(
        _ app: String = "com.example.shop",
        port: UInt16 = 9_000,
        kind: EndpointKind = .appreveal,
        launch: String? = "one",
        device: String? = nil
    ) -> RegistrationSpec {
        RegistrationSpec(
            app: SanitizedText(app, limit: .max),
            port: port,
            kind: kind,
            launchID: launch.map { SanitizedText($0) },
            device: device.map { SanitizedText($0) },
            secret: "never-shown"
        )
    }

    private static func events(of table: inout RegistrationTable) -> [SightingEvent] {
        var events: [SightingEvent] = []
        while let event = table.nextEvent() { events.append(event) }
        return events
    }

    private var table = RegistrationTable(kinds: [.appreveal, .mcp])

    @Test mutating func `an app is sighted at the address of its sender, on the device of its grant`() throws {
        let entry = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        let route = NetworkRoute(address: "10.0.0.7", port: 9_000, registration: "r1")
        #expect(entry.sighting.routes == [.network(route)])
        #expect(entry.sighting.machine == SanitizedText("Anna's iPhone") && entry.sighting.id.source == .registration)
        #expect(entry.sighting.app == SanitizedText("com.example.shop") && entry.sighting.appIsBundleID)
        #expect(Self.events(of: &table) == [.seen(entry.sighting)])
    }

    @Test mutating func `a relaunch of an app on another port replaces its registration under the same key`() throws {
        let first = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        let moved = RegistrationTable.Registrant(grant: "G1", name: SanitizedText("Anna's iPhone"), address: "10.0.0.8")
        let second = try table.register(Self.spec(port: 9_001, launch: "two"), from: moved, as: "r2", at: .zero)
        #expect(first.sighting.id == second.sighting.id)
        #expect(table["r1"] == nil && table["r2"] == second)
        #expect(Self.events(of: &table) == [.seen(first.sighting), .seen(second.sighting)])
    }

    @Test mutating func `the same app of another grant or device is another endpoint`() throws {
        let first = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        let other = RegistrationTable.Registrant(grant: "G2", name: SanitizedText("Anna's iPhone"), address: "10.0.0.7")
        let second = try table.register(Self.spec(), from: other, as: "r2", at: .zero)
        let third = try table.register(Self.spec(device: "iPad"), from: Self.phone, as: "r3", at: .zero)
        #expect(Set([first, second, third].map(\.sighting.id)).count == 3)
    }

    @Test mutating func `three missing heartbeats end a registration, and one heartbeat keeps it`() throws {
        let entry = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        _ = Self.events(of: &table)
        #expect(table.deadline == .seconds(90))
        try table.heartbeat("r1", from: Self.phone, at: .seconds(60))
        table.expire(at: .seconds(90))
        #expect(Self.events(of: &table).isEmpty && table.deadline == .seconds(150))
        table.expire(at: .seconds(150))
        #expect(Self.events(of: &table) == [.lost(entry.sighting.id)] && table.deadline == nil)
        #expect(throws: RegistrationError.notFound(id: "r1")) {
            try table.heartbeat("r1", from: Self.phone, at: .seconds(151))
        }
    }

    @Test mutating func `only its grant, from its address, keeps or ends a registration`() throws {
        _ = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        let moved = RegistrationTable.Registrant(grant: "G1", name: SanitizedText("x"), address: "10.0.0.8")
        let other = RegistrationTable.Registrant(grant: "G2", name: SanitizedText("x"), address: "10.0.0.7")
        #expect(throws: RegistrationError.moved(id: "r1")) { try table.heartbeat("r1", from: moved, at: .zero) }
        #expect(throws: RegistrationError.notFound(id: "r1")) { try table.heartbeat("r1", from: other, at: .zero) }
        #expect(throws: RegistrationError.notFound(id: "r1")) { try table.end("r1", of: "G2") }
        try table.end("r1", of: "G1")
        #expect(table["r1"] == nil)
    }

    @Test mutating func `the end of a grant ends its registrations and no others`() throws {
        let first = try table.register(Self.spec(), from: Self.phone, as: "r1", at: .zero)
        let other = RegistrationTable.Registrant(grant: "G2", name: SanitizedText("x"), address: "10.0.0.7")
        _ = try table.register(Self.spec(), from: other, as: "r2", at: .zero)
        _ = Self.events(of: &table)
        table.endAll(of: "G1")
        #expect(Self.events(of: &table) == [.lost(first.sighting.id)])
        #expect(table["r2"] != nil)
    }

    @Test mutating func `a grant registers at most 8 apps, and a relaunch needs no place`() throws {
        for number in 1...8 {
            _ = try table.register(Self.spec("app\(number)"), from: Self.phone, as: "r\(number)", at: .zero)
        }
        #expect(throws: RegistrationError.tooManyPerGrant(limit: 8)) {
            try table.register(Self.spec("app9"), from: Self.phone, as: "r9", at: .zero)
        }
        _ = try table.register(Self.spec("app8", port: 9_001), from: Self.phone, as: "r9", at: .zero)
    }

    @Test mutating func `all grants together register at most 256 apps`() throws {
        for number in 0..<256 {
            let grant = "G\(number / 8)"
            let registrant = RegistrationTable.Registrant(grant: grant, name: SanitizedText("x"), address: "10.0.0.7")
            _ = try table.register(Self.spec("app\(number)"), from: registrant, as: "r\(number)", at: .zero)
        }
        let other = RegistrationTable.Registrant(grant: "G", name: SanitizedText("x"), address: "10.0.0.7")
        #expect(throws: RegistrationError.tooMany(limit: 256)) {
            try table.register(Self.spec(), from: other, as: "r", at: .zero)
        }
    }

    @Test mutating func `a grant registers at most 30 times in one minute, and other grants are not affected`() throws {
        for number in 1...30 {
            _ = try table.register(Self.spec(port: UInt16(9_000 + number)), from: Self.phone, as: "r", at: .zero)
        }
        #expect(throws: RegistrationError.tooOften(limit: 30)) {
            try table.register(Self.spec(), from: Self.phone, as: "r", at: .seconds(59))
        }
        let other = RegistrationTable.Registrant(grant: "G2", name: SanitizedText("x"), address: "10.0.0.7")
        _ = try table.register(Self.spec(), from: other, as: "r2", at: .seconds(59))
        _ = try table.register(Self.spec(), from: Self.phone, as: "r", at: .seconds(60))
    }

    @Test mutating func `an unknown protocol is refused with the list`() throws {
        let error = try #require(throws: RegistrationError.self) {
            try table.register(Self.spec(kind: EndpointKind("mpc")), from: Self.phone, as: "r1", at: .zero)
        }
        #expect(error.description.contains("did you mean \"mcp\"? The kinds are appreveal, mcp"))
    }

    @Test(arguments: [
        spec(port: 80), spec(""), spec(String(repeating: "a", count: 156)), spec(launch: ""), spec(device: ""),
    ])
    mutating func `an invalid member is refused`(spec: RegistrationSpec) {
        let error = #expect(throws: RegistrationError.self) {
            try table.register(spec, from: Self.phone, as: "r1", at: .zero)
        }
        #expect(error?.hint.contains("openapi.json") == true && table["r1"] == nil)
    }

    @Test func `a specification shows no secret`() {
        let spec = Self.spec()
        #expect(!"\(spec)".contains("never-shown") && !String(reflecting: spec).contains("never-shown"))
        var text = ""
        dump(spec, to: &text)
        #expect(!text.contains("never-shown"))
    }
}
