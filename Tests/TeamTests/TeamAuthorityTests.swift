import AccessControl
import Model
import Testing

@testable import Team

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

    @Test func `a removed key is replaced, also if its entry has returned`() async throws {
        let old = try Values.member("lab1")
        let new = try Values.member("lab1", key: 9)
        try await authority.add(old)

        await #expect(throws: TeamError.nameTaken(new.name)) {
            try await authority.add(new, replacing: [try Values.member("lab2").key])
        }
        try await authority.add(new, replacing: [old.key])
        #expect(try await authority.members() == [new])
    }

    @Test func `of all claims, only those of running hosts outlast a removal`() async throws {
        let hosts = ["lab1", "lab2", "lab3"]
        // The broker of lab2 does not run. The removed host lab3 has written its entry again.
        for host in ["lab1", "lab3"] {
            let key = TeamKey.host(try Values.host(host)).text
            _ = try await store.write([.put(key: key, value: [], sessionLease: nil)], if: nil)
        }
        for (number, host) in hosts.enumerated() {
            let key = TeamKey.claim(.device(try Values.udid(number)))
            let claim = try TeamCoding.bytes(of: try Values.claim(host, of: "shop.\(host)"), for: key)
            _ = try await store.write([.put(key: key.text, value: claim, sessionLease: nil)], if: nil)
        }
        let unreadable = TeamKey.claim(.device(try Values.udid(hosts.count))).text
        _ = try await store.write([.put(key: unreadable, value: [1], sessionLease: nil)], if: nil)

        try await authority.removeClaims(of: try Values.host("lab3"))

        let keys = try await store.list(TeamKey.claims).entries.map(\.key)
        #expect(keys == [TeamKey.claim(.device(try Values.udid(0))).text])
    }

    @Test func `a removal deletes the member and the entries of its host, and no others`() async throws {
        let (lab2, lab20) = (try Values.host("lab2"), try Values.host("lab20"))
        try await authority.add(try Values.member("lab2"))
        try await authority.add(try Values.member("lab20"))
        for host in [lab2, lab20] {
            let keys: [TeamKey] = [
                .host(host), .endpoint(try Values.id("shop"), on: host), .device(try Values.udid(1), .usb, on: host),
            ]
            _ = try await store.write(keys.map { .put(key: $0.text, value: [], sessionLease: nil) }, if: nil)
        }

        try await authority.remove(lab2)

        let keys = try await store.list(TeamKey.root).entries.map(\.key)
        #expect(keys.count == 4 && keys.allSatisfy { $0.contains("lab20") })
    }
}
