import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

/// The rules of claims, without a clock and without a registry.
@Suite struct LeaseClaimTableTests {
    private static let shop = EndpointID(app: SanitizedText("com.example.shop"), location: "phone")
    private static let anna = LeaseHolder(key: "grant:anna", name: SanitizedText("anna"), isAgent: true)
    private static let ben = LeaseHolder(key: "grant:ben", name: SanitizedText("ben"), isAgent: true)
    private static let reason = "the registry was lost"

    private let phone = LeaseTarget.device(.sample)

    private func request(
        _ ticket: UInt64,
        _ holder: LeaseHolder,
        on target: LeaseTarget? = nil,
        renewing: UInt64? = nil
    ) -> LeaseRequest {
        LeaseRequest(
            ticket: ticket,
            target: target ?? phone,
            endpoint: Self.shop,
            holder: holder,
            length: .seconds(10),
            note: nil,
            renewing: renewing
        )
    }

    /// Returns a table in which Anna's lease has the claim of the phone.
    private func claimed() throws -> LeaseTable {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna), at: .zero)
        for case .acquire(let claim) in table.nextClaimSteps() { table.acquired(claim, at: .zero) }
        _ = table.takeEffects()
        return table
    }

    @Test func `a lease that is older than the team stays while its phone is claimed, and after the team`() throws {
        var table = LeaseTable()
        try table.request(request(1, Self.anna), at: .zero)
        table.setNeedsClaims(true, at: .seconds(1))
        #expect(
            table.leases.map(\.lease.holder) == [Self.anna]
                && table.beginCall(on: phone, by: Self.anna, at: .zero) != nil
        )
        let generation = table.claimGeneration
        for case .acquire(let claim) in table.nextClaimSteps() {
            table.acquired(claim, since: generation, at: .seconds(1))
        }
        let steps = table.nextClaimSteps()
        #expect(steps.isEmpty && table.usedPhones == [phone])

        table.setNeedsClaims(false, at: .seconds(2))
        table.loseClaims(of: [phone], because: Self.reason, at: .seconds(2))
        #expect(table.leases.map(\.lease.number) == [1] && table.neededClaims.isEmpty)
    }

    @Test func `a lease that is older than the team ends if another host has claimed its phone`() throws {
        var table = LeaseTable()
        try table.request(request(1, Self.anna), at: .zero)
        table.setNeedsClaims(true, at: .seconds(1))
        _ = table.nextClaimSteps()
        #expect(table.usedPhones == [phone])
        table.loseClaims(of: [phone], because: Self.reason, at: .seconds(1))
        #expect(table.leases.isEmpty && table.usedPhones.isEmpty)
        #expect(table.ended.lost(on: [phone], of: Self.anna.key)?.reason == Self.reason)
    }

    @Test func `a lease that waits for its claim is granted when the team ends`() throws {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna), at: .zero)
        let early = table.takeEffects().granted
        table.setNeedsClaims(false, at: .seconds(1))
        let granted = table.takeEffects().granted
        #expect(early.isEmpty && granted == [1])
    }

    @Test func `a lease of a phone is granted with its claim, and starts then`() throws {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna), at: .zero)
        let steps = table.nextClaimSteps()
        let early = table.takeEffects().granted

        guard case .acquire(let claim)? = steps.first, steps.count == 1 else {
            Issue.record("\(steps)")
            return
        }
        #expect(early.isEmpty && table.leases.isEmpty)
        #expect(
            claim.target == phone && claim.holder == Self.anna && claim.lease == "l1" && claim.endpoint == Self.shop
        )
        table.acquired(claim, at: .seconds(3))
        let (granted, again) = (table.takeEffects().granted, table.nextClaimSteps())
        #expect(granted == [1] && again.isEmpty && table.deadline == .seconds(13))
    }

    @Test func `a claim does not shorten the wait for the running calls of other clients`() throws {
        var table = LeaseTable(needsClaims: true)
        let begun = table.beginCall(on: phone, by: Self.ben, at: .zero)
        let call = try #require(begun)
        try table.request(request(1, Self.anna), at: .zero)
        #expect(!table.waitsForClaim(1))
        for case .acquire(let claim) in table.nextClaimSteps() { table.acquired(claim, at: .zero) }
        let early = table.takeEffects().granted
        table.endCall(call, at: .seconds(1))
        let granted = table.takeEffects().granted

        #expect(early.isEmpty && granted == [1])
    }

    @Test func `an endpoint without a phone is leased before its claim, and without a team no lease needs one`() throws
    {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna, on: .endpoint(Self.shop)), at: .zero)
        var alone = LeaseTable()
        try alone.request(request(1, Self.anna), at: .zero)
        let granted = [table.takeEffects().granted, alone.takeEffects().granted]
        let steps = [table.nextClaimSteps().count, alone.nextClaimSteps().count]

        #expect(granted == [[1], [1]] && steps == [1, 0])
    }

    @Test func `a claim that is being deleted grants no lease`() throws {
        var table = try claimed()
        table.end(1, at: .seconds(1))
        let release = table.nextClaimSteps()

        try table.request(request(2, Self.ben), at: .seconds(1))
        let (granted, steps) = (table.takeEffects().granted, table.nextClaimSteps())

        #expect(release == [.release(phone)] && granted.isEmpty)
        #expect(steps.count == 1 && table.waitsForClaim(2))
    }

    @Test func `the next client in the queue keeps the claim, whose content changes`() throws {
        var table = try claimed()
        try table.request(request(2, Self.ben), at: .seconds(1))
        table.end(1, at: .seconds(1))

        let (granted, steps) = (table.takeEffects().granted, table.nextClaimSteps())

        #expect(granted == [2])
        guard case .acquire(let claim)? = steps.first, steps.count == 1 else {
            Issue.record("\(steps)")
            return
        }
        #expect(claim.holder == Self.ben && claim.lease == "l2")
    }

    @Test(arguments: [true, false])
    func `a claim that was acquired during the loss of claims grants nothing, and is acquired again or deleted`(
        isWithdrawn: Bool
    ) throws {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna), at: .zero)
        let generation = table.claimGeneration
        guard case .acquire(let claim)? = table.nextClaimSteps().first else {
            Issue.record("no claim is acquired")
            return
        }
        table.loseClaims(of: [phone], because: Self.reason, at: .seconds(1))
        if isWithdrawn { _ = table.withdraw(1, at: .seconds(1)) }

        table.acquired(claim, since: generation, at: .seconds(2))

        let (granted, steps) = (table.takeEffects().granted, table.nextClaimSteps())
        let expected: LeaseClaimStep = isWithdrawn ? .release(phone) : .acquire(claim)
        #expect(granted.isEmpty && steps == [expected])
    }

    @Test func `the loss of another claim does not undo a replacement`() throws {
        var table = try claimed()
        try table.request(request(2, Self.ben), at: .seconds(1))
        table.end(1, at: .seconds(1))
        let generation = table.claimGeneration
        guard case .acquire(let claim)? = table.nextClaimSteps().first else {
            Issue.record("no claim is replaced")
            return
        }
        table.loseClaims(of: [.endpoint(Self.shop)], because: Self.reason, at: .seconds(1))

        table.acquired(claim, since: generation, at: .seconds(2))

        let steps = table.nextClaimSteps()
        #expect(steps.isEmpty && table.leases.count == 1)
    }

    @Test func `a lost claim ends the lease, and the next client needs a new claim`() throws {
        var table = try claimed()
        try table.request(request(2, Self.ben), at: .seconds(1))

        table.loseClaims(of: [phone], because: Self.reason, at: .seconds(2))

        let (effects, steps) = (table.takeEffects(), table.nextClaimSteps())
        #expect(effects.ended.map(\.number) == [1] && effects.granted.isEmpty && steps.count == 1)
        let renewal = request(3, Self.anna, renewing: 1)
        let error = #expect(throws: AccessError.self) { try table.request(renewal, at: .seconds(3)) }
        #expect(error == .notFound("lease l1 has ended: the registry was lost"))
    }

    @Test func `a lease that gets its phone later ends with the claim of that phone`() throws {
        var table = LeaseTable(needsClaims: true)
        try table.request(request(1, Self.anna, on: .endpoint(Self.shop)), at: .zero)
        let udid = try #require(phone.device)
        table.link([Self.shop: udid])
        let targets = table.nextClaimSteps().compactMap { step -> LeaseTarget? in
            guard case .acquire(let claim) = step else { return nil }
            table.acquired(claim, at: .zero)
            return claim.target
        }
        #expect(Set(targets) == [phone, .endpoint(Self.shop)] && table.leases.count == 1)

        table.loseClaims(of: [phone], because: Self.reason, at: .seconds(1))

        #expect(table.leases.isEmpty)
    }

    @Test(arguments: 1...20) func `no schedule grants a phone without its claim`(seed: Int) throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        var table = LeaseTable(needsClaims: true)
        // The claims that the registry has, by what the table was told.
        var held = false
        var now = Duration.zero
        for ticket in 1...2_000 as ClosedRange<UInt64> {
            now += .milliseconds(Int.random(in: 0...900, using: &generator))
            let holder = Bool.random(using: &generator) ? Self.anna : Self.ben
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: try? table.request(request(ticket, holder), at: now)
            case 1: _ = table.withdraw(ticket - UInt64.random(in: 0..<ticket, using: &generator), at: now)
            case 2: table.expire(at: now)
            case 3:
                held = false
                table.loseClaims(of: [phone], because: Self.reason, at: now)
            default:
                for step in table.nextClaimSteps() {
                    switch step {
                    case .acquire(let claim):
                        held = true
                        table.acquired(claim, at: now)
                    case .release: held = false
                    }
                }
            }
            _ = table.takeEffects()
            #expect(held || table.leases.isEmpty)
        }
    }
}
