import FoundationEssentials
import Model
import Samples
import Testing

@testable import Registry

/// A Flutter app on this machine, announced by the app itself and by Flutter's tool.
@Suite struct LocalDartVMTests {
    private func sighting(
        _ name: String,
        isApp: Bool,
        port: UInt16 = 8_181,
        code: String? = "EMYU73JbR-A=",
        address: String = "127.0.0.1"
    ) -> Sighting {
        Sighting(
            id: Sighting.ID(source: .bonjour, key: "1/\(address)/\(name)"),
            kind: .dartVM,
            app: SanitizedText(isApp ? name : "shop"),
            appIsBundleID: isApp,
            name: SanitizedText(name),
            machine: SanitizedText("rig.local"),
            routes: [.network(address, port: port, interface: "lo", interfaceIndex: 1, machine: "rig.local")],
            authCode: code.flatMap { DartAuthCode($0) }
        )
    }

    @Test func `both adverts of one VM service are one endpoint, with the bundle identifier as its app`() {
        let table = EndpointTable(
            sighting("Flutter Tools on rig", isApp: false),
            sighting("com.example.shop", isApp: true),
            sighting("Flutter Tools on rig", isApp: false, address: "::1")
        )

        #expect(table.endpoints.map(\.app.text) == ["com.example.shop"])
        #expect(table.endpoints.first?.routes.map(\.description) == ["127.0.0.1:8181", "[::1]:8181"])
        #expect(table.endpoints.first?.routes.first?.app.text == "com.example.shop")
    }

    @Test func `another port or another code is another endpoint`() {
        let table = EndpointTable(
            sighting("Flutter Tools on rig", isApp: false),
            sighting("com.example.shop", isApp: true, port: 8_182),
            sighting("com.example.cart", isApp: true, code: "other")
        )

        #expect(table.endpoints.count == 3)
    }

    @Test func `the same port and code on another machine is another endpoint`() {
        let table = EndpointTable(
            sighting("Flutter Tools on rig", isApp: false),
            sighting("com.example.shop", isApp: true, address: "192.168.1.20")
        )

        #expect(table.endpoints.count == 2)
    }

    @Test func `the endpoint keeps its ID when the app restarts with another port and code`() {
        var table = EndpointTable(
            sighting("Flutter Tools on rig", isApp: false),
            sighting("com.example.shop", isApp: true)
        )
        let id = table.endpoints.first?.id

        for sighting in [
            sighting("com.example.shop", isApp: true, port: 9_000, code: "next"),
            sighting("Flutter Tools on rig", isApp: false, port: 9_000, code: "next"),
        ] { table.see(sighting) }

        #expect(table.endpoints.filter { $0.state == .online }.map(\.id) == [id])
    }

    @Test func `only the code of an approved route is known`() throws {
        var table = EndpointTable(sighting("com.example.shop", isApp: true))
        let endpoint = try #require(table.endpoints.first)
        #expect(table.authCode(of: endpoint.id) == nil)

        _ = table.setTrust(.approving(endpoint), of: endpoint.id, at: now)

        #expect(table.authCode(of: endpoint.id)?.reveal() == "EMYU73JbR-A=")
    }

    @Test func `an endpoint does not contain the code`() throws {
        let endpoint = try #require(EndpointTable(sighting("com.example.shop", isApp: true)).endpoints.first)
        let json = String(decoding: try JSONCoding.encoder().encode(endpoint), as: UTF8.self)

        #expect(!"\(endpoint)\(json)".contains("EMYU73JbR"))
    }
}
