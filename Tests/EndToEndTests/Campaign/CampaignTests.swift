import TestSupport
import Testing

/// Short campaigns of random faults with fixed seeds: `Tests/Campaign`, which `make campaign` runs for longer.
@Suite(
    .serialized,
    .needs(.root, .namespaces, .avahi, .usbmuxd, .adb, .etcd, .python),
    .timeLimit(.minutes(4)),
    .scratchFolder
)
struct CampaignTests {
    private let scratch = ScratchFolder.current

    @Test(arguments: [("host", "307", "0.6"), ("team", "1", "0.3")])
    func `under a seeded schedule of faults the list, streams, calls, tokens, leases and grants stay right`(
        subject: String,
        seed: String,
        minutes: String
    ) async throws {
        let folder = try Executable.built("patchbayd").dropLast("/patchbayd".count)
        let rig = "\(TestSupportFolder.package)/.build/rig"
        let words = ["--subject", subject, "--seed", seed, "--minutes", minutes, "--built", "\(folder)", "--rig", rig]
        let script = "\(TestSupportFolder.package)/Tests/Campaign/campaign.py"
        // Other tests run at the same time, so the list has more time than in a campaign of its own.
        let campaign = try await Program(
            "python3",
            ["-u", script] + words + ["--limit", "20", "--no-shrink"],
            in: scratch
        )

        let status = try await campaign.exitStatus(within: .seconds(110))

        #expect(status == .exited(0), "\(campaign.log)")
        #expect(campaign.output.contains("violations: 0"))
    }
}
