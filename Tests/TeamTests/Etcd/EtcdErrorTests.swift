@testable import Team
import Testing

@Suite struct EtcdErrorTests {
    private static let noLeader = EtcdError.status(GRPCStatus(code: .unavailable, message: "etcdserver: no leader"))
    private static let interrupted = EtcdError.interrupted(reason: "lost")
    private static let notConnected = EtcdError.notConnected(reason: "refused")
    private static let refused = EtcdError.refused(reason: "no")
    private static let denied = EtcdError.status(
        GRPCStatus(code: .permissionDenied, message: "etcdserver: permission denied")
    )

    @Test(arguments: [
        (5, "etcdserver: requested lease not found", TeamStoreError.sessionLeaseEnded),
        (11, "etcdserver: mvcc: required revision has been compacted", .compacted),
        (7, "etcdserver: permission denied", .denied(reason: "etcdserver: permission denied")),
        (14, "etcdserver: request timed out", .unreachable(reason: "etcdserver: request timed out")),
        (8, "etcdserver: too many requests", .unreachable(reason: "etcdserver: too many requests")),
        (8, "etcdserver: mvcc: database space exceeded", .failed(reason: "etcdserver: mvcc: database space exceeded")),
        (2, "", .failed(reason: "etcd answered with the gRPC status 2")),
    ])
    func `each status of etcd becomes one error`(code: Int, message: String, error: TeamStoreError) {
        let status = GRPCStatus(code: GRPCStatus.Code(rawValue: code), message: message)
        #expect(EtcdError.status(status).asTeamStoreError == error)
    }

    @Test func `a connection that fails makes the store unreachable`() {
        #expect(Self.notConnected.asTeamStoreError == .unreachable(reason: "refused"))
        #expect(Self.interrupted.asTeamStoreError == .unreachable(reason: "lost"))
        #expect(Self.refused.asTeamStoreError == .denied(reason: "no"))
    }

    @Test func `a write is repeated only if the server has not executed it`() {
        var write = EtcdRetry(limit: .seconds(3), isRepeatable: false, endpointCount: 3)
        #expect(write.pause(after: Self.notConnected, elapsed: .zero) == .zero)
        #expect(write.pause(after: Self.noLeader, elapsed: .zero) == .zero)
        #expect(write.pause(after: Self.interrupted, elapsed: .zero) == nil)
    }

    @Test func `a read is repeated until its time is over, with a pause after the last server`() {
        var read = EtcdRetry(limit: .seconds(3), isRepeatable: true, endpointCount: 2)
        #expect(read.pause(after: Self.interrupted, elapsed: .zero) == .zero)
        let pause = read.pause(after: Self.interrupted, elapsed: .seconds(1))
        #expect(pause.map { $0 > .zero } == true)
        #expect(read.pause(after: Self.interrupted, elapsed: .seconds(3)) == nil)
    }

    @Test(arguments: ["404", "429", "500", "502", "503", "504"])
    func `a server that answers with an HTTP error is left, and the next server gets the read`(status: String) {
        let error = EtcdError.httpStatus(status)
        var read = EtcdRetry(limit: .seconds(3), isRepeatable: true, endpointCount: 2)
        #expect(error.isTransient)
        #expect(read.pause(after: error, elapsed: .zero) == .zero)
        #expect(error.asTeamStoreError == .unreachable(reason: "the server answered with HTTP status \(status)"))
    }

    @Test(arguments: [("404", true), ("429", true), ("408", false), ("499", false), ("502", false), ("503", false)])
    func `the next server gets a write only if a proxy has refused it`(status: String, isRepeated: Bool) {
        var write = EtcdRetry(limit: .seconds(3), isRepeatable: false, endpointCount: 2)
        let pause = write.pause(after: .httpStatus(status), elapsed: .zero)
        #expect(pause == (isRepeated ? .zero : nil))
    }

    @Test func `a refusal is not repeated`() {
        var read = EtcdRetry(limit: .seconds(3), isRepeatable: true, endpointCount: 1)
        #expect(read.pause(after: Self.denied, elapsed: .zero) == nil)
    }

    @Test(arguments: 1...3) func `a refused certificate is sent to every server once`(count: Int) {
        var write = EtcdRetry(limit: .seconds(3), isRepeatable: false, endpointCount: count)
        for _ in 1..<count { #expect(write.pause(after: Self.refused, elapsed: .zero) == .zero) }
        #expect(write.pause(after: Self.refused, elapsed: .zero) == nil)
    }

    @Test func `a server that refuses the certificate does not end a call while others do not answer`() {
        var read = EtcdRetry(limit: .seconds(3), isRepeatable: true, endpointCount: 2)
        for _ in 0..<3 {
            #expect(read.pause(after: Self.notConnected, elapsed: .zero) != nil)
            #expect(read.pause(after: Self.refused, elapsed: .zero) != nil)
        }
        #expect(read.pause(after: Self.refused, elapsed: .zero) == nil)
    }

    @Test(arguments: [
        ("https://etcd1.lab", "etcd1.lab", 2379), ("https://10.0.0.5:4001/", "10.0.0.5", 4001),
        ("https://[fd00::1]:2379", "fd00::1", 2379), ("https://[::1]", "::1", 2379),
    ])
    func `an endpoint is a URL with https`(text: String, host: String, port: UInt16) {
        #expect(EtcdEndpoint(text) == EtcdEndpoint(host: host, port: port))
    }

    @Test(arguments: [
        "http://a:1", "https://", "https://a:0", "https://a:x", "https://a/b", "https://:1", "a:2379", "https://u@a",
        "https://[::1", "https://a b",
    ])
    func `other text is not an endpoint`(text: String) { #expect(EtcdEndpoint(text) == nil) }

    @Test func `an endpoint with an IPv6 address has brackets in its text`() {
        #expect(EtcdEndpoint(host: "fd00::1", port: 1).description == "https://[fd00::1]:1")
    }

    @Test func `a prefix is the range up to the next text of its length`() {
        #expect(Array(EtcdKeyRange(prefix: "/a/").end) == Array("/a0".utf8))
        #expect(Array(EtcdKeyRange(prefix: "").key) == [0])
        #expect(Array(EtcdKeyRange(prefix: "").end) == [0])
        #expect(EtcdKeyRange(key: "/a/").end.isEmpty)
    }
}
