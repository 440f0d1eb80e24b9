import FoundationEssentials
import Model
import TestSupport
import Testing

@Suite(.needs(.namespaces, .avahi, .python), .scratchFolder) struct HostileTests {
    private let scratch = ScratchFolder.current

    /// Input that the program repeats: escapes, C1 escapes, right-to-left overrides, line breaks.
    private static let evil = ["\u{1B}[31mred\u{202E}txt.exe", "\u{9B}31mred\r\tc\u{7}\nd"]

    @Test func `control characters from the network or the command line never reach the terminal`() async throws {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        let watches = [try await broker.start("watch"), try await broker.start("list", "--watch")]
        let json = try await LiveList(of: broker)
        let list = try await Self.announceEverything(on: host, to: json)
        let held = try await broker.start("advertise", "x\u{202E}y", "_debug._tcp", "44", "k=\u{202E}")
        try await held.waitForLine("on port 44")

        var said = try await broker.say("list") + broker.say("status") + broker.say("doctor", "--color", "never")
        let table = try await broker.ask("list")
        #expect(table.count == 1 + list.count, "\(table)")
        for endpoint in list { said += try await broker.say("show", endpoint.id.text) }
        for text in Self.evil {
            said += try await broker.say(text) + broker.say("help", text) + broker.say("show", text)
            said += try await broker.say("show", "--\(text)") + broker.say("list", text)
            said += try await broker.say("list", "--state", text) + broker.say("rm", text)
            said += try await broker.say("forward", text) + broker.say("forward", "1:2", "--device", text)
            said += try await broker.say("forward", "--endpoint", text) + broker.say("tunnels", "rm", text)
            said += try await broker.say("add", text, "127.0.0.1:1") + broker.say("add", "name", text)
            said += try await broker.say("advertise", text, text, "1") + broker.say("stdio", text)
            said +=
                try await broker.say("status", "--socket", "\(scratch.path)/\(text)") + broker.say("iproxy", text)
            said += try await broker.say("forward", "unix:\(scratch.path)/\(text)", "--endpoint", list[0].id.text)
            said += try await broker.say("doctor", "--socket", "\(scratch.path)/\(text)")
            said += try await broker.say("advertisements", "rm", text)
        }
        // Deliberately ambiguous: the error lists the candidates.
        said += try await broker.say("show", "rawphone") + broker.say("show", "x")
        said += try await broker.say("advertisements") + broker.say("tunnels")
        said += (watches + [held, broker.daemon]).flatMap { $0.transcript.soFar.map(\.text) }

        for line in said { #expect(SanitizedText(line, limit: .max).text == line, "\(line.debugDescription)") }
        let documents =
            try await broker.say("list", "--json") + broker.say("status", "--json")
            + broker.say("doctor", "--json") + broker.say("advertisements", "--json")
            + broker.say("tunnels", "--json") + json.watch.output
        for line in documents {
            #expect(SanitizedText(line, limit: .max).text == line)
            #expect((try? JSONDecoder().decode([String: AnyValue].self, from: Data(line.utf8))) != nil, "\(line)")
        }
    }

    @Test func `a TXT record of 8.9 kB is truncated at the limit and marked as truncated`() async throws {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        let list = try await LiveList(of: broker)
        let big = "txt('bundleId=com.example.big', *['k%d=' % i + 'x' * 200 for i in range(43)])"
        try await RawAnnouncement.send(RawAnnouncement.service("'big'", port: 5, txt: big), on: host)
        try await RawAnnouncement.send(RawAnnouncement.service("'small'", port: 6), on: host)

        let listed = try await list.first("it is listed") { $0.name.text == "big" }.endpoint
        #expect(listed.app.text == "com.example.big")
        #expect(listed.txt.entries.map(\.key) == ["bundleId", "k0", "k1", "k2", "k3", "k4", "k5"])
        #expect(listed.txtTruncated == true)
        #expect(try await broker.ask("show", listed.id.text).contains { $0.contains("truncated: over ") })
        let small = try await list.first("the other is listed") { $0.name.text == "small" }.endpoint
        #expect(small.txtTruncated == nil)
        #expect(!(try await broker.ask("show", small.id.text)).contains { $0.contains("truncated") })
    }

    @Test func `malformed packets do not stop discovery, and port 0 is rejected and counted`() async throws {
        let host = try await AvahiHost(in: scratch)
        let broker = try await RunningBroker(in: scratch, host: host)
        let list = try await LiveList(of: broker)
        try await RawAnnouncement.sendMalformed(on: host)
        try await RawAnnouncement.send(RawAnnouncement.service("'nowhere'", port: 0), on: host)
        try await RawAnnouncement.sendMalformed(on: host)
        try await RawAnnouncement.send(RawAnnouncement.service("'good'", port: 7), on: host)

        _ = try await list.first("the good one is listed") { $0.name.text == "good" }
        try await broker.daemon.waitForLine("name=nowhere reason=\"it advertises port 0\"")
        try await eventually("the refusal is counted") {
            try await broker.ask("status").contains { $0.contains(" refused") }
        }
        #expect(try await broker.endpoints().map(\.name.text) == ["good"])
    }

    /// Announces one service of each hostile kind and returns the listed ones.
    private static func announceEverything(on host: AvahiHost, to list: LiveList) async throws -> [Endpoint] {
        let names = [
            #"'x\x1b[31m\ny'"#, #"b'c1\xc2\x9b2J'"#, #"'\u202egpj.exe'"#, "'a' * 63", "'\u{FC}' * 31 + 'x'",
            #"'tab\tbell\x07 \u200b\u2066z'"#,
            // Avahi does not pass on these two.
            #"b'\xff\xfe'"#, #"b'nul\x00'"#,
        ]
        let txt =
            #"txt('version=\x1b]0;title\x07', 'text=\u202eabc', b'raw=\xff\xfe', 'esc\x1b=1', 'line=a\nb', 'ok=1')"#
        for (number, name) in names.enumerated() {
            let record = RawAnnouncement.service(name, port: UInt16(100 + number), txt: txt)
            try await RawAnnouncement.send(record, on: host)
        }
        try await RawAnnouncement.send(RawAnnouncement.service("'last'", port: 99), on: host)
        var endpoints: [Endpoint] = []
        for port in [100, 101, 102, 103, 104, 105, 99] as [UInt16] {
            let listed = try await list.first("port \(port) is listed") { $0.routes.contains { $0.port == port } }
            endpoints.append(listed.endpoint)
        }
        return endpoints
    }
}

extension RunningBroker {
    /// Returns all output of a `patchbay` command on both streams, regardless of its exit status.
    fileprivate func say(_ arguments: String...) async throws -> [String] {
        let program = try await start(arguments)
        return try await program.lines().map(\.text)
    }
}

/// Any JSON value.
private struct AnyValue: Decodable {
    init(from decoder: any Decoder) throws {}
}
