import FoundationEssentials
import Model
import Testing

@testable import patchbay

/// Every part of the broker that can be degraded, in `patchbay status` and `patchbay doctor`.
@Suite struct DegradedPartTests {
    private static func status(with part: BrokerPart?) -> BrokerStatus {
        var status = BrokerStatus(
            version: Version.text,
            pid: 7,
            startedAt: Date(timeIntervalSince1970: 1_795_000_000),
            revision: 1,
            endpoints: [:],
            devices: 0,
            tunnels: 0,
            sources: []
        )
        switch part {
        case .access: status.findings = ["a finding"]
        case .state: status.storage = ["endpoints.json could not be written"]
        case .remote:
            status.remote = RemoteStatus(
                state: .waiting,
                address: "10.0.0.7:7283",
                configured: true,
                pin: nil,
                reachable: [],
                connections: 0,
                refusedHandshakes: 0,
                problem: "the address is in use"
            )
        case .bonjour, .usbmuxd, .adb, .debugLink, .usbmuxServer, .list, .team, .api:
            status.sources = [
                SourceStatus(name: part?.rawValue ?? "", state: .missing, detail: "it is missing", hint: "start it")
            ]
        case nil:
            status.sources = BrokerPart.allCases.map { SourceStatus(name: $0.rawValue, state: .ok, detail: "works") }
        }
        return status
    }

    @Test(arguments: BrokerPart.allCases) func `status and doctor name each degraded part`(part: BrokerPart) {
        let status = Self.status(with: part)

        #expect(status.degradedParts == [part])
        let text = StatusCommand.text(status, socket: "/x", isColoured: false)
        #expect(text.contains("problem: \(part.rawValue): "), "\(text)")
        let checks = BrokerCheck.parts(of: status).filter { $0.verdict != .ok }
        #expect(checks.map(\.name) == [part.rawValue])
    }

    @Test func `a broker without Avahi and usbmuxd is healthy`() {
        #expect(Self.status(with: .usbmuxd).unhealthyParts.isEmpty)
        #expect(Self.status(with: .bonjour).unhealthyParts.isEmpty)
        #expect(Self.status(with: .team).unhealthyParts == [.team])
    }

    @Test func `a source that works in part is degraded, and one that is off or works is not`() {
        #expect(Self.status(with: nil).degradedParts.isEmpty)
        #expect(SourceStatus(name: "list", state: .ok, detail: "", hint: "x").isDegraded)
        #expect(SourceStatus(name: "usbmuxd", state: .starting, detail: "").isDegraded)
        #expect(!SourceStatus(name: "usbmuxd", state: .off, detail: "", hint: "x").isDegraded)
    }
}
