import FoundationEssentials
import TestSupport
import Testing

/// The page in a real browser, as a person uses it, with the broker, phones, apps and agents of the demo.
@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .etcd, .python, .browser), .scratchFolder)
struct DashboardBrowserTests {
    private let scratch = ScratchFolder.current
    private static let folder = String(#filePath.dropLast("/DashboardBrowserTests.swift".count))

    @Test(.timeLimit(.minutes(12)))
    func `a person sees, operates, decides and reviews in the page, without an error in its console`() async throws {
        let python = try await PythonPeers.playwright(in: scratch)
        let built = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        let demo = try await Program(
            "\(TestSupportFolder.sources)/demo/run",
            ["--kinds", "--once", "--then", python, "\(Self.folder)/scenes.py"],
            in: scratch,
            environment: ["BUILT": String(built), "PYTHONDONTWRITEBYTECODE": "1"]
        )

        let status = try await demo.exitStatus(within: .seconds(660))

        for await _ in demo.transcript.elements() {}
        #expect(status == .exited(0), "\(demo.log)")
        #expect(demo.output.count { $0.hasPrefix("ok: ") } >= 37)
        for failure in demo.output where failure.hasPrefix("FAILED: ") { Issue.record("\(failure)") }
    }
}
