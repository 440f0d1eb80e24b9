import FoundationEssentials
import Model
import TestSupport
import Testing

/// Pages in a real browser, which enforces CORS (WHATWG Fetch). Needs Debian's `chromium-headless-shell`.
@Suite(.needs(.python, .browser), .scratchFolder) struct BrowserTests {
    private let scratch = ScratchFolder.current
    private static let script = String(#filePath.dropLast("BrowserTests.swift".count)) + "browser.py"

    /// Opens a page in a browser beside a broker with an app, and returns what the page could do.
    private func page(isAllowed: Bool) async throws -> JSON {
        let ports = try FreePorts.take(2)
        let app = try await SampleApp(in: scratch)
        let other = "http://127.0.0.1:\(ports[1])"
        let origin = isAllowed ? "http://localhost:\(ports[1])" : other
        let broker = try await RunningBroker(
            in: scratch,
            configuration: "[api]\nport = \(ports[0])\nallowed_origins = [\"\(origin)\"]\n"
        )
        let address = "127.0.0.1:\(app.port)"
        _ = try await broker.ask("add", "shop", address, "--kind", "appreveal", "--app", "com.example.shop")
        let agent = try await AgentBroker(socket: broker.socket, port: ports[0], in: scratch)
        let folder = try scratch.makeFolder("browser")
        let words = ["\(ports[0])", "\(ports[1])", agent.grant, "shop", folder]
        let lines = try await Program.run("python3", [Self.script] + words, in: scratch, within: .seconds(60))
        return try JSON(parsing: try #require(lines.last))
    }

    @Test func `a page of an allowed origin lists and calls tools, and reads streams and errors`() async throws {
        let said = try await page(isAllowed: true)

        #expect(said["broker"] == [true, true, 204])
        #expect(said["app"] == true)
        #expect(said["api"] == 1)
        #expect(said["events"] == true)
        #expect(said["refused"] == [401, "Bearer", "unauthorized"])
        #expect(said["absent"] == 404)
    }

    @Test func `a page of another origin reads no response`() async throws {
        let said = try await page(isAllowed: false)

        #expect(said.object?.members.count == 6)
        #expect(said.object?.members.allSatisfy { $0.value == "TypeError" } == true, "\(said)")
    }
}
