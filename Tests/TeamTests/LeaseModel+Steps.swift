import FoundationEssentials
import Model

@testable import AccessControl

/// The effects of the steps.
extension LeaseModel {
    mutating func take(_ step: Step) {
        switch step {
        case .request(let client): request(client)
        case .withdraw(let client):
            withdrawals -= 1
            withdraw(client)
        case .call(let client): call(client)
        case .endCall(let client):
            guard case .calling(let number) = clients[client] else { return }
            clients[client] = .granted
            update(holders[client].host) { table, now in table.endCall(number, at: now) }
        case .unlease(let client):
            clients[client] = .idle
            endLease(of: client)
        case .pass:
            passes -= 1
            now += Self.length
        case .expire(let host): update(host) { table, now in table.expire(at: now) }
        case .lapse(let host):
            lapses -= 1
            hosts[host].session = nil
        case .loseAnswer(let host): loseAnswer(host)
        case .synchronize(let host): synchronize(host)
        case .registry(let host):
            guard var attempt = hosts[host].attempt else { return }
            makeWrite(&attempt, of: host)
            hosts[host].attempt = attempt
        case .answer(let host): answer(host)
        case .deliver(let host): deliver(host)
        case .check(let host): check(host)
        case .endHeld(let host):
            hosts[host].held = nil
            hosts[host].isLossReported = true
        case .endLeases(let host):
            hosts[host].isLossReported = false
            loseClaim(of: host)
            (hosts[host].isWoken, hosts[host].isUnchecked) = (true, true)
        case .newSession(let host):
            lastNumber += 1
            sessions[lastNumber] = host
            hosts[host].session = lastNumber
            hosts[host].isWoken = true
        case .endSession(let session):
            sessions[session] = nil
            if entry?.session == session { set(nil) }
        case .ghost(let index):
            var ghost = ghosts.remove(at: index)
            makeWrite(&ghost.attempt, of: ghost.host)
        case .dropGhost(let index): ghosts.remove(at: index)
        }
        if violation == nil { checkHolders() }
    }

    /// Changes the table as `LeaseService.update` does.
    private mutating func update(_ host: Int, _ change: (inout LeaseTable, Duration) -> Void) {
        let owner = hosts[host].table.owners[target]
        change(&hosts[host].table, now)
        for ticket in hosts[host].table.takeEffects().granted {
            guard let client = clients.firstIndex(of: .waiting(ticket)) else { continue }
            clients[client] = .granted
        }
        if hosts[host].table.owners[target] != owner { hosts[host].isWoken = true }
    }

    private mutating func request(_ client: Int) {
        requests[client] -= 1
        lastNumber += 1
        let ticket = UInt64(lastNumber)
        clients[client] = .waiting(ticket)
        let (host, holder) = holders[client]
        let request = LeaseRequest(
            ticket: ticket,
            target: target,
            endpoint: endpoint,
            holder: holder,
            length: Self.length,
            note: nil
        )
        update(host) { table, now in try? table.request(request, at: now) }
    }

    private mutating func withdraw(_ client: Int) {
        guard case .waiting(let ticket) = clients[client] else { return }
        clients[client] = .idle
        update(holders[client].host) { table, now in _ = table.withdraw(ticket, at: now) }
    }

    private mutating func endLease(of client: Int) {
        let (host, holder) = holders[client]
        let target = target
        update(host) { table, now in
            table.ended.acknowledge([target], by: holder.key)
            for lease in table.leases(on: target) where lease.holder.key == holder.key {
                table.end(lease.number, at: now)
            }
        }
    }

    /// A changing call of a client that believes to have the lease, as in `LeaseService.beginCall`.
    private mutating func call(_ client: Int) {
        calls -= 1
        let (host, holder) = holders[client]
        let claims = Claims(host: hosts[host], target: target)
        let time = LeaseTime(elapsed: now, date: Date(timeIntervalSince1970: 0))
        let conflict = claims.ownConflict(on: target, of: holder.key, in: hosts[host].table, at: time)
        var number: UInt64?
        if conflict == nil, claims.foreignClaim(on: target, { [:] }) == nil {
            let target = target
            update(host) { table, now in number = table.beginCall(on: target, by: holder, at: now) }
        }
        // A refused client gives the lease up.
        guard let number else {
            clients[client] = .idle
            return endLease(of: client)
        }
        clients[client] = .calling(number)
        let hasLease = hosts[host].table.ownLease(on: target, of: holder.key) != nil
        if hasLease, !isHolding(host) { violation = "a call begins under a lease without its claim" }
    }

    private mutating func synchronize(_ host: Int) {
        hosts[host].isWoken = false
        let foreign = hosts[host].foreign
        if foreign != nil, hosts[host].table.usedPhones.contains(target) { loseClaim(of: host) }
        var steps: [LeaseClaimStep] = []
        update(host) { table, _ in steps = table.nextClaimSteps() }
        hosts[host].isObsolete = false
        for step in steps {
            switch step {
            case .release:
                if hosts[host].held != nil { (hosts[host].held, hosts[host].isUnchecked) = (nil, true) }
            case .acquire(let claim): if foreign == nil { acquire(claim, host) }
            }
        }
    }

    private mutating func acquire(_ claim: LeaseClaim, _ host: Int) {
        let generation = hosts[host].table.claimGeneration
        guard let session = hosts[host].session, hosts[host].held == nil || hosts[host].isHeld() else {
            return fail(host)
        }
        lastNumber += 1
        let held = hosts[host].held
        if held != nil { hosts[host].held?.values.append(lastNumber) }
        hosts[host].attempt = Attempt(
            claim: claim,
            generation: generation,
            value: lastNumber,
            session: session,
            isReplacement: held != nil,
            phase: .write(over: held?.values.first)
        )
    }

    /// Makes one request at the registry.
    private mutating func makeWrite(_ attempt: inout Attempt, of host: Int) {
        switch attempt.phase {
        case .write(let expected):
            guard entry?.value == expected else {
                attempt.phase = attempt.isReplacement ? .replacedByOther : .read
                return
            }
            guard sessions[attempt.session] != nil else { return attempt.phase = .sessionEnded }
            set(Entry(host: host, value: attempt.value, session: attempt.session))
            attempt.phase = .made
        case .read:
            guard let entry else { return attempt.phase = .write(over: nil) }
            if entry.value == attempt.value { return attempt.phase = .made }
            attempt.phase = entry.host == host ? .write(over: entry.value) : .heldByOther
        default: break
        }
    }

    private mutating func set(_ new: Entry?) {
        entry = new
        for host in hosts.indices { hosts[host].inbox.append(new) }
    }

    /// The answer reaches `TeamClaims.acquire` and `LeaseClaimSynchronizer`.
    private mutating func answer(_ host: Int) {
        guard let attempt = hosts[host].attempt else { return }
        hosts[host].attempt = nil
        switch attempt.phase {
        case .made:
            if attempt.isReplacement {
                if hosts[host].held?.values.contains(attempt.value) == true {
                    hosts[host].held?.values = [attempt.value]
                }
            } else {
                guard hosts[host].session == attempt.session else { return fail(host) }
                (hosts[host].held, hosts[host].isConfirmed) = (([attempt.value], attempt.session), false)
            }
            acquired(attempt, host)
        case .heldByOther:
            if hosts[host].table.usedPhones.contains(target) { loseClaim(of: host) }
        case .sessionEnded:
            // The report ends the session here.
            if hosts[host].session == attempt.session { hosts[host].session = nil }
            fail(host)
        case .replacedByOther:
            (hosts[host].held, hosts[host].isUnchecked) = (nil, true)
            acquire(attempt.claim, host)
        case .write, .read: break
        }
    }

    private mutating func acquired(_ attempt: Attempt, _ host: Int) {
        update(host) { table, now in table.acquired(attempt.claim, since: attempt.generation, at: now) }
        let isTaken = hosts[host].table.claims?.held[target] != nil
        hosts[host].isObsolete = !isTaken
        if !isTaken || hosts[host].table.owners[target] == nil { hosts[host].isWoken = true }
    }

    /// The answer does not come. The write may still be made.
    private mutating func loseAnswer(_ host: Int) {
        losses -= 1
        guard let attempt = hosts[host].attempt else { return }
        hosts[host].attempt = nil
        if case .write = attempt.phase { ghosts.append((host, attempt)) }
        hosts[host].isUnchecked = true
        fail(host)
    }

    /// `TeamClaims.acquire` has thrown an error other than `.held`. The client of the pending lease gets it.
    private mutating func fail(_ host: Int) {
        if !hosts[host].isHeld(), hosts[host].table.claims?.held[target] != nil { loseClaim(of: host) }
        guard let ticket = hosts[host].table.ticket(waitingForClaimOf: target),
            let client = clients.firstIndex(of: .waiting(ticket))
        else { return }
        withdraw(client)
    }

    private mutating func loseClaim(of host: Int) {
        let target = target
        update(host) { table, now in table.loseClaims(of: [target], because: "a reason", at: now) }
    }

    private mutating func deliver(_ host: Int) {
        let entry = hosts[host].inbox.removeFirst()
        if let entry, entry.host == host {
            hosts[host].isUnchecked = true
            if hosts[host].held?.values.contains(entry.value) == true { hosts[host].isConfirmed = true }
        }
        let isForeign = entry.map { $0.host != host } ?? false
        guard isForeign != (hosts[host].known != nil) else { return }
        hosts[host].known = isForeign ? claim(of: 1 - host) : nil
        hosts[host].isWoken = true
    }

    private func claim(of host: Int) -> TeamClaim? {
        let text = "lab\(host + 1)"
        return HostName(text).map { name in
            TeamClaim(
                host: name,
                endpoint: endpoint.on(name),
                device: target.device,
                holder: SanitizedText("other"),
                holderKey: nil,
                lease: nil,
                seconds: nil,
                note: nil,
                createdAt: Date(timeIntervalSince1970: 0)
            )
        }
    }

    /// One of the three parts of `TeamClaims.deleteUnheld`.
    private mutating func check(_ host: Int) {
        switch hosts[host].cleanup {
        case nil:
            hosts[host].isUnchecked = false
            if let entry, entry.host == host { hosts[host].cleanup = .read(entry.value) }
        case .read(let value):
            hosts[host].cleanup = nil
            if hosts[host].attempt.map({ !$0.isReplacement }) ?? false { return hosts[host].isUnchecked = true }
            if hosts[host].held?.values.contains(value) != true { hosts[host].cleanup = .delete(value) }
        case .delete(let value):
            hosts[host].cleanup = nil
            if entry?.value == value { set(nil) }
        }
    }
}

/// The claims of a host, as `LeaseService` reads them.
private struct Claims: LeaseClaims {
    let foreignClaims: [LeaseTarget: TeamClaim]
    let isHeld: Bool

    init(host: LeaseModel.Host, target: LeaseTarget) {
        foreignClaims = host.foreign.map { [target: $0] } ?? [:]
        isHeld = host.isHeld()
    }

    func isHeld(_ target: LeaseTarget) -> Bool { isHeld }
    func acquire(_ claim: LeaseClaim) async throws(LeaseClaimError) {}
    func release(_ target: LeaseTarget) {}
}
