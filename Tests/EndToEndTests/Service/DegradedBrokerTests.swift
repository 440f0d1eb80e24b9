import FoundationEssentials
import Model
import TestSupport
import Testing

/// Every part of a running broker that can be degraded, in every place that names the parts.
@Suite(.needs(.openssl), .scratchFolder) struct DegradedBrokerTests {
    private let scratch = ScratchFolder.current

    /// The parts that do not work here: there is no Avahi, no usbmuxd, no etcd, no such address, and the audit log is
    /// damaged.
    private static let degraded: Set<BrokerPart> = [.bonjour, .usbmuxd, .team, .access, .remote]
    /// The parts that a machine may lack.
    private static let absent: Set<BrokerPart> = [.bonjour, .usbmuxd]

    private struct Health: Decodable {
        let status: String
        let degraded: [BrokerPart]
    }

    private func broker(in scratch: ScratchFolder) async throws -> RunningBroker {
        let ports = try FreePorts.take(3)
        let broker = try await RunningBroker(
            in: scratch,
            configuration: """
                [api]
                tcp = false
                remote = "192.0.2.9:\(ports[0])"
                [team]
                listen = "127.0.0.1:\(ports[1])"
                addresses = ["127.0.0.1"]
                """
        )
        let etcd = "https://127.0.0.1:\(ports[2])"
        _ = try await broker.start("team", "init", "lab", "--host", "lab1", "--wait", "0s", "--etcd", etcd).exitStatus()
        let log = "\(broker.state)/audit.jsonl"
        let entries = try Data(contentsOf: URL(filePath: log))
        try (entries + Data("damaged\n".utf8)).write(to: URL(filePath: log))
        try await broker.restart()
        return broker
    }

    private func fetch(_ path: String, _ broker: RunningBroker, in scratch: ScratchFolder) async throws -> [String] {
        let words = ["-sS", "-f", "--unix-socket", broker.socket, "http://localhost\(path)"]
        return try await Program.run("curl", words, in: scratch)
    }

    @Test func `status, doctor, health and the metrics name the same degraded parts`() async throws {
        let broker = try await broker(in: scratch)
        let lines = BrokerPart.allCases.map {
            "patchbay_degraded{part=\"\($0.rawValue)\"} \(Self.degraded.contains($0) ? 1 : 0)"
        }
        try await eventually("the metrics have every part") {
            let metrics = try await fetch("/metrics", broker, in: scratch)
            return Set(metrics.filter { $0.hasPrefix("patchbay_degraded{") }) == Set(lines)
        }

        // The answer of `/health` is up to a second old.
        try await eventually("health names the parts that no machine lacks") {
            let text = try await fetch("/health", broker, in: scratch).joined()
            let health = try JSONDecoder().decode(Health.self, from: Data(text.utf8))
            return health.status == "degraded" && Set(health.degraded) == Self.degraded.subtracting(Self.absent)
        }

        let json = try await broker.ask("status", "--json").joined(separator: "\n")
        let status = try JSONCoding.decoder().decode(BrokerStatus.self, from: Data(json.utf8))
        #expect(Set(status.degradedParts) == Self.degraded)
        let text = try await broker.ask("status")
        let checks = try await DoctorReport(of: broker).checks
        for part in BrokerPart.allCases {
            let isDegraded = Self.degraded.contains(part)
            let asleep = "usbmuxd    missing: "
            let isNamed = text.contains {
                $0.hasPrefix("warning: \(part.rawValue): ") || part == .usbmuxd && $0.hasPrefix(asleep)
            }
            #expect(isNamed == isDegraded, "\(text)")
            let verdicts = checks.filter { $0.name == part.rawValue }.map(\.verdict)
            #expect(!isDegraded || !verdicts.isEmpty, "\(part): \(checks)")
            // doctor excuses a part that this machine lacks.
            guard !Self.absent.contains(part) else { continue }
            #expect(verdicts.contains { $0 != "ok" } == isDegraded, "\(part): \(checks)")
        }
    }
}
