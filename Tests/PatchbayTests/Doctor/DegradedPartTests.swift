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

    @Test(arguments: BrokerPart.allCases) func `status and doctor name each degraded part`(part: BrokerPart) throws {
        let status = Self.status(with: part)

        #expect(status.degradedParts == [part])
        let severity = try #require(status.problems.first?.severity)
        let text = StatusCommand.text(status, problems: status.problems, socket: "/x", isColoured: false)
        let line = severity == .information ? "usbmuxd    missing: " : "\(severity.rawValue): \(part.rawValue): "
        #expect(text.contains(line), "\(text)")
        #expect(BrokerCheck.parts(of: status).map(\.name).contains(part.rawValue))
    }

    @Test(arguments: BrokerFact.allCases) func `a fact has one weight in status and in doctor`(fact: BrokerFact) {
        let problem = BrokerProblem("x", fact, subject: "part", text: "a fact", hint: "patchbay list")
        let text = StatusCommand.text(Self.status(with: nil), problems: [problem], socket: "/x", isColoured: false)
        let check = Check(problem)

        switch fact.severity {
        case .problem: #expect(check.verdict == .fail && text.hasPrefix("problem: part: a fact\ntry: patchbay list"))
        case .warning: #expect(check.verdict == .warn && text.hasPrefix("warning: part: a fact\ntry: patchbay list"))
        case .information: #expect(check.verdict == .ok && check.hint == nil && text.hasPrefix("broker "))
        }
    }

    @Test(
        arguments: [
            ("usbmuxd", .missing, "plug in a phone", BrokerFact.usbmuxdAsleep),
            ("usbmuxd", .starting, "sudo chmod 0666 /var/run/usbmuxd", .sourceDegraded),
            ("usbmuxd", .starting, nil, .sourceStarting), ("bonjour", .missing, "x", .sourceDegraded),
            ("list", .ok, "x", .sourceDegraded), ("usbmuxd", .ok, nil, nil), ("adb", .off, "x", nil),
        ] as [(String, SourceStatus.State, String?, BrokerFact?)]
    )
    func `the state of a source decides its fact`(
        name: String,
        state: SourceStatus.State,
        hint: String?,
        fact: BrokerFact?
    ) {
        #expect(SourceStatus(name: name, state: state, detail: "", hint: hint).fact == fact)
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
