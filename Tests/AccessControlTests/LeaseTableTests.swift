import Model
import TestSupport
import Testing

@testable import AccessControl

/// The rules of leases, without a clock.
@Suite struct LeaseTableTests {
    private static let shop = EndpointID(app: SanitizedText("com.example.shop"), location: "phone")
    private static let phone = LeaseTarget.endpoint(shop)
    private static let anna = LeaseHolder(key: "grant:anna", name: SanitizedText("anna"), isAgent: true)
    private static let ben = LeaseHolder(key: "grant:ben", name: SanitizedText("ben"), isAgent: true)
    private static let cleo = LeaseHolder(key: "grant:cleo", name: SanitizedText("cleo"), isAgent: true)
    private static let person = LeaseHolder(key: "uid:1", name: SanitizedText("user 1"), isAgent: false)

    private static func request(_ ticket: UInt64, _ holder: LeaseHolder, seconds: Int = 10) -> LeaseRequest {
        LeaseRequest(
            ticket: ticket,
            target: phone,
            endpoint: shop,
            holder: holder,
            length: .seconds(seconds),
            note: nil
        )
    }

    @Test func `clients get the lease in the order of their requests`() throws {
        let table = LeaseTableReference()
        for (ticket, holder) in [(1, Self.anna), (2, Self.ben), (3, Self.cleo)] as [(UInt64, LeaseHolder)] {
            try table.request(Self.request(ticket, holder), at: .zero)
        }
        var granted = table.takeEffects().granted
        for second in [10, 20] {
            table.expire(at: .seconds(second))
            granted += table.takeEffects().granted
        }

        #expect(granted == [1, 2, 3])
        #expect(table.deadline == .seconds(30))
    }

    @Test func `a lease is granted after the changing calls of other clients have ended`() throws {
        let table = LeaseTableReference()
        #expect(table.beginCall(on: Self.phone, by: Self.ben, at: .zero) == true)
        #expect(table.beginCall(on: Self.phone, by: Self.ben, at: .zero) == true)
        try table.request(Self.request(1, Self.anna), at: .seconds(1))

        #expect(table.takeEffects().granted.isEmpty)
        #expect(table.leases.isEmpty)
        // Neither a further call of the other client nor one of the next holder begins meanwhile.
        #expect(table.beginCall(on: Self.phone, by: Self.ben, at: .seconds(2)) == false)
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(2)) == false)
        table.endCall(on: Self.phone, by: Self.ben, at: .seconds(3))
        #expect(table.takeEffects().granted.isEmpty)
        table.endCall(on: Self.phone, by: Self.ben, at: .seconds(4))

        #expect(table.takeEffects().granted == [1])
        #expect(table.deadline == .seconds(14))
    }

    @Test func `the own calls of a client do not delay its lease`() throws {
        let table = LeaseTableReference()
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .zero) == true)

        try table.request(Self.request(1, Self.anna), at: .zero)

        #expect(table.takeEffects().granted == [1])
    }

    @Test func `only the holder may begin a changing call, and each call extends the lease`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)

        #expect(table.beginCall(on: Self.phone, by: Self.ben, at: .seconds(1)) == false)
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(6)) == true)
        #expect(table.deadline == nil)
        table.endCall(on: Self.phone, by: Self.anna, at: .seconds(8))

        #expect(table.deadline == .seconds(18))
        #expect(table.beginCall(on: Self.phone, by: Self.ben, at: .seconds(18)) == true)
    }

    @Test func `a lease does not expire during a call of its holder`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(1)) == true)
        try table.request(Self.request(2, Self.ben), at: .seconds(2))
        _ = table.takeEffects()

        table.expire(at: .seconds(30))

        #expect(table.takeEffects().granted.isEmpty)
        table.endCall(on: Self.phone, by: Self.anna, at: .seconds(40))
        #expect(table.takeEffects().granted == [2])
    }

    @Test func `while a client waits, neither calls nor requests extend the lease of an agent`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        try table.request(Self.request(2, Self.ben), at: .seconds(1))

        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(5)) == true)
        table.endCall(on: Self.phone, by: Self.anna, at: .seconds(6))
        try table.request(Self.request(3, Self.anna, seconds: 600), at: .seconds(7))

        #expect(table.deadline == .seconds(10))
        // A call that begins at the end would let the agent keep the lease with overlapping calls.
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(9)) == true)
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(10)) == false)
    }

    @Test func `calls extend the lease of a person also while others wait`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.person), at: .zero)
        try table.request(Self.request(2, Self.ben), at: .seconds(1))

        #expect(table.beginCall(on: Self.phone, by: Self.person, at: .seconds(5)) == true)
        table.endCall(on: Self.phone, by: Self.person, at: .seconds(6))

        #expect(table.deadline == .seconds(16))
    }

    @Test func `a lease that is ended during a call passes on after the call`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(1)) == true)
        try table.request(Self.request(2, Self.ben), at: .seconds(2))
        _ = table.takeEffects()

        let ended = table.end(1, at: .seconds(3))

        #expect(ended?.holder == Self.anna)
        #expect(table.takeEffects().ended.map(\.number) == [1])
        #expect(table.beginCall(on: Self.phone, by: Self.anna, at: .seconds(3)) == false)
        table.endCall(on: Self.phone, by: Self.anna, at: .seconds(4))
        #expect(table.takeEffects().granted == [2])
    }

    @Test func `a withdrawn request leaves the queue, and its turn passes on`() throws {
        let table = LeaseTableReference()
        #expect(table.beginCall(on: Self.phone, by: Self.cleo, at: .zero) == true)
        try table.request(Self.request(1, Self.anna), at: .zero)
        try table.request(Self.request(2, Self.ben), at: .zero)

        // The lease of the first client is pending until the call ends.
        #expect(table.withdraw(1, at: .seconds(1)) == true)
        table.endCall(on: Self.phone, by: Self.cleo, at: .seconds(2))

        #expect(table.takeEffects().granted == [2])
        #expect(table.withdraw(2, at: .seconds(2)) == false)
    }

    @Test func `concurrent requests of one client are granted together`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        try table.request(Self.request(2, Self.ben), at: .zero)
        try table.request(Self.request(3, Self.cleo), at: .zero)
        try table.request(Self.request(4, Self.ben), at: .zero)
        _ = table.takeEffects()

        table.expire(at: .seconds(10))

        #expect(table.takeEffects().granted == [2, 4])
    }

    @Test func `the queue and the leases of a client are limited`() throws {
        let table = LeaseTableReference()
        for ticket in 0...UInt64(LeaseTable.maxWaiting) {
            let holder = LeaseHolder(key: "grant:\(ticket)", name: SanitizedText("x"), isAgent: true)
            try table.request(Self.request(ticket, holder), at: .zero)
        }

        #expect(throws: AccessError.self) { try table.request(Self.request(1_000, Self.anna), at: .zero) }
    }

    @Test func `the clients of one other host leave room in the queue for all others`() throws {
        let table = LeaseTableReference()
        func client(_ number: UInt64, of name: String) throws -> LeaseRequest {
            let host = try #require(HostName(name))
            let key = MemberClient.holderPrefix(of: host) + "uid:\(number)"
            return Self.request(number, LeaseHolder(key: key, name: SanitizedText("x"), isAgent: true, host: host))
        }
        try table.request(Self.request(1_000, Self.anna), at: .zero)
        for number in 1...UInt64(LeaseTable.maxWaitingOfHost) {
            try table.request(client(number, of: "lab1"), at: .zero)
        }

        #expect(throws: AccessError.self) { try table.request(client(900, of: "lab1"), at: .zero) }
        // A client that waits already may wait with another request.
        try table.request(client(1, of: "lab1"), at: .zero)
        try table.request(client(901, of: "lab10"), at: .zero)
        try table.request(Self.request(902, Self.ben), at: .zero)
        #expect(table.leases.map(\.waiting) == [LeaseTable.maxWaitingOfHost + 2])
    }

    @Test func `many waiting requests of one client leave room for all others`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        for ticket in 2...UInt64(LeaseTable.maxOwnWaiting) + 1 {
            try table.request(Self.request(ticket, Self.ben), at: .zero)
        }

        #expect(throws: AccessError.self) { try table.request(Self.request(900, Self.ben), at: .zero) }
        try table.request(Self.request(901, Self.cleo), at: .zero)
        #expect(table.leases.map(\.waiting) == [2])
        // All requests of a client are one turn.
        table.expire(at: .seconds(10))
        table.expire(at: .seconds(20))
        #expect(table.leases.map(\.lease.holder) == [Self.cleo])
    }

    @Test func `a client that requests again after its lease waits behind the others`() throws {
        let table = LeaseTableReference()
        for (ticket, holder) in [(1, Self.anna), (2, Self.ben), (3, Self.cleo)] as [(UInt64, LeaseHolder)] {
            try table.request(Self.request(ticket, holder), at: .zero)
        }

        table.end(1, at: .seconds(1))
        try table.request(Self.request(4, Self.anna), at: .seconds(1))
        table.end(2, at: .seconds(2))

        #expect(table.leases.map(\.lease.holder) == [Self.cleo])
        #expect(table.takeEffects().granted == [1, 2, 3])
    }

    @Test func `a lease that was ended is not renewed, and the error names the client that ended it`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        var renewal = Self.request(2, Self.anna)
        renewal.renewing = 1
        try table.request(renewal, at: .seconds(1))
        _ = table.end(1, because: "user 1 ended it", at: .seconds(2))

        let error = #expect(throws: AccessError.self) { try table.request(renewal, at: .seconds(3)) }

        #expect(error == .notFound("lease l1 has ended: user 1 ended it"))
        #expect(table.leases.isEmpty)
    }

    @Test func `a lease that expired is not renewed`() throws {
        let table = LeaseTableReference()
        try table.request(Self.request(1, Self.anna), at: .zero)
        var renewal = Self.request(2, Self.anna)
        renewal.renewing = 1

        #expect(throws: AccessError.self) { try table.request(renewal, at: .seconds(10)) }
    }

    /// Any order of requests, calls, expirations and ends, as a seed determines it.
    @Test(arguments: 1...20) func `no changing call begins during a call of another client under a lease`(seed: Int)
        throws
    {
        var generator = SeededGenerator(seed: UInt64(seed))
        let holders = [Self.anna, Self.ben, Self.cleo, Self.person]
        let table = LeaseTableReference()
        var running: [String: Int] = [:]
        var now = Duration.zero
        for ticket in 1...2_000 as ClosedRange<UInt64> {
            now += .milliseconds(Int.random(in: 0...900, using: &generator))
            let holder = holders[Int.random(in: holders.indices, using: &generator)]
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: try? table.request(Self.request(ticket, holder, seconds: 3), at: now)
            case 1:
                let earlier = ticket - UInt64.random(in: 0..<ticket, using: &generator)
                _ = table.withdraw(earlier, at: now)
            case 2: table.expire(at: now)
            case 3, 4:
                guard table.beginCall(on: Self.phone, by: holder, at: now) else { break }
                running[holder.key, default: 0] += 1
                guard let lease = table.leases.first?.lease else { break }
                #expect(lease.holder == holder)
                #expect(running.allSatisfy { $0.key == holder.key || $0.value == 0 })
            default:
                guard running[holder.key, default: 0] > 0 else { break }
                running[holder.key, default: 0] -= 1
                table.endCall(on: Self.phone, by: holder, at: now)
            }
            _ = table.takeEffects()
        }
    }
}

/// A lease table whose changing calls can be arguments of `#expect`.
private final class LeaseTableReference {
    private var table = LeaseTable()
    private var calls: [(number: UInt64, target: LeaseTarget, key: String)] = []

    var leases: [(lease: LeaseEntry, waiting: Int)] { table.leases }
    var deadline: Duration? { table.deadline }

    func request(_ request: LeaseRequest, at now: Duration) throws { try table.request(request, at: now) }
    func withdraw(_ ticket: UInt64, at now: Duration) -> Bool { table.withdraw(ticket, at: now) }
    @discardableResult
    func end(_ number: UInt64, because reason: String? = nil, at now: Duration) -> LeaseEntry? {
        table.end(number, because: reason, at: now)
    }
    func beginCall(on target: LeaseTarget, by holder: LeaseHolder, at now: Duration) -> Bool {
        guard let number = table.beginCall(on: target, by: holder, at: now) else { return false }
        calls.append((number, target, holder.key))
        return true
    }
    func endCall(on target: LeaseTarget, by holder: LeaseHolder, at now: Duration) {
        guard let index = calls.firstIndex(where: { $0.target == target && $0.key == holder.key }) else { return }
        table.endCall(calls.remove(at: index).number, at: now)
    }
    func expire(at now: Duration) { table.expire(at: now) }
    func takeEffects() -> LeaseTable.Effects { table.takeEffects() }
}
