import ArgumentParser
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import patchbay

@Suite(.scratchFolder) struct ProfileCommandTests {
    private let scratch = ScratchFolder.current
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

    @Test(arguments: ["0", "70000"]) func `an invalid port is an error with the range`(port: String) {
        do {
            _ = try Patchbay.parseAsRoot(["profiles", "check", "x.toml", "--port", port])
            Issue.record("the port is accepted")
        } catch { #expect(Patchbay.message(for: error) == "--port is \(port); ports are 1 to 65535.") }
    }

    @Test func `a file that cannot be checked is an error with the reason and the next step`() async throws {
        let latin = scratch.file("latin.toml")
        try Data([0xE9]).write(to: URL(filePath: latin))
        for (file, message) in [
            ("/none.toml", "there is no file /none.toml"), (scratch.path, "is a folder, not a profile file"),
            (latin, "is not text in UTF-8"),
        ] {
            let error = #expect(throws: CLIError.self) { try ProfileCheckCommand.text(of: file) }
            #expect(error?.message.contains(message) == true && error?.hint?.isEmpty == false)
        }
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
        #expect(error?.message == "there is no file /none.toml" && error?.status == .notFound)
    }
}
