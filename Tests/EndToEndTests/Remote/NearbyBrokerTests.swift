import FoundationEssentials
import Model
import TestSupport
import Testing

/// Brokers that find each other with the real Avahi, each on a host of its own.
@Suite(.needs(.root, .namespaces, .avahi), .timeLimit(.minutes(2)), .scratchFolder) struct NearbyBrokerTests {
    private let scratch = ScratchFolder.current

    private struct Nearby: Decodable {
        struct Broker: Decodable {
            let id: String
            let name: String
            let host: String?
            let addresses: [String]
            let port: UInt16
            let pair: NearbyBroker.PairState
            let joined: String?
        }

        let brokers: [Broker]
    }

    @Test func `a broker is listed nearby while its remote listener is on, with the state of its pairing`() async throws
    {
        let (labHost, deskHost) = try await MDNSNetwork.pair("lab", "desk", in: scratch)
        let lab = try await RunningBroker(in: scratch, named: "lab", on: labHost)
        let desk = try await RunningBroker(in: scratch, on: deskHost)
        /// Runs `patchbay` on the desk.
        func ask(_ arguments: String...) async throws -> [String] {
            try await Program.run(
                Executable.built("patchbay"),
                arguments,
                in: scratch,
                environment: ["PATCHBAY_SOCKET": desk.socket, "HOME": scratch.path, "XDG_STATE_HOME": ""],
                namespace: deskHost.namespace
            )
        }
        func nearby() async throws -> [Nearby.Broker] {
            let text = try await ask("brokers", "--nearby", "--json").joined(separator: "\n")
            return try JSONDecoder().decode(Nearby.self, from: Data(text.utf8)).brokers
        }
        try await eventually("the desk browses the network") {
            try await desk.ask("status").contains { $0.hasPrefix("bonjour") && $0.contains(" ok") }
        }
        #expect(try await nearby().isEmpty)

        let on = try await lab.ask("remote", "on", "--json").joined(separator: "\n")
        let pin = try #require(try JSONCoding.decoder().decode(RemoteStatus.self, from: Data(on.utf8)).pin)
        let seen = try await eventually("the desk sees the lab") {
            try await nearby().first { $0.addresses.contains("10.99.0.1") }
        }
        #expect(seen.id == "\(pin)".prefix(16) && seen.pair == .closed && seen.joined == nil)
        #expect(seen.host == "lab.local" && seen.port == 7_283 && seen.name.hasPrefix("patchbay-"))
        #expect(try await desk.ask("list", "--quiet").isEmpty)

        let pairing = try #require(
            try await lab.ask("pair", "--remote", "--detach").first { $0.hasPrefix("PATCHBAY:1:") }
        )
        try await eventually("the invite is open") { try await nearby().first?.pair == .open }
        let file = try scratch.write(pairing + "\n", to: "pairing.txt")
        _ = try await Program.run(
            "sh",
            ["-c", "\(try Executable.built("patchbay")) join - --as lab < \(file)"],
            in: scratch,
            environment: ["HOME": scratch.path, "XDG_STATE_HOME": ""],
            namespace: deskHost.namespace
        )
        try await eventually("the invite is spent, and the broker is joined") {
            try await nearby().first.map { $0.pair == .closed && $0.joined == "lab" } ?? false
        }
        let table = try await ask("brokers", "--nearby").joined(separator: "\n")
        #expect(table.contains("10.99.0.1:7283") && table.contains("lab"), "\(table)")
        let advert = try await deskHost.run("avahi-browse", ["-rpt", "_patchbay._tcp"]).joined(separator: "\n")
        #expect(advert.contains("pair=closed") && !advert.contains("pbi_"), "\(advert)")

        _ = try await lab.ask("remote", "off")
        try await eventually("the lab is gone") { try await nearby().isEmpty }
    }
}
