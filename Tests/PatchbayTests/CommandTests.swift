import ArgumentParser
import Client
import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct CommandTests {
    /// All commands with their subcommands.
    private static var all: [any ParsableCommand.Type] {
        func below(_ command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
            [command] + command.configuration.subcommands.flatMap(below)
        }
        return below(Patchbay.self)
    }

    @Test func `every help has an abstract, an example, and lines that fit 80 columns`() {
        for command in Self.all {
            let help = Patchbay.helpMessage(for: command, columns: 80)
            #expect(!command.configuration.abstract.isEmpty)
            #expect(command.configuration.discussion.contains("  patchbay "), "\(command)")
            let examples = command.configuration.discussion.split(separator: "\n").filter { $0.contains("  patchbay ") }
            for example in examples { #expect(help.contains(example), "\(example) is wrapped") }
        }
    }

    @Test func `a tunnel has a phone or an endpoint as target`() {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["forward", "22", "-d", "a", "-e", "b"]) }
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["forward"]) }
        #expect(throws: Never.self) { try Patchbay.parseAsRoot(["forward", "--endpoint", "b"]) }
        for words in [["--list"], ["--list", "--json"], ["--remove", "tcp:7777"]] {
            #expect(throws: Never.self) { try Patchbay.parseAsRoot(["forward"] + words) }
            #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["forward", "22"] + words) }
        }
        #expect(throws: Never.self) { try Patchbay.parseAsRoot(["forward", "1:2", "3:4", "-s", "::1", "--detach"]) }
    }

    @Test func `list is the default subcommand of tunnels, profiles and requests`() throws {
        #expect(try Patchbay.parseAsRoot(["tunnels", "--json"]) is TunnelListCommand)
        #expect(try Patchbay.parseAsRoot(["tunnels", "rm", "t1"]) is TunnelRemoveCommand)
        #expect(try Patchbay.parseAsRoot(["tunnels", "show", "t1"]) is TunnelShowCommand)
        #expect(try Patchbay.parseAsRoot(["profiles", "--json"]) is ProfileListCommand)
        #expect(try Patchbay.parseAsRoot(["requests", "--json"]) is RequestListCommand)
        #expect(try Patchbay.parseAsRoot(["requests", "unlock"]) is RequestUnlockCommand)
    }

    @Test func `login and connect are aliases of join and stdio`() throws {
        #expect(try Patchbay.parseAsRoot(["login", "-"]) is JoinCommand)
        #expect(try Patchbay.parseAsRoot(["connect", "9876"]) is StdioCommand)
        #expect(throws: Never.self) { try CommandSuggestion.check(["login", "-"], against: Patchbay.self) }
    }

    @Test(arguments: [
        "list", "devices", "tunnels", "advertisements", "invites", "grants", "profiles", "requests", "leases",
    ])
    func `every list has --quiet, which excludes --json`(command: String) throws {
        #expect(throws: Never.self) { try Patchbay.parseAsRoot([command, "-q"]) }
        #expect(throws: Never.self) { try Patchbay.parseAsRoot([command, "--quiet"]) }
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot([command, "-q", "--json"]) }
    }

    @Test(arguments: [["--for", "9h"], ["--for", "1d"], ["--wait", "2h"]]) func `a lease and its wait have limits`(
        words: [String]
    ) throws {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["lease", "shop"] + words) }
        #expect(throws: Never.self) { try Patchbay.parseAsRoot(["lease", "shop", "--for", "8h", "--wait", "1h"]) }
    }

    @Test(arguments: ["1x", "0s", "9h"]) func `the error of a lease's time names the format and the range`(
        time: String
    ) throws {
        let error = #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["lease", "shop", "--for", time]) }
        let message = Patchbay.message(for: try #require(error))
        #expect(message.contains("such as 90s or 10m, from 1s to 8h"))
    }

    @Test func `a lease refuses two hyphens without a command`() throws {
        #expect(throws: CLIError.self) {
            try LeaseCommand.refuseEmptyCommand(["lease", "shop", "--"], of: "patchbay lease")
        }
        #expect(throws: Never.self) {
            try LeaseCommand.refuseEmptyCommand(["lease", "shop", "--", "make", "--"], of: "patchbay lease")
            try LeaseCommand.refuseEmptyCommand(["lease", "shop"], of: "patchbay lease")
        }
    }

    @Test func `a lease that ended during its command is a temporary failure, unless the command failed`() {
        let endpoint = EndpointID(app: SanitizedText("shop"), location: "phone")
        let ended = ClientError.refused(Problem(.notFound, "lease l7 has ended: user 1000 ended it"))

        #expect(LeasedProgram.loss(of: endpoint, because: ended, status: 0).status == .temporary)
        #expect("\(LeasedProgram.loss(of: endpoint, because: ended, status: 0))".contains("user 1000 ended it"))
        #expect(LeasedProgram.loss(of: endpoint, because: ended, status: 0).exitCode == nil)
        #expect(LeasedProgram.loss(of: endpoint, because: ended, status: 3).exitCode == 3)
        #expect(LeasedProgram.loss(from: ended) != nil)
        #expect(LeasedProgram.loss(from: ClientError.refused(Problem(.unauthorized, "x"))) != nil)
        #expect(LeasedProgram.loss(from: ClientError.connectionLost(what: "x")) == nil)
    }

    @Test(arguments: [(nil, 1_800), (60, 1_800), (3_600, 3_600)] as [(Int?, Int)])
    func `a program never shortens a lease that its client had before`(wanted: Int?, seconds: Int) throws {
        let endpoint: EndpointID = "shop"
        let date = SampleEndpoints.date
        let lease = Lease.sample(of: endpoint, seconds: 1_800, createdAt: date, expiresAt: date + 1_800)
        let renewal = LeasedProgram.renewal(of: lease, for: LeaseSpec(endpoint: endpoint, seconds: wanted))
        #expect(renewal.seconds == seconds && renewal.renew == "l1")
    }

    @Test func `an unknown lease is named as a lease`() {
        func hint(_ text: String, leases: [String]) -> String? {
            let error = UnleaseCommand.noLease(of: text, among: leases)
            #expect(error.message.hasPrefix("there is no lease of \"\(text)\"; "))
            return error.hint
        }
        #expect(hint("l99", leases: ["l7"]) == "patchbay leases")
        #expect(hint("L7", leases: ["l7"]) == "patchbay unlease l7")
    }

    @Test(arguments: [
        ([], "old", "/old"), (["--broker", "lab"], "lab", "/old"), (["--socket", "/run/p.sock"], nil, "/run/p.sock"),
    ])
    func `the command of a lease uses the same broker`(options: [String], broker: String?, socket: String) throws {
        let variables = ["PATCHBAY_BROKER": "old", "PATCHBAY_SOCKET": "/old", "HOME": "/home/anna"]
        let environment = try GlobalOptions.parse(options).environment(from: variables)

        #expect(environment["PATCHBAY_BROKER"] == broker)
        #expect(environment["PATCHBAY_SOCKET"] == socket && environment["HOME"] == "/home/anna")
    }

    @Test func `the words after two hyphens are the command of a lease`() throws {
        let lease = try #require(try Patchbay.parseAsRoot(["lease", "shop", "--", "make", "--json"]) as? LeaseCommand)

        #expect(lease.selector == "shop" && lease.command == ["make", "--json"] && !lease.format.json)
    }

    @Test func `a hyphen selects standard input`() throws {
        #expect((try Patchbay.parseAsRoot(["join", "-"]) as? JoinCommand)?.source == "-")
        #expect((try Patchbay.parseAsRoot(["join", "--print", "-"]) as? JoinCommand)?.prints == true)
        #expect((try Patchbay.parseAsRoot(["join"]) as? JoinCommand)?.source == "-")
    }

    @Test func `iproxy receives its arguments unchanged`() throws {
        let command = try Patchbay.parseAsRoot(["iproxy", "-h", "-u", "x", "--", "1:2"])

        #expect((command as? IproxyCommand)?.arguments.contains("-h") == true)
        #expect((command as? IproxyCommand)?.arguments.contains("1:2") == true)
    }

    @Test(arguments: [("127.0.0.1:9876", "127.0.0.1"), ("[fd00::7]:9876", "fd00::7"), ("localhost:9876", "localhost")])
    func `a static endpoint has a numeric address and a port`(text: String, address: String) throws {
        let add = try #require(try Patchbay.parseAsRoot(["add", "Lab", text, "--kind", "mcp"]) as? AddCommand)

        #expect(try add.endpoint() == StaticEndpoint(name: "Lab", kind: .mcp, address: address, port: 9876))
    }

    @Test(arguments: [
        ("http://127.0.0.1:8000/api/mcp", "/api/mcp", UInt16(8_000)), ("http://127.0.0.1/mcp/?x=1", "/mcp/?x=1", 80),
        ("http://[fd00::7]:8000/", "/", 8_000),
    ])
    func `a URL with a path is an MCP server`(text: String, path: String, port: UInt16) throws {
        let add = try #require(try Patchbay.parseAsRoot(["add", "Lab", text]) as? AddCommand)
        let endpoint = try add.endpoint()

        #expect((endpoint.path, endpoint.port, endpoint.kind) == (path, port, .mcp))
    }

    @Test(arguments: [
        "9876", "127.0.0.1", "https://127.0.0.1:80/mcp", "http://example.com/mcp", "example.com:80", "127.0.0.1:0",
        "tcp:127.0.0.1:80", "unix:/x", "::1:80",
    ])
    func `any other address is rejected for a static endpoint`(text: String) throws {
        let add = try #require(try Patchbay.parseAsRoot(["add", "Lab", text]) as? AddCommand)

        #expect(throws: CLIError.self) { try add.endpoint() }
    }

    @Test func `TXT arguments keep the three forms of a value`() throws {
        let record = try TXTArgument.record(["a=1=2", "b=", "c"])

        #expect(record.entries.map(\.key) == ["a", "b", "c"])
        #expect(record.entries.map(\.value) == [Array("1=2".utf8), [], nil])
        #expect(throws: CLIError.self) { try TXTArgument.record(["a=1", "A=2"]) }
        #expect(throws: CLIError.self) { try TXTArgument.record(["=1"]) }
    }

    @Test func `show prints all facts with the raw TXT record`() {
        let endpoint = SampleEndpoints.endpoint(
            "com.example.shop",
            on: "Test iPhone",
            phone: SampleEndpoints.phone,
            txt: ["bundleId=com.example.shop", "beta", "x="]
        )

        let text = ShowCommand.text(endpoint, now: SampleEndpoints.date.addingTimeInterval(3), isColoured: false)

        #expect(
            text == """
                shop-test-iphone  online
                  name        Shop
                  app         com.example.shop
                  kind        appreveal
                  phone       00008101-000123456789ABCD
                  approval    approved
                  routes      usb:00008101-000123456789ABCD:9876, approved
                  sources     usbmuxd
                  first seen  3 s ago
                  last seen   3 s ago
                  txt         bundleId  com.example.shop
                              beta      (no value)
                              x         (empty)
                """
        )
    }

    @Test func `show names what was repaired`() {
        var endpoint = SampleEndpoints.endpoint("com.example.shop", on: "Test iPhone")
        endpoint.deviations = [ServerDeviation(.textIDs, count: 3), ServerDeviation(.redirect, count: 1)]

        let text = ShowCommand.text(endpoint, now: SampleEndpoints.date, isColoured: false)

        #expect(text.contains("  repaired    this server: answers ids as text (3 times)\n"))
        #expect(text.contains("              this server: redirects MCP requests to another path (once)\n"))
    }

    @Test func `status starts with the problems and their hints`() {
        let status = BrokerStatus(
            version: "0.1.0",
            pid: 42,
            startedAt: SampleEndpoints.date,
            revision: 7,
            endpoints: ["online": 2],
            devices: 0,
            tunnels: 1,
            sources: [
                SourceStatus(name: "bonjour", state: .ok, detail: "browsing 5 types"),
                SourceStatus(
                    name: "usbmuxd",
                    state: .missing,
                    detail: "usbmuxd is not there",
                    hint: "apt install usbmuxd"
                ),
            ],
            findings: ["the clock went back by 9 s"]
        )

        let text = StatusCommand.text(
            status,
            socket: "/run/x.sock",
            now: SampleEndpoints.date.addingTimeInterval(60),
            isColoured: false
        )

        #expect(
            text == """
                warning: access: the clock went back by 9 s

                broker     patchbayd 0.1.0, process 42, up 1 min, at /run/x.sock
                endpoints  2 online (revision 7)
                phones     none attached
                tunnels    1
                bonjour    ok: browsing 5 types
                usbmuxd    missing: usbmuxd is not there; apt install usbmuxd
                """
        )
    }

    @Test func `the line of a tunnel has the address, the target and the reason of its state`() {
        let spec = TunnelSpec(local: .tcp(host: nil, port: 0), target: .device(udid: SampleEndpoints.phone, port: 22))
        let tunnel = Tunnel.sample(
            "t3",
            spec: spec,
            state: .waiting(reason: "the phone is not plugged in"),
            listenAddresses: [.tcp(host: "127.0.0.1", port: 43_211), .tcp(host: "::1", port: 43_211)]
        )

        #expect(
            TunnelTableView.line(tunnel)
                == "127.0.0.1:43211 -> 00008101-000123456789ABCD:22 (t3) waiting: the phone is not plugged in"
        )
        #expect(EphemeralTunnels.fixed(spec, tunnel).local == .tcp(host: nil, port: 43_211))
        #expect(ForwardCommand.adbLine(of: tunnel) == "00008101-000123456789ABCD tcp:43211 tcp:22")
    }

    @Test func `a lifted protection is shown in the line and in the table`() {
        let tunnel = Tunnel.sample(
            "t3",
            spec: TunnelSpec(
                local: .tcp(host: nil, port: 1),
                target: .device(udid: SampleEndpoints.phone, port: 22),
                allowAnyUser: true,
                allowBrowsers: true
            ),
            createdAt: SampleEndpoints.date
        )

        #expect(TunnelTableView.line(tunnel).hasSuffix("(t3) open to any user and browsers"))
        let table = TunnelTableView.table(of: [tunnel]).text(width: nil, isColoured: false)
        #expect(table.hasSuffix("open to any user and browsers"))
    }

    @Test func `a renamed advertisement shows the requested name`() {
        let advertisement = Advertisement(
            id: "a1",
            spec: AdvertisementSpec(name: "Shop", type: .appreveal, port: 80),
            state: .published,
            publishedName: SanitizedText("Shop #2")
        )

        #expect(
            AdvertiseCommand.line(advertisement)
                == "published \"Shop #2\" (the name \"Shop\" was taken) as _appreveal._tcp on port 80 (a1)"
        )
    }

    @Test func `every document has the schema version`() throws {
        let data = try JSONCoding.encoder().encode(SchemaDocument(DeleteResponse(deletedCount: 2)))

        #expect(String(decoding: data, as: UTF8.self) == #"{"deletedCount":2,"schema":1}"#)
    }

    @Test func `the error for an invalid state lists the valid states`() throws {
        let error = try #require(throws: (any Error).self) { try Patchbay.parseAsRoot(["list", "--state", "bogus"]) }

        for state in ["online", "suspect", "offline", "blocked"] {
            #expect(Patchbay.message(for: error).contains(state))
        }
    }

    @Test func `list matches an app like show`() {
        let shop = SampleEndpoints.endpoint("com.example.shop", on: "x")

        for app in ["com.example.shop", "shop", "SHOP"] {
            #expect(EndpointFilter(app: app).matches(shop), "\(app)")
        }
        #expect(!EndpointFilter(app: "example").matches(shop))
    }

    @Test func `the table of tunnels shows the reasons of failed connections`() {
        var tunnel = Tunnel.sample(
            "t3",
            spec: TunnelSpec(local: .tcp(host: nil, port: 1), target: .device(udid: SampleEndpoints.phone, port: 22)),
            createdAt: SampleEndpoints.date
        )
        tunnel.statistics.failures = ["refused": 1, "deviceAbsent": 2]

        let table = TunnelTableView.table(of: [tunnel]).text(width: nil, isColoured: false)

        #expect(table.hasSuffix("failed: 2 phone not plugged in, 1 refused"))
        let details = TunnelTableView.details(of: tunnel, now: SampleEndpoints.date, isColoured: false)
        #expect(details.hasPrefix("t3  active\n  local        tcp:1\n  listening    no\n"))
        #expect(details.contains("\n  failures     2 phone not plugged in, 1 refused\n"))
    }

    @Test func `every help lists the exit codes`() {
        for command in Self.all {
            let help = CommandRunner.completed(Patchbay.helpMessage(for: command, columns: 80))
            #expect(help.contains("EXIT CODES"))
            #expect(help.contains("patchbay help exit-codes"))
        }
        #expect(CommandRunner.completed("0.1.0") == "0.1.0")
    }
}
