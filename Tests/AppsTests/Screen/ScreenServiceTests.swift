import AccessControl
import FoundationEssentials
import Model
import Registry
import Samples
import SystemIO
import Testing

@testable import Apps

@Suite struct ScreenServiceTests {
    private static let png = Data(
        PNG.file(of: SampleImages.screen(width: 300, height: 600), limit: 1_000_000) ?? []
    ).base64EncodedString()

    private static let tools: JSON = [
        "tools": [
            ["name": "screenshot", "inputSchema": ["type": "object"]],
            [
                "name": "tap_point",
                "inputSchema": [
                    "type": "object", "required": ["x", "y"],
                    "properties": ["x": ["type": "number"], "y": ["type": "number"]],
                ],
            ],
        ]
    ]

    private static func app(fails: Bool = false) -> ScriptedApp {
        let plain = ScriptedApp.appReveal { params in
            guard params["name"] == "screenshot" else { return .result(["content": []]) }
            if fails { return .error(-32_000, "no window") }
            let facts: JSON = ["width": 300, "height": 600, "scale": 2]
            let image: JSON = ["type": "image", "data": .string(png), "mimeType": "image/png"]
            return .result(["content": [image], "structuredContent": facts])
        }
        return ScriptedApp { $0.method == "tools/list" ? .result(tools) : plain.reply(to: $0) }
    }

    private func withScreen(
        _ app: ScriptedApp,
        _ body: @escaping @Sendable (AppProxyFixture, ScreenService, Endpoint) async throws -> Void
    ) async throws {
        let fixture = AppProxyFixture(app)
        let shop = try #require(await fixture.appear())
        let screens = ScreenService(fixture.proxy, images: ImageResizer())
        try await fixture.run { try await body(fixture, screens, shop) }
    }

    private static func shots(_ app: ScriptedApp) -> Int {
        app.calls.count { $0.body["params"]?["name"] == "screenshot" }
    }

    @Test func `twenty viewers cost the app one screenshot, without a lease and without an entry`() async throws {
        let app = Self.app()
        try await withScreen(app) { fixture, screens, shop in
            _ = try await fixture.leases.take(shop, for: .holder(of: "g", [.endpointCall]), seconds: 60)
            let lease = fixture.leases.leases(of: [shop], for: fixture.owner).first?.expiresAt

            let widths = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<20 {
                    group.addTask { try await screens.picture(of: shop, width: 100, for: fixture.owner).width }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }

            #expect(widths == Array(repeating: 120, count: 20))
            #expect(Self.shots(app) == 1)
            #expect(await fixture.activity.entries(for: fixture.owner).entries.isEmpty)
            // The time is computed from the rest of the lease, which changes between two reads.
            let now = try #require(fixture.leases.leases(of: [shop], for: fixture.owner).first?.expiresAt)
            #expect(abs(now.timeIntervalSince(try #require(lease))) < 0.01)
            #expect(fixture.authorizer.events.map(\.outcome) == ["viewed"])
        }
    }

    @Test func `input is a call with the scaled coordinates, which the lease of another client refuses`() async throws {
        let app = Self.app()
        try await withScreen(app) { fixture, screens, shop in
            let tap = ScreenInput.tap(ScreenInput.Point(x: 0.5, y: 0.25))
            try await screens.send(tap, to: shop, for: fixture.owner)

            let sent = app.calls.last { $0.body["params"]?["name"] == "tap_point" }
            #expect(sent?.body["params"]?["arguments"] == ["x": 75, "y": 75])
            #expect(await fixture.activity.entries(for: fixture.owner).entries.count == 1)
            _ = try await fixture.leases.take(shop, for: .holder(of: "g", [.endpointCall]), seconds: 60)
            let error = await #expect(throws: AppError.self) {
                try await screens.send(tap, to: shop, for: fixture.owner)
            }
            #expect(error?.code == "leased")
            await #expect(throws: Problem.self) { try await screens.send(.type("x"), to: shop, for: fixture.owner) }
        }
    }

    @Test func `a failure is shared, and the app is not asked again at once`() async throws {
        let app = Self.app(fails: true)
        try await withScreen(app) { fixture, screens, shop in
            for _ in 0..<3 {
                await #expect(throws: AppError.self) {
                    try await screens.picture(of: shop, width: nil, for: fixture.owner)
                }
            }
            #expect(Self.shots(app) == 1)
        }
    }

    @Test func `a viewer needs the scope, the tool, and the right to the token`() async throws {
        let app = Self.app()
        try await withScreen(app) { fixture, screens, shop in
            let limited = Principal.holder(of: "t", [.endpointCall], tools: .named(["tap_point"]))
            let stranger = Principal.holder(of: "s", [.registryRead])
            let tokenless = Principal.holder(of: "u", [.endpointCall])
            for viewer in [limited, stranger] {
                await #expect(throws: AppError.self) { try await screens.picture(of: shop, width: nil, for: viewer) }
            }
            #expect(try await screens.description(of: shop, for: limited).tool == nil)
            #expect(try await screens.description(of: shop, for: limited).input == ["tap"])
            _ = try await screens.picture(of: shop, width: nil, for: tokenless)
            try fixture.authorizer.set(secret: "token-of-the-app", of: shop.id)
            let error = await #expect(throws: AppError.self) {
                try await screens.picture(of: shop, width: nil, for: tokenless)
            }
            #expect(error == .forbidden(.secretUse))
        }
    }

    @Test func `a viewer that leaves cancels nothing, and screenshots keep their interval`() async throws {
        let screen = SharedScreen()
        guard case .wait(let first, true) = screen.picture(at: .zero),
            case .wait(let second, false) = screen.picture(at: .milliseconds(10))
        else {
            Issue.record("the second viewer started a screenshot")
            return
        }
        first.complete(.failure(CancellationError()))
        let file = try await ImageResizer().resize(base64: Self.png, to: 600).fitted
        let picture = ScreenPicture(file, screen: (300, 600), scale: 2)
        screen.end(.success(picture), at: .milliseconds(100))

        #expect(try await second.value() === picture)
        guard case .ready = screen.picture(at: .milliseconds(499)) else {
            Issue.record("the interval was not kept")
            return
        }
        guard case .wait(_, true) = screen.picture(at: .milliseconds(500)) else {
            Issue.record("no new screenshot began")
            return
        }
    }
}
