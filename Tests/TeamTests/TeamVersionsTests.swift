import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import Team

/// The entries and answers of brokers of other versions.
@Suite(.timeLimit(.minutes(1)), .scratchFolder) struct TeamVersionsTests {
    /// The entries of a team on etcd, as a broker of the commit 516bca6a wrote them.
    private static let recorded = [
        "meta": #"{"schema":1,"team":"lab"}"#,
        "member/lab2": """
        {"addedAt":"2026-11-28T16:50:39.883Z","key":"W6HRRHHAV6VRRXVLBRTWOUKVE75TPA2B3UO7MMUSIYS5G6BYY2QQ","name":"lab2"}
        """,
        "host/lab2": """
        {"addresses":["127.0.0.1:19402"],"generation":1795884641311,"name":"lab2","since":"2026-11-28T16:50:41.223Z",\
        "version":"0.1.0"}
        """,
        "ep/lab2/web2": """
        {"app":"web2","approval":"approved","capabilities":[],"firstSeenAt":"2026-11-28T16:50:47.373Z","kind":"tcp",\
        "limits":["no MCP tools: use port_forward or patchbay forward"],"location":{},"name":"web2","routes":[{"address":\
        "127.0.0.1","app":"web2","approval":"approved","interfaceIndex":0,"port":19405,"via":"network"}],"sources":\
        ["config"],"state":"online"}
        """,
        "claim/endpoint-web2.lab2": """
        {"attempt":"1795884634398.1","createdAt":"2026-11-28T16:50:50.600Z","endpoint":"web2.lab2","holder":"user 0",\
        "holderKey":"uid:0","host":"lab2","lease":"l1","seconds":60}
        """,
    ]
    /// A member that no version has, as a later one may add.
    private static let addition = #""later":{"a":[1,"b"]},"#

    private let scratch = ScratchFolder.current

    @Test(arguments: ["", addition]) func `the entries of an older and of a newer broker are read`(addition: String)
        async throws
    {
        let clock = ManualClock()
        let store = TestStore(InMemoryTeamStore(clock: clock))
        for (key, value) in Self.recorded {
            let bytes = Array("{\(addition)\(value.dropFirst())".utf8)
            _ = try await store.inner.write([.put(key: TeamKey.root + key, value: bytes, sessionLease: nil)], if: nil)
        }
        if !addition.isEmpty {
            // An entry of a kind that this version does not know.
            let write = TeamStoreWrite.put(key: TeamKey.root + "later/lab2", value: [1], sessionLease: nil)
            _ = try await store.inner.write([write], if: nil)
        }
        let watcher = TeamWatcher(
            host: try Values.host("lab1"),
            team: Values.team,
            store: store,
            members: try await TeamMembers(in: scratch.path, logger: Values.logger),
            clock: clock,
            logger: Values.logger
        )
        try await withRunning([watcher]) {
            var endpoints: [Endpoint] = []
            for await event in watcher.events {
                if case .endpoint(let endpoint) = event { endpoints.append(endpoint) }
                if event == .stale(since: nil) { break }
            }
            let snapshot = watcher.snapshot
            #expect(endpoints.map(\.id.text) == ["web2.lab2"] && endpoints.first?.state == .online)
            #expect(snapshot.hosts.values.map(\.addresses) == [["127.0.0.1:19402"]])
            #expect(snapshot.members.keys.map(\.text) == ["lab2"] && snapshot.claims.count == 1)
            #expect(snapshot.unreadableKeys.isEmpty)
        }
    }

    @Test(arguments: ["", addition]) func `the answers of an older and of a newer authority are read`(addition: String)
        throws
    {
        let renewal = "{\(addition)\"certificate\":\"PEM\"}"
        #expect(try JSONCoding.decoder().decode(TeamRenewal.self, from: Data(renewal.utf8)).authority == nil)
        let member = try #require(Self.recorded["member/lab2"])
        let admission = """
            {\(addition)"team":"lab","certificate":"PEM","authority":"PEM","authorityHost":"lab1","etcd":\
            ["https://127.0.0.1:19403"],"members":[\(member)]}
            """
        let read = try JSONCoding.decoder().decode(TeamAdmission.self, from: Data(admission.utf8))
        #expect(read.members.map(\.name.text) == ["lab2"] && read.etcdAuthority == nil)
    }
}
