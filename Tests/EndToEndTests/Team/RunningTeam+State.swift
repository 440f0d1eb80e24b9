import FoundationEssentials
import Model
import TestSupport
import Testing

extension RunningTeam {
    /// Writes a claim with etcdctl and the certificate of a host. Its holder has the name "forger".
    ///
    /// `target` is the last part of the key; `host`, `endpoint` and `holderKey` are members of the claim.
    func forgeClaim(
        on target: String,
        as broker: RunningBroker,
        host: String,
        endpoint: String,
        device: UDID? = nil,
        holderKey: String
    ) async throws {
        let claim = TeamClaim(
            host: try #require(HostName(host)),
            endpoint: try #require(EndpointID(endpoint)),
            device: device,
            holder: SanitizedText("forger"),
            holderKey: holderKey,
            lease: "l9",
            seconds: 600,
            note: nil,
            createdAt: Date()
        )
        let json = String(decoding: try JSONCoding.encoder().encode(claim), as: UTF8.self)
        try await etcdctl(["put", "/patchbay/v1/claim/\(target)", json], as: broker)
    }

    /// Waits until a broker lists the only app of a phone that it reaches itself. Returns its ID on that host.
    func waitForApp(on phone: String, at broker: RunningBroker) async throws -> String {
        try await eventually("the app on \(phone) is listed") {
            try await broker.endpoints().first { endpoint in
                endpoint.id.host == nil && endpoint.location.udid?.text == phone && endpoint.state == .online
            }?.id.text
        }
    }
}

extension RunningBroker {
    /// The phones of `patchbay devices --json`.
    func devices() async throws -> [Device] {
        let json = try await ask("devices", "--json").joined()
        return try JSONCoding.decoder().decode(ListResponse<Device>.self, from: Data(json.utf8)).items
    }

    /// The leases of `patchbay leases --json`.
    func leases() async throws -> [Lease] {
        let json = try await ask("leases", "--json").joined()
        return try JSONCoding.decoder().decode(ListResponse<Lease>.self, from: Data(json.utf8)).items
    }

    /// The answer of `patchbay team status --json`.
    func teamStatus() async throws -> TeamStatus {
        let json = try await ask("team", "status", "--json").joined()
        return try JSONCoding.decoder().decode(TeamStatus.self, from: Data(json.utf8))
    }

    /// Runs a command that the broker has to refuse. Returns its output.
    func refused(_ arguments: String...) async throws -> String {
        let command = try await start(arguments)
        #expect(try await command.exitStatus(within: .seconds(30)) != .exited(0), "\(arguments): \(command.log)")
        return command.log
    }
}
