import Model
import Testing

@testable import Team

/// The problems of etcd servers in the status of the broker.
@Suite struct TeamRegistryStatusTests {
    private static let full = "memberID:10501334649042878790 alarm:NOSPACE "

    private func servers(_ problems: String?...) -> [TeamRegistryServer] {
        problems.enumerated().map { TeamRegistryServer(url: "https://10.0.0.\($0.offset):2379", problem: $0.element) }
    }

    @Test func `servers that work are no finding`() {
        #expect(SourceStatus.registry([]) == nil && SourceStatus.registry(servers(nil, nil, nil)) == nil)
    }

    @Test func `a full etcd is degraded, although it answers, and the next step is named`() throws {
        let source = try #require(SourceStatus.registry(servers(Self.full, nil, nil)))

        #expect(source.name == BrokerPart.team.rawValue && source.state == .missing && source.isDegraded)
        #expect(source.detail.contains("https://10.0.0.0:2379: memberID:10501334649042878790 alarm:NOSPACE"))
        #expect(source.hint?.contains("etcdctl alarm disarm") == true)
    }

    @Test func `one of three servers that fails leaves the team working in part`() throws {
        let source = try #require(SourceStatus.registry(servers(nil, "no answer", nil)))

        #expect(source.state == .ok && source.isDegraded && source.detail == "etcd https://10.0.0.1:2379: no answer")
        #expect(SourceStatus.registry(servers("a", "b"))?.state == .missing)
    }
}
