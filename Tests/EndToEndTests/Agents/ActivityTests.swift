import FoundationEssentials
import Model
import TestSupport
import Testing

/// `patchbay activity` and the live screen, with the real programs and a sample app.
@Suite(.needs(.python), .timeLimit(.minutes(3)), .scratchFolder) struct ActivityTests {
    private let scratch = ScratchFolder.current

    private func startApp() async throws -> (RunningBroker, String, SampleApp) {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let app = try await SampleApp(mode: .ios09, screen: "1290x2796", in: scratch)
        let added = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        return (broker, id, app)
    }

    private func calls(_ broker: RunningBroker, _ options: String...) async throws -> [ActivityEntry.Call] {
        let program = try await broker.start(["activity", "--json"] + options)
        #expect(try await program.exitStatus() == .exited(0), "\(program.log)")
        let page = try #require(ActivityPage(try JSON(parsing: program.output.joined())))
        return page.entries.compactMap(\.call)
    }

    private func fetch(_ broker: RunningBroker, _ path: String, _ options: String...) async throws -> String {
        let target = ["-sS", "--unix-socket", broker.socket, "http://localhost\(path)"]
        let program = try await Program("curl", target + options, in: scratch)
        _ = try await program.exitStatus()
        return program.output.joined()
    }

    @Test func `calls are listed with their outcomes, without secrets, and a report has their pictures`() async throws {
        let (broker, id, _) = try await startApp()
        _ = try await broker.ask("call", id, "tap_element", "element_id=5")
        let failed = try await broker.start("call", id, "tap_element", "element_id=missing")
        _ = try await failed.exitStatus()
        _ = try await broker.ask("call", id, "screenshot", "--output", "\(broker.socket).jpg")
        _ = try await broker.ask(
            "call",
            id,
            "get_state",
            "--json-args",
            #"{"password": "hunter2", "format": "<img src=x onerror=alert(1)>"}"#
        )

        let calls = try await calls(broker)

        #expect(calls.map(\.tool.text) == ["tap_element", "tap_element", "screenshot", "get_state"])
        #expect(calls.map(\.outcome) == [.ok, .error, .ok, .ok])
        #expect(calls.last?.arguments["password"] == "[removed]")
        #expect(calls[2].picture?.height == 1_568)
        #expect(try await self.calls(broker, "--failed").count == 1)
        #expect(try await self.calls(broker, "--endpoint", id, "--since", "1h").count == 4)
        let table = try await broker.ask("activity")
        #expect(
            table.first?.hasPrefix("TIME") == true
                && table.contains { $0.contains("tap_element") && $0.contains("error") }
        )
        let file = "\(broker.socket).html"
        #expect(try await broker.ask("activity", "--html", file).joined().contains("4 calls"))
        let html = String(decoding: try Data(contentsOf: URL(filePath: file)), as: UTF8.self)
        #expect(html.contains("data:image/jpeg;base64,") && html.contains("&lt;img src=x") && !html.contains("hunter2"))
    }

    @Test func `looking at the screen is no call and needs no lease, and input without a tool says why`() async throws {
        let (broker, id, app) = try await startApp()
        _ = try await broker.ask("lease", id)
        let path = "/v1/endpoints/\(id)/screen"
        let screen = try await fetch(broker, path)
        let picture = try await fetch(
            broker,
            "\(path)/picture?width=240",
            "-o",
            "/dev/null",
            "-w",
            "%{http_code} %{content_type}"
        )
        let input = #"{"tap": {"x": 0.5, "y": 0.5}}"#
        let tap = try await fetch(broker, "\(path)/input", "-d", input, "-H", "Content-Type: application/json")

        #expect(screen.contains(#""tool":"screenshot""#) && screen.contains("no taps"), "\(screen)")
        #expect(picture.hasPrefix("200 image/"), "\(picture)")
        #expect(tap.contains("no taps"), "\(tap)")
        #expect(try await calls(broker).isEmpty)
        #expect(app.program.output.count { $0.hasPrefix("call: screenshot") } == 1)
    }

    @Test func `a tap in fractions of the picture arrives in the points of the tool`() async throws {
        let script = "\(TestSupportFolder.sources)/sampleapp.py"
        let server = try await Program("python3", [script, "--role", "devicekit"], in: scratch)
        let port = try await server.waitForLine("listening on ").dropFirst("listening on ".count)
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let added = try await broker.ask("add", "Kit", "127.0.0.1:\(port)", "--kind", "devicekit")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast())
        let input = #"{"tap": {"x": 0.5, "y": 0.25}}"#

        let status = try await fetch(
            broker,
            "/v1/endpoints/\(id)/screen/input",
            "-d",
            input,
            "-H",
            "Content-Type: application/json",
            "-w",
            "%{http_code}"
        )

        #expect(status == "204")
        #expect(server.output.contains { $0.contains("device.io.tap") && $0.contains("195") && $0.contains("211") })
    }
}
