import FoundationEssentials
import SwiftProtobuf
@testable import Team
import Testing

/// The state of a watch, without a server.
@Suite struct EtcdWatchTests {
    private static func put(_ key: String, _ revision: Int64) -> EtcdEvent {
        .with {
            $0.kv.key = Data(key.utf8)
            $0.kv.value = Data([1])
            $0.kv.modRevision = revision
        }
    }

    private static func delete(_ key: String, _ revision: Int64) -> EtcdEvent {
        var event = put(key, revision)
        event.type = .delete
        return event
    }

    private static func response(_ events: EtcdEvent...) -> EtcdWatchResponse { .with { $0.events = events } }

    @Test func `a watch begins after the revision of the list`() {
        #expect(EtcdWatch(prefix: "/a/", after: 41).creation.createRequest.startRevision == 42)
    }

    @Test(arguments: [Int64.max, -1]) func `a list needs a revision that a watch can follow`(revision: Int64) {
        let response = EtcdRangeResponse.with { $0.header.revision = revision }
        #expect(throws: TeamStoreError.failed(reason: "etcd sent the revision \(revision)")) { try response.list() }
    }

    @Test func `the events of a response are grouped by revision`() throws {
        var watch = EtcdWatch(prefix: "/", after: 4)
        let changes = try watch.receive(Self.response(Self.put("/a", 5), Self.delete("/b", 5), Self.put("/c", 7)))
        #expect(changes.map(\.revision) == [5, 7])
        #expect(changes[0].changes == [.put(TeamStoreEntry(key: "/a", value: [1])), .delete(key: "/b")])
    }

    @Test func `a revision is passed on once`() throws {
        var watch = EtcdWatch(prefix: "/", after: 4)
        #expect(try watch.receive(Self.response(Self.put("/a", 5))).count == 1)
        #expect(try watch.receive(Self.response(Self.put("/a", 5), Self.put("/a", 6))).map(\.revision) == [6])
    }

    @Test func `a compacted revision ends the watch`() {
        var watch = EtcdWatch(prefix: "/", after: 4)
        #expect(throws: TeamStoreError.compacted) {
            try watch.receive(
                .with {
                    $0.canceled = true
                    $0.compactRevision = 9
                }
            )
        }
    }

    @Test func `a watch without permission is denied`() {
        var watch = EtcdWatch(prefix: "/", after: 4)
        let reason = "etcdserver: permission denied"
        #expect(throws: TeamStoreError.denied(reason: reason)) {
            try watch.receive(
                .with {
                    $0.canceled = true
                    $0.cancelReason = reason
                }
            )
        }
    }

    @Test func `a server that does not answer ends the watch`() throws {
        var watch = EtcdWatch(prefix: "/", after: 4)
        for _ in 0..<EtcdWatch.silenceLimit { _ = try watch.progressRequest() }
        #expect(throws: TeamStoreError.self) { try watch.progressRequest() }
    }

    @Test func `an answer to a progress request keeps the watch`() throws {
        var watch = EtcdWatch(prefix: "/", after: 4)
        for _ in 0..<5 * EtcdWatch.silenceLimit {
            _ = try watch.progressRequest()
            #expect(try watch.receive(.with { $0.header.revision = 4 }).isEmpty)
        }
    }

    @Test func `a server with another history is listed again`() throws {
        var watch = EtcdWatch(prefix: "/", after: 400)
        #expect(
            try watch.receive(
                .with {
                    $0.created = true
                    $0.header.revision = 3
                }
            ).isEmpty
        )
        _ = try watch.progressRequest()
        #expect(throws: TeamStoreError.compacted) { try watch.receive(.with { $0.header.revision = 3 }) }
    }
}
