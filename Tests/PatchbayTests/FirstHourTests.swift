import Client
import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

/// The words for a person who does not know the names yet.
@Suite struct FirstHourTests {
    private static func app(_ app: String, approval: Endpoint.Approval = .approved) -> Endpoint {
        var endpoint = SampleEndpoints.endpoint(app, on: "Test iPhone", phone: SampleEndpoints.phone)
        endpoint.approval = approval
        return endpoint
    }

    @Test func `an app of a grant is known by its bundle identifier, or by the last part of an approved one`() throws {
        let shop = Self.app("com.example.shop")
        #expect(try AppSelector(text: "com.example.shop").choose(among: [shop]) == ("com.example.shop", nil))
        let short = try AppSelector(text: "Shop").choose(among: [shop])
        #expect(short == ("com.example.shop", "--app Shop means com.example.shop"))

        let error = #expect(throws: CLIError.self) {
            try AppSelector(text: "shop").choose(among: [shop, Self.app("org.other.shop")])
        }
        #expect(error?.candidates == ["com.example.shop", "org.other.shop"])
    }

    @Test func `an unknown or unapproved app of a grant is taken as it is, with a warning`() throws {
        let shop = Self.app("com.example.shop", approval: .pending)
        let (app, note) = try AppSelector(text: "shop").choose(among: [shop])
        #expect(app == "shop")
        #expect(
            note?.contains("no app \"shop\" is listed") == true && note?.contains("similar: com.example.shop") == true
        )
        #expect(try AppSelector(text: "shp").choose(among: [shop]).note?.hasSuffix("similar: com.example.shop") == true)
        #expect(try AppSelector(text: "a.b").choose(among: []).note?.hasSuffix("until one is") == true)
    }

    @Test func `a word without a name of a call becomes the value of the only argument`() throws {
        func hint(_ schema: String) throws -> String? {
            let arguments = ToolArguments(of: "echo", at: "toy", schema: try JSON(parsing: schema))
            return #expect(throws: CLIError.self) { try arguments.merged(["a text"], into: [:]) }?.hint
        }
        let one = #"{"properties":{"text":{},"n":{}},"required":["text"]}"#
        #expect(try hint(one) == "patchbay call toy echo 'text=a text'")
        #expect(try hint(#"{"properties":{"a":{},"b":{}}}"#) == "patchbay call toy echo KEY=VALUE")
    }

    @Test func `a client that waits for a lease reads who has it, and until when`() {
        let lease = Lease(
            id: "l1",
            endpoint: "shop",
            device: nil,
            holder: SanitizedText("anna"),
            isOwn: false,
            note: SanitizedText("login"),
            seconds: 60,
            createdAt: SampleEndpoints.date,
            expiresAt: SampleEndpoints.date,
            waiting: 0
        )
        let end = Formatting.clock(SampleEndpoints.date)
        #expect(
            LeaseTableView.waiting(for: lease, upTo: DurationText(seconds: 300))
                == "shop is leased to \"anna\" (\"login\") until \(end); waiting up to 5m."
        )
    }

    @Test func `the audit log is read backwards up to a time, also without its oldest entries`() async throws {
        func line(_ number: Int) -> String {
            "{\"number\":\(number),\"wallTime\":\"\(JSONCoding.text(of: Date(timeIntervalSince1970: Double(number))))\"}"
        }
        /// Reads a log with the entries 501 to 3000, of which each is one second younger than the one before.
        func read(_ after: Int?, _ limit: Int) -> [String] {
            let first = max(501, after.map { $0 + 1 } ?? 3_001 - limit)
            return first > 3_000 ? [] : (first...min(3_000, first + limit - 1)).map(line)
        }
        for (start, count) in [(2_991.0, 10), (1_001, 2_000), (1, 2_500), (4_000, 0)] {
            let lines = try await AuditCommand.lines(since: Date(timeIntervalSince1970: start), read: read)
            #expect(lines == (3_000 - count..<3_000).map { line($0 + 1) }, "\(start)")
        }
    }

    @Test(arguments: [
        ("list -d Pixel", "patchbay list --device Pixel"), ("list -o json", "patchbay list --json"),
        ("list --online", "patchbay list --state online"),
        ("forward -o shop", "patchbay forward --help"),
        ("forward 9876 -d x --dettach", "patchbay forward 9876 -d x --detach"),
    ])
    func `an unknown option with one letter has the long one as suggestion`(line: String, hint: String) {
        let words = line.split(separator: " ").map(String.init)
        #expect(UnknownOption.error(in: words, below: Patchbay.self)?.hint == hint)
    }

    @Test func `a stored grant comes before the group, and a missing socket may be that of an ended grant`() {
        let error = CLIError.notPermitted("no permission", try: "join the group")
        let stored = AccessHint(stored: ["lab", "127.0.0.1:7282"], isNamedSocketMissing: false).completed(error)
        #expect(stored.hint == "you have a grant: add --broker lab, also for 127.0.0.1:7282; or join the group")
        let missing = AccessHint(stored: [], isNamedSocketMissing: true).completed(error)
        #expect(missing.hint?.hasPrefix("join the group; if `patchbay pair --socket` made the socket") == true)
        #expect(AccessHint(stored: [], isNamedSocketMissing: false).completed(error) == error)
    }

    @Test func `an app that no source reports is shown with the time and with what brings it back`() {
        var endpoint = Self.app("com.example.shop")
        endpoint.state = .offline
        endpoint.reason = "no discovery source reports it any more"
        (endpoint.routes, endpoint.sources) = ([], [])
        endpoint.lastSeenAt = SampleEndpoints.date
        let shown = ShowCommand.text(endpoint, now: SampleEndpoints.date.addingTimeInterval(180), isColoured: false)
        #expect(shown.contains("any more; last seen 3 min ago"), "\(shown)")
        #expect(shown.contains("to return   start the app"), "\(shown)")
    }

    @Test func `an exposed invite is named with the command that ends it`() {
        #expect(JoinCommand.replacement(of: "abc").contains("patchbay revoke ID"))
    }

    @Test func `a refused user without a token is told of a stored grant`() {
        let refused = ClientError.refused(
            Problem(.forbidden, "no owner", hint: "\(Problem.askHint); an owner can help")
        )
        let other = ClientError.refused(
            Problem(.forbidden, "grant a does not allow shell", hint: Scope.shell.pairCommand)
        )

        #expect(refused.isAboutAccess && !other.isAboutAccess)
        #expect(Scope.shell.pairCommand == "patchbay pair --scope shell --scope tunnel.open --scope registry.read")
    }
}
