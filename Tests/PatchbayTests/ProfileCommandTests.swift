import ArgumentParser
import Model
import Testing

@testable import patchbay

@Suite struct ProfileCommandTests {
    private static let summary = ProfileSummary(
        name: "shop-debug",
        title: "Shop",
        ports: [8_090, 8_091],
        file: "/etc/patchbay/profiles/shop.toml",
        toolCount: 3
    )

    @Test(arguments: [
        ["--endpoint", "lab", "--port", "80"], ["--endpoint", "lab", "--device", "00008101"], ["--device", "00008101"],
        ["--port", "0"], ["--port", "70000"],
    ])
    func `a check has one target`(options: [String]) {
        #expect(throws: (any Error).self) { try Patchbay.parseAsRoot(["profiles", "check", "x.toml"] + options) }
    }

    @Test func `the list shows each profile with its ports and its file`() {
        let table = ProfileListCommand.table(of: [Self.summary]).text(width: nil, isColoured: false)

        #expect(
            table == """
                NAME        TITLE  PORTS       TOOLS  FILE
                shop-debug  Shop   8090, 8091  3      /etc/patchbay/profiles/shop.toml
                """
        )
    }

    @Test func `a check without a server says that the file is valid`() {
        let lines = ProfileCheckCommand.lines(ProfileCheck(profile: Self.summary), isTried: false)

        #expect(lines == ["shop-debug: the profile is valid and has 3 tools."])
    }

    @Test func `a check prints each request with its status and verdict, and each read-only tool`() {
        var check = ProfileCheck(profile: Self.summary)
        check.steps = [
            ProfileCheck.Step(request: "GET /info", status: 200, mismatch: nil),
            ProfileCheck.Step(request: "GET /none", status: nil, mismatch: nil),
        ]
        check.server = ProfileCheck.Server(app: SanitizedText("com.example.shop"), version: nil, launchID: nil)
        check.tools = [
            ProfileCheck.Tool(name: "info", outcome: .answered, status: 200),
            ProfileCheck.Tool(name: "cart", outcome: .skipped, reason: "it needs a session"),
        ]

        #expect(
            ProfileCheckCommand.lines(check, isTried: true).dropFirst() == [
                "GET /info: status 200: as the profile says", "GET /none: no HTTP response: as the profile says",
                "Recognised: app com.example.shop, version -, launch -.", "tool info: answered",
                "tool cart: skipped: it needs a session",
            ]
        )
    }

    @Test func `a file that does not exist is an error with its name`() async throws {
        let command = try #require(
            try Patchbay.parseAsRoot(["profiles", "check", "/none.toml"]) as? ProfileCheckCommand
        )

        let error = await #expect(throws: CLIError.self) { try await command.run() }
        #expect(error?.message == "/none.toml cannot be read")
    }
}
