import TestSupport

/// Two hosts of a team with one phone, and its app.
struct SharedPhone {
    let app: SampleApp
    let team: RunningTeam
    /// The ID of the app at lab1 and that at lab2.
    let ids: [String]

    init(in scratch: ScratchFolder, network: TeamNetwork? = nil) async throws {
        app = try await SampleApp(in: scratch)
        let first = try await UsbmuxdFixture([Phones.one], in: scratch)
        let second = try await UsbmuxdFixture([Phones.one], in: scratch)
        team = try await RunningTeam(in: scratch, ownPhones: first, phones: second, probing: app.port, network: network)
        ids = [
            try await team.waitForApp(on: Phones.one, at: team.lab1),
            try await team.waitForApp(on: Phones.one, at: team.lab2),
        ]
    }

    /// Calls a changing tool through the broker's own cable.
    func tap(at broker: RunningBroker) async throws -> Program {
        let id = broker === team.lab1 ? ids[0] : ids[1]
        let call = try await broker.start("call", id, "tap_element", "element_id=buy")
        _ = try await call.exitStatus(within: .seconds(30))
        return call
    }
}
