import AccessControl
@testable import Team
import FoundationEssentials
import Logging
import Model
import Samples
import TestSupport
import Testing

/// The claims of several hosts on a real etcd.
@Suite(.needs(.etcd), .timeLimit(.minutes(6)), .scratchFolder) struct EtcdClaimTests {
    private let scratch = ScratchFolder.current

    /// The part of one broker: its own client, session and claims.
    private struct Contender: Sendable {
        let host: HostName
        let session: TeamSession
        let claims: TeamClaims

        init(_ name: String, _ cluster: EtcdCluster) async throws {
            guard let host = HostName(name) else { throw TestSupportError("\(name) is no host name") }
            self.host = host
            session = TeamSession(
                store: try await cluster.store(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            )
            claims = TeamClaims(host: host, session: session)
        }

        /// Tries to claim a phone once.
        ///
        /// - Returns: The name of this host; nil if another host has the claim.
        func claim(_ phone: LeaseTarget) async throws -> HostName? {
            let claim = try Values.leaseClaim(on: phone)
            do throws(LeaseClaimError) {
                try await claims.acquire(claim)
                return host
            } catch {
                guard case .held(let other) = error, other.host != host else { throw error }
                return nil
            }
        }
    }

    private static let phoneCount = 1_000
    /// The number of phones that are claimed at the same time.
    private static let laneCount = 10

    private func phone(_ number: Int) throws -> LeaseTarget {
        let digits = String(number)
        guard let udid = UDID(String(repeating: "0", count: 40 - digits.count) + digits) else {
            throw TestSupportError("\(number) is no UDID")
        }
        return .device(udid)
    }

    /// Writes the entry of a member. Hosts replace the claim of a host that is no member.
    private func add(_ host: HostName, to store: EtcdStore) async throws {
        guard let key = KeyPin(digest: Array(repeating: 0, count: KeyPin.byteCount)) else {
            throw TestSupportError("no key")
        }
        let member = TeamMember(name: host, key: key, addedAt: Date(timeIntervalSince1970: 0))
        let value = try TeamCoding.bytes(of: member, for: .member(host))
        #expect(try await store.write([.put(key: TeamKey.member(host).text, value: value, sessionLease: nil)], if: nil))
    }

    /// Lets all contenders claim a phone at once.
    ///
    /// - Returns: The winners.
    private func winners(of phone: LeaseTarget, among contenders: [Contender]) async throws -> [HostName] {
        try await withThrowingTaskGroup(of: HostName?.self) { group in
            for contender in contenders { group.addTask { try await contender.claim(phone) } }
            var winners: [HostName] = []
            for try await winner in group { if let winner { winners.append(winner) } }
            return winners
        }
    }

    /// Runs the sessions and claims of the contenders during the body, from their first leases in the registry on.
    private func running(_ contenders: [Contender], _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for contender in contenders {
                group.addTask { try await contender.session.run() }
                group.addTask { try await contender.claims.run() }
            }
            defer { group.cancelAll() }
            try await eventually("every session has a lease") {
                contenders.allSatisfy { $0.session.currentLease != nil }
            }
            try await body()
        }
    }

    @Test func `of ten hosts that claim a phone at once exactly one succeeds, for each of 1,000 phones`() async throws {
        let cluster = try await EtcdCluster(in: scratch)
        let store = try await cluster.store()
        var contenders: [Contender] = []
        for number in 0..<10 {
            let contender = try await Contender("lab\(number)", cluster)
            try await add(contender.host, to: store)
            contenders.append(contender)
        }
        let hosts = contenders
        try await running(hosts) {
            let winners = try await withThrowingTaskGroup(of: [(LeaseTarget, [HostName])].self) { group in
                for lane in 0..<Self.laneCount {
                    group.addTask {
                        var winners: [(LeaseTarget, [HostName])] = []
                        for number in stride(from: lane, to: Self.phoneCount, by: Self.laneCount) {
                            let phone = try phone(number)
                            winners.append((phone, try await self.winners(of: phone, among: hosts)))
                        }
                        return winners
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            var owners: [String: HostName] = [:]
            for entry in try await store.list(TeamKey.claims).entries {
                owners[entry.key] = TeamCoding.value(TeamClaim.self, from: entry.value)?.host
            }

            #expect(winners.count == Self.phoneCount && owners.count == Self.phoneCount)
            for (phone, hosts) in winners {
                #expect(hosts.count == 1, "\(phone)")
                #expect(hosts.first == owners[TeamKey.claim(phone).text], "\(phone)")
            }
        }
    }
}
