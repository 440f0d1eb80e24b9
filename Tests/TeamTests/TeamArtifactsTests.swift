import AccessControl
import Apps
import Client
import Model
import NIOHTTP1
import Samples
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Team

/// Large results of calls at other hosts.
@Suite struct TeamArtifactsTests {
    /// A broker without artifacts of its own.
    private struct NoArtifacts: ArtifactReader {
        func artifact(_ sha: String, for principal: Principal) async -> Artifact? { nil }
    }

    /// The brokers of the other hosts. `lab2` has the artifact, `forger` sends other bytes for every name, and `silent`
    /// never answers.
    private final class Hosts: HostConnector {
        private let sent = Mutex<[(host: HostName, request: OutgoingRequest)]>([])

        var requests: [(host: HostName, request: OutgoingRequest)] { sent.withLock { $0 } }

        func send(
            _ request: OutgoingRequest,
            to host: HostName,
            within timeout: Duration
        ) async throws -> any HostResponse {
            sent.withLock { $0.append((host, request)) }
            switch host.text {
            case "lab2": return HostAnswer(200, "picture", type: "image/png")
            case "lab4": return HostAnswer(200, "picture", type: "text/html; charset=\u{1B}")
            case "forger": return HostAnswer(200, "<script>", type: "text/html")
            case "silent": return try await Promise<HostAnswer>().value()
            default: return HostAnswer(404, "{}", type: "application/problem+json")
            }
        }
    }

    /// The SHA-256 of `picture`.
    private static let sha = "2cea274d0bedc39ec4ab6ba9e59ec889e3ed6fb56a1cf088a64d9b383378dc97"

    private let clock = ManualClock()
    private let hosts = Hosts()
    private let proxy: TeamProxy
    private let artifacts: TeamArtifacts
    private let lab2: HostName
    private let lab3: HostName

    init() throws {
        proxy = TeamProxy(hosts)
        artifacts = TeamArtifacts(NoArtifacts(), proxy: proxy, clock: clock)
        (lab2, lab3) = ("lab2", "lab3")
    }

    private func client(_ uid: UInt32) -> Principal {
        Principal(
            .localUser,
            source: .unix(uid: uid),
            actor: .process(uid: uid, pid: 1, executable: SanitizedText("agent")),
            user: uid
        )
    }

    private func use(_ hosts: HostName..., by principal: Principal) {
        for host in hosts { proxy.usage.record(principal, principal.caller(at: host), at: host) }
    }

    @Test func `a large result is read at the hosts that the same client called, as that client`() async throws {
        let principal = client(7)
        use(lab2, lab3, by: principal)

        let artifact = await artifacts.artifact(Self.sha, for: principal)

        #expect(artifact == Artifact(bytes: Array("picture".utf8), mimeType: "image/png"))
        let last = try #require(hosts.requests.first { $0.host == lab2 }).request
        #expect(hosts.requests.allSatisfy { $0.host == lab2 || $0.host == lab3 })
        #expect(last.method == .GET && last.target == "/v1/artifacts/\(Self.sha)")
        let caller = last.headers.first { $0.name == TeamCaller.header }?.value
        #expect(caller == principal.caller(at: lab2).headerValue && caller != nil)
    }

    @Test func `bytes of a host that are not the requested artifact are refused`() async throws {
        let forger: HostName = "forger"
        use(forger, by: client(7))

        #expect(await artifacts.artifact(Self.sha, for: client(7)) == nil)
        #expect(hosts.requests.map(\.host) == [forger])

        // The next client of the same host, and the next host, are asked all the same.
        use(lab2, forger, by: client(8))
        #expect(await artifacts.artifact(Self.sha, for: .broker)?.bytes == Array("picture".utf8))
    }

    @Test func `a media type that an app cannot choose is replaced`() async throws {
        use("lab4", by: client(7))

        #expect(await artifacts.artifact(Self.sha, for: client(7))?.mimeType == "application/octet-stream")
    }

    @Test func `a host that never answers does not delay the artifact of another host`() async throws {
        use(lab2, "silent", by: client(7))

        #expect(await artifacts.artifact(Self.sha, for: client(7)) != nil)
    }

    @Test func `the wait for a host ends after 30 seconds, also if several clients used it`() async throws {
        let silent: HostName = "silent"
        for uid in 7...9 { use(silent, by: client(UInt32(uid))) }

        async let artifact = artifacts.artifact(Self.sha, for: .broker)
        await clock.waitForSleeper()
        clock.advance(by: .seconds(30))

        #expect(await artifact == nil)
        #expect(hosts.requests.count == 1)
    }

    @Test func `no host is asked for a client that has not called it, nor for an invalid name`() async {
        use(lab2, by: client(7))

        #expect(await artifacts.artifact(Self.sha, for: client(8)) == nil)
        for sha in ["", "none", "../\(Self.sha)", String(Self.sha.dropLast()) + "/"] {
            #expect(await artifacts.artifact(sha, for: client(7)) == nil)
        }
        #expect(hosts.requests.isEmpty)
    }

    @Test func `an owner reads the results of all clients`() async {
        use(lab2, by: client(7))

        #expect(await artifacts.artifact(Self.sha, for: .broker) != nil)
    }

    @Test func `a client of another host is not passed on to a third one`() async {
        let member = Principal(
            .member(MemberClient(host: lab3, caller: client(7).caller(at: lab2))),
            source: .remote(address: "10.0.0.3"),
            actor: .member(host: lab3, client: SanitizedText("user 7"))
        )
        use(lab2, by: member)

        #expect(await artifacts.artifact(Self.sha, for: member) == nil)
        #expect(hosts.requests.isEmpty)
    }
}
