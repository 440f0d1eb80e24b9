import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// What `patchbay doctor --json` prints.
struct DoctorReport: Decodable {
    struct Check: Decodable {
        let name: String
        let verdict: String
        let detail: String
        let hint: String?
    }

    let checks: [Check]

    init(of broker: RunningBroker) async throws {
        let doctor = try await broker.start("doctor", "--json")
        _ = try await doctor.exitStatus()
        self = try JSONDecoder().decode(Self.self, from: Data(doctor.output.joined().utf8))
    }
}

/// `patchbay doctor` with a real broker, usbmuxd and libusbmuxd.
@Suite(.needs(.usbmuxd, .python), .scratchFolder) struct DoctorTests {
    private let scratch = ScratchFolder.current

    private func checks(_ name: String, of broker: RunningBroker) async throws -> [DoctorReport.Check] {
        let report = try await DoctorReport(of: broker)
        #expect(report.checks.allSatisfy { $0.verdict == "ok" || $0.hint != nil || $0.name == "access" })
        return report.checks.filter { $0.name == name }
    }

    @Test func `doctor agrees with libusbmuxd about an attached phone, and its command repairs the state folder`()
        async throws
    {
        let rig = try await UsbmuxdFixture(["00008030-001A2B3C4D5E6F70"], in: scratch)
        let broker = try await RunningBroker(in: scratch, phones: rig, configuration: "[api]\ntcp = false\n")
        try await eventually("the phone is listed") {
            try await broker.ask("devices").joined().contains("00008030-001A2B3C4D5E6F70")
        }

        let versions = try await checks("versions", of: broker).map(\.detail).joined()
        #expect(versions.contains(", usbmuxd 1.") && versions.contains(", Linux "), "\(versions)")
        let phones = try await checks("libusbmuxd", of: broker).map(\.detail)
        #expect(phones == ["libusbmuxd and the broker list the same phones: 1"])
        let state = "\(scratch.path)/state"
        chmod(state, 0o755)
        let finding = try #require(try await checks("state", of: broker).first)
        #expect(finding.verdict == "warn" && finding.detail.hasPrefix("\(state) has mode 0755"))
        let command = try #require(finding.hint).replacing("sudo ", with: "")
        _ = try await Program.run("sh", ["-c", command], in: scratch)
        #expect(try await checks("state", of: broker).map(\.verdict) == ["ok"])
    }

    @Test func `doctor names the program that uses the port of the API`() async throws {
        let port = try FreePorts.take()[0]
        let server = try await Program(
            "python3",
            ["-um", "http.server", "\(port)", "--bind", "127.0.0.1"],
            in: scratch
        )
        try await server.waitForLine("Serving HTTP")
        let broker = try await RunningBroker(in: scratch, configuration: "[api]\nport = \(port)\n")

        let findings = try await checks("api", of: broker)
        let finding = try #require(findings.first)

        #expect(
            findings.count == 1 && finding.detail.hasPrefix("python3") && finding.detail.contains("uses port \(port)")
        )
        #expect(finding.hint == "set another api.port in patchbay.toml, or api.tcp = false")
    }
}
