import Apps
import FoundationEssentials
import TestSupport
import Testing

/// `patchbay tools` and `patchbay call`.
@Suite(.needs(.python), .scratchFolder) struct CallTests {
    private let scratch = ScratchFolder.current

    @Test func `an app's tools are listed, called with typed values, and their errors are reported`() async throws {
        let (broker, id, app) = try await startApp()
        let list = try await broker.ask("tools", id)
        #expect(list.first?.hasPrefix("TOOL") == true)
        #expect(list.contains { $0.hasPrefix("tap_element") && $0.contains("element_id") })

        let answer = try await broker.ask("call", id, "tap_element", "element_id=5")
        #expect(answer.joined().contains(#""tapped": "5""#))
        let failed = try await broker.start("call", id, "tap_element", "element_id=missing")
        #expect(try await failed.exitStatus() == .exited(1))
        #expect(failed.log.contains("Element not found"))
        let missing = try await broker.start("call", id, "tap_elemnt")
        #expect(try await missing.exitStatus() == .exited(66))
        #expect(missing.log.contains("patchbay tools \(id) tap_element"))
        #expect(app.program.output.count { $0.hasPrefix("call: ") && $0 != "call: launch_context" } == 2)
    }

    @Test func `a screenshot is saved at a size for agents, with a link to the original`() async throws {
        let (broker, id, app) = try await startApp()
        let file = "\(broker.socket).jpg"

        let said = try await broker.ask("call", id, "screenshot", "--output", file)

        #expect(said.first?.hasPrefix("[image/") == true)
        let bytes = try Data(contentsOf: URL(filePath: file))
        let (image, _, _) = try await ImageResizer().resize(base64: bytes.base64EncodedString(), to: 10_000)
        // The JPEG decoder scales by eighths, which rounds the width.
        #expect((723...724).contains(image.width) && image.height == 1_568)
        #expect(bytes.count <= 700_000)
        #expect(app.program.output.contains("call: screenshot jpeg"))
        let links = try await broker.ask("call", id, "screenshot", "--max-pixels", "0")
        #expect(links.first?.hasPrefix("patchbay://artifact/") == true)
        #expect(app.program.output.contains("call: screenshot"))
    }

    @Test func `a file named .png is a PNG, and no other content is written to it`() async throws {
        let (broker, id, _) = try await startApp()
        let file = "\(broker.socket).png"

        let said = try await broker.ask("call", id, "screenshot", "format=jpeg", "--output", file)

        #expect(said.first?.hasPrefix("[image/png, ") == true, "\(said)")
        let bytes = try Data(contentsOf: URL(filePath: file))
        #expect(ImageFormat(of: bytes) == .png)
        let text = try await broker.start("call", id, "tap_element", "element_id=5", "--output", "\(file).png")
        #expect(try await text.exitStatus() == .exited(1))
        #expect(text.log.contains("was not written") && text.log.contains("--output"), "\(text.log)")
        #expect(!FileManager.default.fileExists(atPath: "\(file).png"))
    }

    @Test func `arguments that the tool does not have are refused before the call`() async throws {
        let (broker, id, app) = try await startApp()
        let unknown = try await broker.start("call", id, "tap_element", "elementid=5")
        #expect(try await unknown.exitStatus() == .exited(64))
        #expect(unknown.log.contains(#"did you mean "element_id"?"#), "\(unknown.log)")
        #expect(!app.program.output.contains("call: tap_element"))
    }

    @Test func `arguments that the schema does not allow are refused, and nothing is delivered`() async throws {
        let (broker, id, app) = try await startApp()
        for words in [["format=bmp"], ["--json-args", #"{"format":"bmp"}"#], ["format=png", "format=jpeg"]] {
            let refused = try await broker.start(["call", id, "screenshot"] + words)
            #expect(try await refused.exitStatus() == .exited(64))
            #expect(refused.log.contains("was not called"), "\(refused.log)")
            #expect(refused.log.contains("patchbay tools \(id) screenshot"), "\(refused.log)")
        }
        #expect(!app.program.output.contains { $0.hasPrefix("call: screenshot") })
    }

    @Test func `a result without an image is saved as text, and an original image unchanged`() async throws {
        let (broker, id, app) = try await startApp()
        let text = "\(broker.socket).txt"
        let original = "\(broker.socket).png"

        let said = try await broker.ask("call", id, "tap_element", "element_id=5", "--output", text)
        let shot = try await broker.ask("call", id, "screenshot", "--max-px", "0", "--output", original)

        #expect(said.joined().contains("saved as \(text)"), "\(said)")
        #expect(try String(contentsOf: URL(filePath: text), encoding: .utf8).contains(#""tapped": "5""#))
        let piped = try await broker.ask("call", id, "tap_element", "element_id=5", "--output", "-")
        #expect(piped.joined().contains(#""tapped": "5""#) && !piped.joined().contains("saved"), "\(piped)")
        #expect(shot.joined().contains("saved as \(original)"), "\(shot)")
        let bytes = try Data(contentsOf: URL(filePath: original))
        let (image, _, _) = try await ImageResizer().resize(base64: bytes.base64EncodedString(), to: 10_000)
        #expect((image.width, image.height) == (1_290, 2_796))

        let nowhere = try await broker.start("call", id, "tap_element", "element_id=5", "--output", "/nowhere/x")
        #expect(try await nowhere.exitStatus() == .exited(1))
        #expect(nowhere.log.contains("/nowhere/x") && !nowhere.log.contains("CocoaError"), "\(nowhere.log)")
        #expect(app.program.output.count { $0.hasPrefix("call: tap") } == 2)
    }

    @Test func `an app that requires a token is reported with one exit code and the command to set it`()
        async throws
    {
        let (broker, id, app) = try await startApp(mode: .ios)
        try await broker.setSecret(try #require(app.token), of: id)
        #expect(try await broker.ask("tools", id).first?.hasPrefix("TOOL") == true)
        let gone = try await broker.ask("secret", "rm", id)
        #expect(gone == ["Deleted the secret of \(id)."])

        let tools = try await broker.start("tools", id)
        #expect(try await tools.exitStatus() == .exited(0))
        let call = try await broker.start("call", id, "get_screen", "--wait", "1s")

        #expect(try await call.exitStatus() == .exited(77), "\(call.log)")
        for log in [tools.log, call.log] {
            #expect(log.contains("\(id) requires its session token"), "\(log)")
            #expect(log.contains("try: patchbay secret set \(id)"), "\(log)")
            #expect(!log.contains("endpoint_") && !log.contains("away"), "\(log)")
        }
        let nothing = try await broker.ask("secret", "rm", id)
        #expect(nothing == ["No secret of \(id) is stored."])
    }

    private func startApp(mode: SampleMode = .ios09) async throws -> (RunningBroker, id: String, SampleApp) {
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\ntcp = false\n")
        let app = try await SampleApp(mode: mode, screen: "1290x2796", in: scratch)
        let added = try await broker.ask("add", "Shop", "127.0.0.1:\(app.port)", "--kind", "appreveal")
        let id = try #require(added.first?.split(separator: " ").last?.dropLast()).description
        return (broker, id, app)
    }
}
