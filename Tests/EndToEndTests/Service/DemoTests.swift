import TestSupport
import Testing

@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .python)) struct DemoTests {
    @Test(.timeLimit(.minutes(2)))
    func `the demo shows both apps and reaches the one on the phone`() async throws {
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
            for wanted in ["$ patchbay list", "com.example.desk", "com.example.shop", health] {
                #expect(demo.output.contains { $0.contains(wanted) }, "\(wanted) is missing in \(demo.log)")
            }
        }
    }
}
