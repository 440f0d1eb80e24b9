import AccessControl
import Model
import Testing

@testable import Apps

@Suite struct IdentityVerifierTests {
    private let shop: Endpoint
    private let route: Route

    init() async throws {
        shop = try #require(await AppProxyFixture(ScriptedApp.appReveal()).appear())
        route = try #require(shop.routes.first?.route)
    }

    private func verify(
        _ health: ServerIdentity?,
        launch: ServerIdentity? = nil,
        secret: EndpointSecret? = nil
    ) async throws -> IdentityReport? {
        let probe = IdentityProbe(health: { _ in health }, launch: { _ in launch })
        return try await IdentityVerifier(probe: probe).verify(shop, by: [AuthorizedRoute(route, secret: secret)])
    }

    @Test func `the expected app is accepted, and its name is reported`() async throws {
        let app = SanitizedText("com.example.shop")

        let report = try await verify(ServerIdentity(kind: .appreveal, app: app))

        #expect(report == .server(app, version: nil))
    }

    @Test func `another app at the address is a mismatch`() async throws {
        let other = SanitizedText("com.example.other")

        await #expect(throws: AppError.mismatch(route, found: other)) {
            try await verify(ServerIdentity(kind: .appreveal, app: other))
        }
        await #expect(throws: AppError.mismatch(route, found: other)) {
            try await verify(ServerIdentity(kind: .appreveal), launch: ServerIdentity(kind: .appreveal, app: other))
        }
    }

    @Test func `a token is not sent to a server that is not AppReveal`() async throws {
        let secret = try EndpointSecret("the-token-of-shop")

        await #expect(throws: AppError.self) { try await verify(ServerIdentity(kind: .mcp), secret: secret) }
        #expect(try await verify(ServerIdentity(kind: .mcp)) == nil)
    }

    @Test func `a server that cannot be asked is not a mismatch`() async throws {
        #expect(try await verify(nil) == nil)
    }

    @Test func `the name in serverInfo is reported once, and another name is a mismatch`() throws {
        let verifier = IdentityVerifier(probe: .none)
        var known = shop
        known.server = SanitizedText("lines")

        #expect(
            try verifier.verify(["name": "lines", "version": "1"], of: shop, on: route)
                == .server(SanitizedText("lines"), version: SanitizedText("1"))
        )
        #expect(try verifier.verify(["name": "lines"], of: known, on: route) == nil)
        #expect(throws: AppError.mismatch(route, found: SanitizedText("other"))) {
            try verifier.verify(["name": "other"], of: known, on: route)
        }
    }
}
