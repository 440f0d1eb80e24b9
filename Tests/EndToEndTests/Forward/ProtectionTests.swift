import FoundationEssentials
import TestSupport
import Testing

/// By default a loopback tunnel is open to its owner's programs only, and closed to web pages.
@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct ProtectionTests {
    private let scratch = ScratchFolder.current
    private let phone = "00008030-001A2B3C4D5E6F70"

    /// Returns curl's output, or the reason of its failure.
    private func curl(_ port: UInt16, _ arguments: String..., prefix: [String] = [], in scratch: ScratchFolder)
        async throws
        -> String
    {
        let words = prefix + ["curl", "-sS", "--max-time", "5", "-w", " status %{http_code}"] + arguments
        let program = try await Program(
            words[0],
            Array(words.dropFirst()) + ["http://127.0.0.1:\(port)/health"],
            in: scratch
        )
        _ = try await program.exitStatus()
        for await _ in program.transcript.elements() {}
        return program.transcript.soFar.map(\.text).joined(separator: "\n")
    }

    /// Returns the number of requests that the app has received.
    private func requests(_ app: SampleApp) -> Int {
        app.program.transcript.soFar.count { $0.text.contains("request: ") }
    }

    private static let stranger = ["setpriv", "--reuid=65534", "--clear-groups"]

    @Test(.needs(.root))
    func `programs of the owner are relayed; web pages and other users are refused, also after a restart`() async throws
    {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let port = try await broker.forward("tcp:0:\(app.port)", "--device", phone)

        for round in 1...2 {
            try await eventually("the tunnel works") { try await curl(port, in: scratch).contains("status 200") }
            // The response arrives before the app's log line about the request.
            try await eventually("the app has told of the request") { requests(app) >= round }
            let seen = requests(app)
            let origin = try await curl(port, "-H", "Origin: http://evil.example", in: scratch)
            #expect(origin.contains("status 403") && origin.contains("--allow-browsers"))
            #expect(try await curl(port, "-H", "Host: evil.example", in: scratch).contains("status 403"))
            #expect(try await curl(port, prefix: Self.stranger, in: scratch).contains("status 000"))
            #expect(requests(app) == seen)
            let counted = try await broker.ask("tunnels", "--json").joined()
            #expect(counted.contains("\"browser\":2") && counted.contains("\"foreignUser\":1"))
            #expect(counted.contains("\"owner\":0"))
            try await broker.restart()
        }
    }

    @Test(.needs(.root)) func `each protection is disabled by its option, also after a restart`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let anybody = try await broker.forward("tcp:0:\(app.port)", "--device", phone, "--allow-any-user")
        let pages = try await broker.forward("tcp:0:\(app.port)", "--device", phone, "--allow-browsers")

        for _ in 0..<2 {
            try await eventually("the tunnels work") { try await curl(pages, in: scratch).contains("status 200") }
            #expect(try await curl(anybody, prefix: Self.stranger, in: scratch).contains("status 200"))
            #expect(try await curl(anybody, "-H", "Origin: null", in: scratch).contains("status 403"))
            #expect(!(try await curl(pages, "-H", "Host: evil.example", in: scratch)).contains("status 403"))
            #expect(try await curl(pages, prefix: Self.stranger, in: scratch).contains("status 000"))
            let listed = try await broker.ask("tunnels").joined(separator: "\n")
            #expect(listed.contains("open to any user") && listed.contains("open to browsers"))
            try await broker.restart()
        }
    }

    @Test func `the tunnel of patchbay-iproxy says why a web page was refused`() async throws {
        let app = try await SampleApp(in: scratch)
        let rig = try await UsbmuxdFixture([phone], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig)
        let local = try await broker.forward("tcp:0:\(app.port)", "--device", phone)
        _ = try await broker.ask("tunnels", "rm", "--all")
        let iproxy = try await broker.start("iproxy", "\(local):\(app.port)", "-u", phone)
        try await iproxy.waitForLine("waiting for connection")

        #expect(try await curl(local, "-H", "Origin: null", in: scratch).contains("status 403"))

        try await iproxy.waitForLine("--allow-browsers")
    }
}
