import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// The table of naming schemes in `docs/host-names.md`.
@Suite struct DocumentedHostNameTests {
    /// One line of the table.
    private struct Line {
        let responder: String
        let names: [String]
        let hasSameAddress: Bool
        let ids: [String]
    }

    private static func lines() throws -> [Line] {
        let path = "\(#filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" })/docs/host-names.md"
        return try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap { line in
            let cells = line.split(separator: "|").map { $0.drop { $0 == " " } }
            guard line.hasPrefix("| "), cells.count == 5, cells[1].hasPrefix("`") else { return nil }
            func names(_ cell: Substring) -> [String] {
                cell.split(separator: "`").filter { !$0.allSatisfy { $0 == " " || $0 == "," } }.map(String.init)
            }
            return Line(
                responder: String(cells[0]),
                names: names(cells[1]) + names(cells[2]),
                hasSameAddress: cells[3].hasPrefix("same"),
                ids: names(cells[4])
            )
        }
    }

    @Test func `each naming scheme leads to the documented IDs`() throws {
        let lines = try Self.lines()
        #expect(lines.count >= 20)
        for line in lines {
            try #require(line.names.count == 2)
            var table = EndpointTable()
            for (index, name) in line.names.enumerated() {
                let now = Date(timeIntervalSince1970: Double(1_000 + index * 60))
                let sighting = Seen.network(
                    machine: MachineName.decoding(name),
                    port: UInt16(4_000 + index),
                    address: line.hasSameAddress ? "10.0.0.1" : "10.0.0.\(index + 1)"
                )
                _ = table.apply(.seen(sighting), at: now)
                _ = table.apply(.lost(sighting.id), at: now)
            }
            #expect(table.endpoints.map(\.id.text) == line.ids, "\(line.responder)")
        }
    }

    @Test func `an app that an earlier version stored keeps its ID under each name that it had`() throws {
        for line in try Self.lines() where earlierKey(line.names[0]) == earlierKey(line.names[1]) {
            for name in line.names {
                var table = EndpointTable(records: [record("shop-stored", machine: name)])
                let sighting = Seen.network(machine: MachineName.decoding(name), address: "10.0.0.7")
                table.see(sighting)
                #expect(table.endpoints.map(\.id.text) == ["shop-stored"], "\(name)")
                #expect(table.endpoints.map(\.state) == [.online])
            }
        }
    }

    @Test func `the ID that an earlier version reserved for a removed app returns to it`() throws {
        let key = earlierKey("iPhone-12.local")
        let json = #"{"keys":{"shop-iphone":[\#(try text(key))]},"order":["shop-iphone"]}"#
        let retired = try JSONDecoder().decode(RetiredIDs.self, from: Data(json.utf8))
        var table = EndpointTable(retired: retired)
        table.see(Seen.network(machine: "iPhone-12.local"))
        #expect(table.endpoints.map(\.id.text) == ["shop-iphone"])

        let copy = try JSONDecoder().decode(RetiredIDs.self, from: JSONEncoder().encode(table.retired))
        #expect(copy == table.retired)
    }

    @Test func `the ID that this version reserves for a machine without a number goes to no machine with one`() throws {
        let plain = Seen.network(machine: "iPhone.local")
        var table = EndpointTable(plain)
        table.lose(plain.id)
        _ = try table.removeUnseen(try #require(table.endpoints.first).id)
        let copy = try JSONDecoder().decode(RetiredIDs.self, from: JSONEncoder().encode(table.retired))
        table = EndpointTable(retired: copy)
        table.see(Seen.network(machine: "iPhone-12.local", address: "10.0.0.12"))
        #expect(table.endpoints.map(\.id.text) == ["shop-iphone-12"])
    }

    /// An endpoint as version 37703e8 stored it while it was offline.
    private func record(_ id: String, machine: String) -> PersistedEndpoint {
        let endpoint = Endpoint.sample(
            "\(id)",
            name: "AppReveal-com.example.shop",
            location: Endpoint.Location(machine: SanitizedText(machine, limit: 255)),
            state: .offline,
            approval: .pending,
            firstSeenAt: now,
            lastSeenAt: now
        )
        return PersistedEndpoint(endpoint: endpoint, source: .bonjour, keys: [earlierKey(machine)], machine: machine)
    }

    /// The identity key of version 37703e8: the escaped machine name without a number of one to four digits.
    private func earlierKey(_ machine: String) -> IdentityKey {
        var name = machine.lowercased().dropLast(6)
        if let hyphen = name.lastIndex(of: "-"), let number = Int(name[name.index(after: hyphen)...]), number < 10_000 {
            name = name[..<hyphen]
        }
        return IdentityKey(
            kind: .appreveal,
            app: SanitizedText("com.example.shop"),
            location: "host:\(name)",
            role: SanitizedText("")
        )
    }

    private func text(_ key: IdentityKey) throws -> String {
        String(decoding: try JSONEncoder().encode(key), as: UTF8.self)
    }
}
