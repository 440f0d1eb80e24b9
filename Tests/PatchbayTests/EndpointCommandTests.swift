import ArgumentParser
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct EndpointCommandTests {
    private static func added(app: String?, server: String? = nil) -> Endpoint {
        var endpoint = SampleEndpoints.endpoint(app ?? "Lab", on: "desk", name: "Lab")
        let route = NetworkRoute(address: "127.0.0.1", port: 9_876)
        endpoint.routes = [EndpointRoute(.network(route), app: endpoint.app, appIsBundleID: app != nil)]
        endpoint.sources = [.config]
        endpoint.server = server.map { SanitizedText($0) }
        return endpoint
    }

    @Test func `list selects endpoints by kind and by phone, with the words of its table`() throws {
        var shop = SampleEndpoints.endpoint("com.example.shop", on: "Test iPhone", phone: SampleEndpoints.phone)
        shop.location.deviceName = SanitizedText("Anna’s iPhone")
        let other = SampleEndpoints.endpoint("com.example.shop", on: "desk")
        let udid = SampleEndpoints.phone.text

        for device in ["anna's iphone", "Anna", udid, String(udid.lowercased().prefix(6))] {
            let command = try #require(try Patchbay.parseAsRoot(["list", "--device", device]) as? ListCommand)
            #expect(command.filter.matches(shop) && !command.filter.matches(other), "\(device)")
        }
        #expect(EndpointFilter(kind: shop.kind.text.uppercased()).matches(shop))
        #expect(!EndpointFilter(kind: "web").matches(shop) && !EndpointFilter(device: "iphone").matches(shop))
        #expect(EndpointFilter(kind: "web").isActive && !EndpointFilter().isActive)
        let list = EndpointList(revision: 7, endpoints: [shop, other])
        #expect(list.filtered(by: EndpointFilter(device: udid)).endpoints == [shop])
    }

    @Test func `a static endpoint without an app has none in the list, until its server reports one`() {
        #expect(EndpointTableView.appName(of: Self.added(app: nil)) == "-")
        #expect(EndpointTableView.appName(of: Self.added(app: nil, server: "com.example.shop")) == "com.example.shop")
        #expect(EndpointTableView.appName(of: Self.added(app: "com.example.lab")) == "com.example.lab")
        let found = SampleEndpoints.endpoint("com.example.shop", on: "desk")
        #expect(EndpointTableView.appName(of: found) == "com.example.shop")
    }

    @Test(arguments: [
        (Endpoint.Approval.approved, true, false, "Revoked the approval of ID and deleted its secret."),
        (.approved, false, false, "Revoked the approval of ID. It had no secret."),
        (.changed, false, false, "Revoked the approval of ID. It had no secret."),
        (.pending, true, false, "Deleted the secret of ID. It was not approved."),
        (.pending, false, false, "ID was not approved, and it has no secret."),
        (
            .approved, true, true,
            "Deleted the secret of ID. It stays approved: USB and configured routes need no approval."
        ),
        (.approved, false, true, "ID has no secret. It stays approved: USB and configured routes need no approval."),
    ])
    func `unapprove tells only what it has changed`(
        approval: Endpoint.Approval,
        hadSecret: Bool,
        staysApproved: Bool,
        text: String
    ) {
        var endpoint = Self.added(app: nil)
        endpoint.approval = approval

        let actual = UnapproveCommand.text(endpoint, hadSecret: hadSecret, staysApproved: staysApproved)
        #expect(actual == text.replacing("ID", with: endpoint.id.text))
    }

    @Test func `an approval of a static endpoint names the other app that it accepts`() {
        var endpoint = Self.added(app: "com.example.shop")
        #expect(ApproveCommand.textWithoutAddress(endpoint).hasPrefix("\(endpoint.id) needs no approval"))

        endpoint.routes = endpoint.routes.map { route in
            EndpointRoute(route.route, app: route.app, appIsBundleID: true, mismatch: SanitizedText("com.other.app"))
        }
        let text = ApproveCommand.textWithoutAddress(endpoint)
        #expect(text.hasPrefix("Approved another app at \(endpoint.id): com.other.app answered there last."))
    }

    @Test func `the next step after a refused call lists the tools, or the arguments of the tool`() {
        let id = Self.added(app: nil).id

        #expect(CallCommand.hint(after: "unknown-tool", of: "tap", at: id) == "patchbay tools \(id)")
        #expect(CallCommand.hint(after: "refused", of: "tap", at: id) == "patchbay tools \(id) tap")
        #expect(CallCommand.hint(after: nil, of: "tap", at: id) == nil)
    }
}
