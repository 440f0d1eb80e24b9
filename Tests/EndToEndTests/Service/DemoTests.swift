import TestSupport
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .python)) struct DemoTests {
    @Test(.timeLimit(.minutes(2)))
    func `the demo lists an app of each kind, takes a screenshot over the cable, and replays a state`() async throws {
        try await withScratchFolder { scratch in
            let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)
            let house = String(#filePath.dropLast("/Tests/EndToEndTests/Service/DemoTests.swift".count))
            let environment = ["BUILT": String(folder)]

            let demo = try await Program(
                "\(house)/Tests/TestSupport/demo",
                ["--once"],
                in: scratch,
                environment: environment
            )

            let status = try await demo.exitStatus(within: .seconds(90))
            for await _ in demo.transcript.elements() {}
            #expect(status == .exited(0), "\(demo.log)")
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
                #expect(demo.output.contains { $0.contains(wanted) }, "\(wanted) is missing in \(demo.log)")
            }
        }
    }
}
