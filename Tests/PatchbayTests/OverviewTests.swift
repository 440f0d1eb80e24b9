import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct OverviewTests {
    private static let status = BrokerStatus(
        version: "1.2.3",
        pid: nil,
        startedAt: Date(timeIntervalSince1970: 0),
        revision: 1,
        endpoints: [:],
        devices: 0,
        tunnels: 0,
        sources: []
    )

    private static func app(
        _ name: String,
        _ state: Endpoint.State = .online,
        approval: Endpoint.Approval = .approved
    ) -> Endpoint {
        var endpoint = SampleEndpoints.endpoint("com.example.\(name)", on: "Test iPhone", phone: SampleEndpoints.phone)
        endpoint.state = state
        endpoint.approval = approval
        return endpoint
    }

    private static func commands(_ endpoints: [Endpoint] = [], _ devices: [Device] = []) -> [String] {
        Overview(status: status, endpoints: endpoints, devices: devices).steps.map(\.command)
    }

    @Test func `without an app, the next commands find one`() {
        #expect(Self.commands() == ["patchbay doctor", "patchbay devices --watch", "patchbay add NAME HOST:PORT"])
        #expect(Self.commands([], [SampleEndpoints.device(SampleEndpoints.phone)])[1] == "patchbay forward tcp:0:9876")
    }

    @Test func `a client with a grant is told what the grant may see`() throws {
        let grant = Grant.sample("g1", Permissions([.registryRead], on: .bundles(["com.example.shop"])))
        let overview = Overview(status: Self.status, grant: grant)
        let text = overview.text(width: nil, isColoured: false)
        #expect(
            text.contains("Your grant does not show phones.") && text.contains("on app com.example.shop"),
            "\(text)"
        )
        #expect(overview.steps.map(\.command) == ["patchbay list --watch"])
        let status = StatusCommand.text(Self.status, grant: grant, socket: "/x", isColoured: false)
        #expect(status.contains("phones     not shown to this grant") && status.contains("grant      "), "\(status)")
    }

    @Test func `the status names apps that wait for a decision`() {
        let apps = (1...7).map { Self.app("shop\($0)", approval: .pending) }
        let text = StatusCommand.text(Self.status, pending: apps, socket: "/x", isColoured: false)
        #expect(
            text.contains("approvals  7 to decide: ") && text.contains(" and 2 more; `patchbay show ID`"),
            "\(text)"
        )
    }

    @Test func `an app without an approval is shown before it is approved`() {
        let app = Self.app("shop", approval: .pending)
        #expect(Self.commands([app]).prefix(2) == ["patchbay show \(app.id)", "patchbay approve \(app.id)"])
    }

    @Test func `the tools of an app come before the page and an agent`() {
        let app = Self.app("shop")
        #expect(
            Self.commands([app]) == ["patchbay tools \(app.id)", "patchbay dashboard", "patchbay mcp install claude"]
        )
    }

    @Test func `an app that answered a moment ago, and does not now, is explained first`() {
        var app = Self.app("shop", .offline)
        app.lastSeenAt = Date()
        #expect(Self.commands([app]).first == "patchbay show \(app.id)")
        app.approval = .pending
        #expect(Self.commands([app]).first == "patchbay dashboard")
    }

    @Test func `an app that is long gone is no reason for a command`() {
        #expect(Self.commands([Self.app("shop", .offline)]) == ["patchbay dashboard", "patchbay mcp install claude"])
    }

    @Test func `the first command solves a problem`() {
        var status = Self.status
        status.storage = ["/var/lib/patchbay/tunnels.json is not written: the disk is full"]
        let steps = Overview(status: status, endpoints: [Self.app("shop")]).steps
        #expect(steps.first?.command == "patchbay logs -p warning" && steps.count == 3)
    }

    @Test func `the table has ten rows at most, and says how many more there are`() {
        let apps = (0..<14).map { Self.app("app\($0)", $0 < 4 ? .offline : .online) }
        let text = Overview(status: Self.status, endpoints: apps).text(
            width: nil,
            now: Date(timeIntervalSince1970: 7_200),
            isColoured: false
        )
        #expect(text.hasPrefix("patchbayd 1.2.3 has run for 2 h.") && text.contains("\nand 4 more: patchbay list\n"))
        #expect(!text.contains("offline") && text.contains("No phone is attached."))
        #expect(text.split(separator: "\n").last?.contains("patchbay --help") == true)
    }

    @Test func `the page of an endpoint opens after the sign-in`() throws {
        let url = OpenCommand.pageURL(of: Self.app("shop").id, "http://127.0.0.1:7282/#code=abc")
        #expect(url == "http://127.0.0.1:7282/#code=abc&view=/e/\(Self.app("shop").id)")
    }

    @Test func `the URL of an app is its VM service or its tunnel`() throws {
        let shop = Self.app("shop")
        let service = DartVMService(at: "127.0.0.1:1234", authCode: nil)
        #expect(try OpenCommand.url(of: shop, authority: "127.0.0.1:9000", nil) == "http://127.0.0.1:9000/")
        #expect(try OpenCommand.url(of: shop, authority: nil, .success(service)) == service.http)
        #expect(
            try OpenCommand.url(of: shop, authority: "127.0.0.1:9000", .success(service))
                == DartVMService(at: "127.0.0.1:9000", authCode: nil).http
        )
        let error = #expect(throws: CLIError.self) { try OpenCommand.url(of: shop, authority: nil, nil) }
        #expect(error?.hint?.hasPrefix("patchbay forward -e \(shop.id)") == true)
    }
}
