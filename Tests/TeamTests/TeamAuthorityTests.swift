import Model
import Team
import Testing

@Suite struct TeamAuthorityTests {
    private let store = InMemoryTeamStore()
    private var authority: TeamAuthority { TeamAuthority(store: store) }

    @Test func `a registry belongs to one team`() async throws {
        try await authority.create(Values.team)
        try await authority.create(Values.team)

        await #expect(throws: TeamError.wrongTeam(expected: SanitizedText("other"), found: Values.team)) {
            try await authority.create(SanitizedText("other"))
        }
    }

    @Test func `a name belongs to one key`() async throws {
        try await authority.add(try Values.member("lab2"))
        try await authority.add(try Values.member("lab2"))

        await #expect(throws: TeamError.nameTaken(try Values.host("lab2"))) {
            try await authority.add(try Values.member("lab2", key: 2))
        }
        #expect(try await authority.members() == [try Values.member("lab2")])
    }

    @Test func `a removal deletes the member and the entries of its host, and no others`() async throws {
        let (lab2, lab20) = (try Values.host("lab2"), try Values.host("lab20"))
        try await authority.add(try Values.member("lab2"))
        try await authority.add(try Values.member("lab20"))
        for host in [lab2, lab20] {
            let keys: [TeamKey] = [
                .host(host), .endpoint(try Values.id("shop"), on: host), .device(try Values.udid(1), .usb, on: host),
            ]
            _ = try await store.write(keys.map { .put(key: $0.text, value: [], lease: nil) }, if: nil)
        }

        try await authority.remove(lab2)

        let keys = try await store.list(TeamKey.root).entries.map(\.key)
        #expect(keys.count == 4 && keys.allSatisfy { $0.contains("lab20") })
    }
}
