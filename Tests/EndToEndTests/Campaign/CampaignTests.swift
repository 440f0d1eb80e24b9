import TestSupport
import Testing

/// A short campaign of random faults with a fixed seed: `Tests/Campaign`, which `make campaign` runs for longer.
@Suite(.needs(.root, .namespaces, .avahi, .usbmuxd, .adb, .python), .timeLimit(.minutes(4)), .scratchFolder)
struct CampaignTests {
    private let scratch = ScratchFolder.current

    @Test func `under a seeded schedule of faults the list, streams, calls, tokens and grants stay right`() async throws
    {
        let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        // Other tests run at the same time, so the list has more time than in a campaign of its own.
        let words = ["--seed", "307", "--minutes", "1", "--limit", "20", "--no-shrink", "--built", "\(folder)"]
        let script = "\(TestSupportFolder.package)/Tests/Campaign/campaign.py"
        let rig = ["--rig", "\(TestSupportFolder.package)/.build/rig"]
        let campaign = try await Program("python3", ["-u", script] + words + rig, in: scratch)

        let status = try await campaign.exitStatus(within: .seconds(150))

        #expect(status == .exited(0), "\(campaign.log)")
        #expect(campaign.output.contains("violations: 0"))
    }
}
