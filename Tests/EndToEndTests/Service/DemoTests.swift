import FoundationEssentials
import TestSupport
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .python), .scratchFolder) struct DemoTests {
    private let scratch = ScratchFolder.current
    private static let root = String(#filePath.dropLast("/Tests/EndToEndTests/Service/DemoTests.swift".count))

    /// Runs the demo without a terminal, and returns its lines. Each step of the demo checks its own promise too.
    private func run(_ options: String...) async throws -> [String] {
        let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        let demo = try await Program(
            "\(Self.root)/Tests/TestSupport/demo/run",
            options,
            in: scratch,
            environment: ["BUILT": String(folder)]
        )
        let status = try await demo.exitStatus(within: .seconds(90))
        for await _ in demo.transcript.elements() {}
        #expect(status == .exited(0), "\(demo.log)")
        return demo.output
    }

    @Test(arguments: [("xterm-256color", "\u{1B}[38;2;"), ("foot", "\u{1B}Pq"), ("xterm-kitty", "\u{1B}_Ga=T,f=100,")])
    func `the demo shows a picture in the form that the terminal has`(terminal: String, begin: String) async throws {
        let app = "\(Self.root)/Tests/EndToEndTests/Dashboard/screenapp.py"
        try await Program.run("sh", ["-c", "python3 \(app) picture >\(scratch.file("screen.png"))"], in: scratch)

        let lines = try await Program.run(
            "env",
            [
                "-u", "TMUX", "-u", "STY", "-u", "TERM_PROGRAM", "TERM=\(terminal)",
                "\(Self.root)/Tests/TestSupport/demo/picture.py", scratch.file("screen.png"), "10",
            ],
            in: scratch
        )

        #expect(lines.first?.hasPrefix(begin) == true)
        #expect(lines.count == (terminal.hasPrefix("xterm-256") ? 10 : 1))
    }

    @Test(.timeLimit(.minutes(2)))
    func `the demo keeps every promise, within a minute`() async throws {
        let lines = try await run()

        /// The lines between a step and the next one.
        func step(_ beginning: String) throws -> [String] {
            let first = try #require(lines.firstIndex { $0.hasPrefix("# \(beginning)") }, "\(lines)")
            return Array(lines[(first + 1)...].prefix { !$0.hasPrefix("# ") })
        }
        let found = try step("Patchbay finds two apps")
        #expect(found.contains { $0.hasPrefix("notes-desk ") && $0.contains(" online ") && $0.contains(" pending ") })
        #expect(found.contains { $0.hasPrefix("shop-demo-iphone ") && $0.contains(" approved ") })
        let health = #"{"status": "ok", "port": 9876, "#
        #expect(try step("A port of this machine").contains { $0.hasPrefix(health) })
        let unplugged = try step("The phone is unplugged")
        #expect(unplugged.contains { $0.hasPrefix("curl: (56)") || $0.hasPrefix("curl: (7)") }, "\(unplugged)")
        #expect(unplugged.contains { $0.hasPrefix("t1 ") && $0.contains(" waiting ") }, "\(unplugged)")
        #expect(unplugged.contains { $0.hasPrefix(health) })
        let restarted = try step("The broker is killed")
        #expect(restarted.contains { $0.hasPrefix("$ kill -9 ") })
        for id in ["notes-desk ", "shop-demo-iphone ", "t1 "] {
            #expect(restarted.contains { $0.hasPrefix(id) && !$0.contains("pending") }, "\(restarted)")
        }
        #expect(restarted.contains { $0.hasPrefix(health) })
        let waited = try step("An agent calls a tool")
        let waits = try #require(waited.firstIndex { $0.contains("the call waits") })
        let answer = try #require(waited.firstIndex { $0.contains(#"\"version\": \"3.3.0\""#) })
        #expect(waits < answer)
        #expect(try step("A screenshot").contains { $0.hasPrefix("[image/png, ") })
        let guest = try step("Another user")
        #expect(guest.contains { $0.contains(" may ") && $0.contains(" on app com.example.shop") })
        #expect(guest.contains { $0.hasPrefix("shop-demo-iphone ") } && !guest.contains { $0.hasPrefix("notes-desk ") })
        let revoked = try step("The owner revokes")
        #expect(revoked.contains { $0.hasPrefix("Revoked ") } && revoked.contains { $0.hasPrefix("error: ") })
        let seconds = lines.compactMap { $0.firstMatch(of: /The demo took (?<seconds>\d+) seconds/)?.seconds }
        #expect(try #require(seconds.first.flatMap { Int($0) }) <= 60)
    }

    @Test(.timeLimit(.minutes(2)))
    func `an app of each kind is listed, one draws its screen over the cable, and a state is replayed`() async throws {
        let lines = try await run("--kinds", "--once")

        let health = #"{"status": "ok", "port": 9876"#
        let kinds = [
            "appreveal", "mcp", "app-debug", "debug", "dart-vm", "openagents", "debugbridge", "webdriveragent",
            "devicekit", "Demo iPhone", "Demo iPad",
        ]
        let results = [
            "com.example.desk", "com.example.shop", "Lines", "shop-tools", health, "[image/png, ",
            #"shows {"cart":["tea"],"paid":false}"#,
        ]
        for wanted in kinds.map({ " \($0) " }) + results {
            #expect(lines.contains { $0.contains(wanted) }, "\(wanted) is missing in \(lines)")
        }
    }

    @Test(.needs(.adb), .timeLimit(.minutes(2)))
    func `an app of an Android phone beside an iPhone needs one call to its screenshot, also after a relaunch`()
        async throws
    {
        let lines = try await run("--android", "--once")

        let phones = ["Demo iPhone  usb      iOS", "Pixel 8      network  Android   Pixel 8 15"]
        let apps = ["shop-demo-iphone ", "wallet-pixel-8 "]
        for wanted in phones + apps { #expect(lines.contains { $0.contains(wanted) }, "\(wanted) in \(lines)") }
        #expect(lines.count { $0.hasPrefix("$ patchbay call wallet-pixel-8 screenshot") } == 2)
        #expect(lines.count { $0.hasPrefix("[image/png, ") } == 2)
        #expect(!lines.contains { $0.hasPrefix("$ patchbay secret") || $0.contains("appreveal_session_token") })
        let tunnels = lines.filter { $0.hasPrefix("t1 ") }
        #expect(tunnels.count == 2 && tunnels[0].contains(" waiting ") && tunnels[1].contains(" active "), "\(tunnels)")
        #expect(lines.count { $0.contains(#""auth": "session-token""#) } == 2)
    }

    @Test(.timeLimit(.minutes(2)))
    func `on a terminal the demo ends with the address of the page, which a browser of this machine can open`()
        async throws
    {
        let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        let namespace = try await NetworkNamespace(in: scratch)
        let lines = try await Program.run(
            "python3",
            ["\(#filePath.dropLast("/DemoTests.swift".count))/demopage.py", "\(Self.root)/Tests/TestSupport/demo/run"],
            in: scratch,
            environment: ["BUILT": String(folder)],
            namespace: namespace
        )

        #expect(lines == ["1 page", "201 session", "0 end"])
    }

    @Test func `the recording in README shows every step, and is small and self-contained`() async throws {
        func text(_ file: String) throws -> String {
            try String(contentsOf: URL(filePath: "\(Self.root)/\(file)"), encoding: .utf8)
        }
        let picture = try text("docs/demo.svg")
        let steps = try text("Tests/TestSupport/demo/story.sh").matches(of: /(?m)^announce "(?<title>[^"]+)"/)

        #expect(steps.count >= 8)
        let words = picture.replacing(/<[^>]+>/, with: " ").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        for step in steps { #expect(words.contains(step.title), "record the demo again: make demo-recording") }
        #expect(picture.utf8.count < 300_000)
        #expect(!picture.contains(Self.root) && !picture.contains("href") && !picture.contains("@import"))
        let parse = "import sys, xml.etree.ElementTree as tree; tree.parse(sys.argv[1])"
        _ = try await Program.run("python3", ["-c", parse, "\(Self.root)/docs/demo.svg"], in: scratch)
        #expect(try text("README.md").contains("](docs/demo.svg)"))
    }
}
