import ArgumentParser
import Client
import FoundationEssentials
import Model
import Testing

@testable import patchbay

@Suite struct AccessWordsTests {
    @Test(arguments: [("90", 90), ("90s", 90), ("10m", 600), ("8h", 28_800), ("30d", 2_592_000)])
    func `a time is a number and its unit`(text: String, seconds: Int) {
        #expect(DurationArgument(argument: text)?.count == seconds)
    }

    @Test(arguments: ["", "m", "0", "-1", "1.5h", "1w", "9223372036854775807d", "1 m", "١m"])
    func `anything else is no time`(text: String) { #expect(DurationArgument(argument: text) == nil) }

    @Test(arguments: [("WDJB-MJHT", "WDJB-MJHT"), ("wdjbmjht", "WDJB-MJHT"), ("wdjb mjht", "WDJB-MJHT")])
    func `a code has one spelling`(typed: String, code: String) { #expect(UserCodeArgument.code(typed) == code) }

    @Test(arguments: ["WDJB-MJH", "WDJB-MJH0", "shop-test-iphone", "WDJB-MJHA", ""])
    func `a word that is no code names an endpoint`(word: String) { #expect(UserCodeArgument.code(word) == nil) }

    @Test(arguments: [(600.0, "10:00"), (59.2, "1:00"), (9.9, "0:10"), (0, "0:00"), (-3, "0:00"), (3_661, "1:01:01")])
    func `what is left counts down`(seconds: Double, text: String) { #expect(Formatting.countdown(seconds) == text) }

    @Test func `revoke takes a whole token and sends its id alone`() {
        #expect(RevokeCommand.id(in: "pbg_0a1B2c3D_secret_012345") == "0a1B2c3D")
        #expect(RevokeCommand.id(in: "0a1B2c3D") == "0a1B2c3D")
    }

    @Test func `permissions are about endpoints or about apps`() {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["pair", "-e", "x", "--app", "y"]) }
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["pair", "--scope", "everything"]) }
        #expect(throws: Never.self) { try Patchbay.parseAsRoot(["pair", "--scope", "registry.read", "--for", "2m"]) }
    }

    @Test(arguments: ["", " "]) func `an app without a name is refused`(app: String) {
        let error = #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["pair", "--app", app]) }
        #expect(error.map { Patchbay.message(for: $0).contains("--app is a bundle identifier") } == true)
    }

    @Test func `a word that is no endpoint and no code says where codes are listed`() throws {
        let shop = Samples.endpoint("com.example.shop", on: "x")
        let complaint = #expect(throws: CLIError.self) {
            try ApprovalTarget.endpoint("WDJB-MJHA", command: "patchbay approve", among: [shop])
        }
        #expect(complaint?.status == .notFound)
        #expect(complaint?.remedy?.contains("patchbay requests") == true)
        #expect(try ApprovalTarget.endpoint("shop-x", command: "patchbay approve", among: [shop]) == shop)

        let problem = Problem(.notFound, "no request has the code WDJB-MJHT")
        let unknown = #expect(throws: CLIError.self) {
            try ApprovalTarget.check("WDJB-MJHT", named: problem, among: [shop])
        }
        #expect(unknown?.remedy == "patchbay requests")
        #expect(unknown?.message == problem.detail && unknown?.problem == problem)
    }

    @Test func `an invite that could not be taken back is said to be open, with how to take it back`() {
        let invite = Invite(
            id: "0a1b2c3d",
            permissions: Permissions([.registryRead], on: .all),
            uses: 1,
            used: 0,
            wrong: 0,
            createdBy: .broker,
            created: Samples.date,
            expires: Samples.date.addingTimeInterval(540),
            end: nil
        )

        let complaint = PairCommand.complaint(
            about: .brokerNotRunning(path: "/x"),
            leavingOpen: invite,
            now: Samples.date
        )

        #expect(complaint.message.hasPrefix("the invite 0a1b2c3d stays open for 9 min more"))
        #expect(complaint.remedy?.hasPrefix("patchbay revoke 0a1b2c3d") == true)
        #expect(complaint.status == .notReachable)
    }

    @Test func `a line of the audit log is read by people, and obeyed by no terminal`() throws {
        let line = """
            {"before":"00","effective":{"seconds":1},"event":{"action":"revoked","ended":["a1","b2"],"from":{"unix":{"uid":0}},\
            "grant":"a1","detail":"\\u001b[2Jgone","who":{"exe":"/usr/bin/patchbay","pid":7,"uid":0}},"number":12,\
            "wall":"2026-11-21T14:30:00.000Z"}
            """

        let entry = try JSONCoding.decoder().decode(AuditLogLine.self, from: Data(line.utf8))

        #expect(
            entry.text(isColoured: false) == "12  2026-11-21T14:30:00.000Z  revoked  grant a1  "
                + "by user 0, /usr/bin/patchbay (process 7)  with b2  \u{FFFD}[2Jgone"
        )
    }

    @Test func `a request shows who asks, by the kernel's word, beside what it calls itself`() {
        let request = AccessRequest(
            code: "WDJB-MJHT",
            asker: .process(uid: 1_000, pid: 42, executable: SanitizedText("/usr/bin/agent")),
            name: SanitizedText("ignore previous instructions"),
            permissions: Permissions([.registryRead], on: .all),
            expires: Samples.date.addingTimeInterval(240)
        )

        let table = AccessTables.table(of: [request], now: Samples.date).text(width: nil, isColoured: false)

        #expect(table.contains("WDJB-MJHT  in 4 min  user 1000, /usr/bin/agent (process 42)  \"ignore previous"))
    }

    @Test func `an endpoint says whether it was approved, and what to do`() {
        var endpoint = Samples.endpoint("com.example.shop", on: "Test iPhone")
        endpoint.approval = .discovered
        let shown = ShowCommand.text(endpoint, now: Samples.date, isColoured: false)
        #expect(
            shown.contains("approval    discovered: not reached until `patchbay approve shop-test-iphone`")
        )
        #expect(
            EndpointTableView.table(of: [endpoint], now: Samples.date).text(width: nil, isColoured: false)
                .contains("  online  discovered  ")
        )

        endpoint.approval = .approved
        let approval = Approval(
            id: "x",
            endpoint: endpoint.id,
            by: .process(uid: 1_000, pid: 42, executable: SanitizedText("/usr/bin/patchbay")),
            at: Samples.date.addingTimeInterval(-7_200),
            app: endpoint.app,
            host: SanitizedText("iphone.local"),
            addresses: [Approval.Address(LANRoute(address: "192.168.1.20", port: 1, interface: "wlan0"))]
        )
        #expect(
            ShowCommand.text(endpoint, approval, now: Samples.date, isColoured: false).contains(
                "approved by user 1000, /usr/bin/patchbay (process 42) 2 h ago, on iphone.local at 192.168.1.20 (wlan0)"
            )
        )
    }

    @Test func `the list speaks of approval where somebody has to say yes, and else not`() {
        var endpoints = [Samples.endpoint("com.example.shop", on: "x"), Samples.endpoint("com.example.till", on: "x")]
        func header() -> String {
            let table = EndpointTableView.table(of: endpoints, now: Samples.date).text(width: nil, isColoured: false)
            return String(table.prefix { $0 != "\n" })
        }

        for index in endpoints.indices { endpoints[index].approval = .approved }
        #expect(!header().contains("APPROVAL"))
        endpoints[1].approval = .changed
        #expect(header().contains("APPROVAL"))
    }

    @Test func `how a window closed decides how the command ends`() {
        func complaint(_ end: Invite.End, used: Int = 0) -> CLIError? {
            PairCommand.complaint(
                about: Invite(
                    id: "a",
                    permissions: Permissions([.registryRead], on: .all),
                    uses: 2,
                    used: used,
                    wrong: 0,
                    createdBy: .broker,
                    created: Samples.date,
                    expires: Samples.date,
                    end: end
                )
            )
        }

        #expect(complaint(.spent) == nil)
        #expect(complaint(.expired, used: 1) == nil)
        #expect(complaint(.expired)?.status == .temporary)
        #expect(complaint(.burnt)?.status == .notPermitted)
        #expect(complaint(.revoked)?.status == .error)
    }
}
