import FoundationEssentials
import Model
import Testing

@testable import Team

/// The problems of etcd servers in the status of the broker.
@Suite struct TeamRegistryStatusTests {
    private static let full = "memberID:10501334649042878790 alarm:NOSPACE "

    private func servers(_ problems: String?...) -> [TeamServerHealth] {
        problems.enumerated().map { TeamServerHealth(url: "https://10.0.0.\($0.offset):2379", problem: $0.element) }
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

    private func server(_ number: Int, skew: Int?) -> TeamServerHealth {
        TeamServerHealth(url: "https://10.0.0.\(number):2379", problem: nil, clockSkew: skew)
    }

    @Test func `a wrong clock is a finding, and is this host's if most servers agree with each other`() throws {
        let own = try #require(
            SourceStatus.registry([server(1, skew: -600), server(2, skew: -601), server(3, skew: nil)])
        )
        #expect(own.state == .ok && own.isDegraded)
        #expect(own.detail == "the clock of this host is 600 s behind that of https://10.0.0.1:2379")
        #expect(own.hint == "timedatectl, here and there")

        let other = try #require(
            SourceStatus.registry([server(1, skew: nil), server(2, skew: 30), server(3, skew: nil)])
        )
        #expect(other.detail == "the clock of this host is 30 s ahead of that of https://10.0.0.2:2379")
        #expect(other.hint == "timedatectl, on that machine")
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:49:07 GMT", 30),
        ("Sun, 06 Nov 1994 08:59:37 GMT", -600), ("Mon, 07 Nov 1994 08:49:37 GMT", -86_400),
        ("Sun, 06 Nov 1994 08:49:34 GMT", nil), ("Sunday, 06-Nov-94 08:49:37 GMT", nil), ("", nil),
        ("Sun, 06 Nov 99999999 08:49:37 GMT", nil),
    ])
    func `the clock of a server is compared within its whole seconds`(date: String, skew: Int?) {
        let now = Date(timeIntervalSince1970: 784_111_777.5)
        #expect(EtcdClock(sentAt: now, receivedAt: now).skew(to: date) == skew)
    }

    @Test func `a slow answer is no wrong clock`() {
        let sent = Date(timeIntervalSince1970: 784_111_777)
        let clock = EtcdClock(sentAt: sent, receivedAt: sent + 20)
        #expect(clock.skew(to: "Sun, 06 Nov 1994 08:49:47 GMT") == nil)
    }
}
