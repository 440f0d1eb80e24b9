import Model

@testable import AccessControl

/// The promises, and the state without what has no effect on later steps.
extension LeaseModel {
    /// True if a client of the host may begin changing calls under its lease.
    func isHolding(_ host: Int) -> Bool {
        hosts[host].isHeld()
            && hosts[host].table.entries.values.contains { hosts[host].table.claimedPhone(of: $0) == target }
    }

    mutating func checkHolders() {
        if isHolding(0), isHolding(1) { violation = "both hosts hold the lease" }
    }

    /// Checks a state in which the protocol has nothing to do: no client waits in vain, and no claim is left over.
    mutating func checkRest() {
        let isLeased = hosts.contains { $0.table.entries.values.contains { !$0.isPending } }
        let isCalling = clients.contains { if case .calling = $0 { true } else { false } }
        if !isLeased, !isCalling, clients.contains(where: { if case .waiting = $0 { true } else { false } }) {
            violation = "a client waits, and nobody has the lease"
        }
        if let entry, hosts[entry.host].held?.values.contains(entry.value) != true {
            violation = "the registry has a claim that its host does not hold"
        }
        if let entry, hosts[entry.host].table.owners[target] == nil {
            violation = "the registry has a claim without a lease"
        }
        for number in hosts.indices where isHolding(number) && entry?.host != number {
            violation = "the lease of lab\(number + 1) has no claim"
        }
    }

    /// Equal for states with the same steps and the same promises later. Numbers count only by their equality.
    var fingerprint: Int {
        var hasher = Hasher()
        var names: [Int: Int] = [:]
        func name(_ number: Int?) -> Int {
            guard let number else { return -1 }
            return names[number]
                ?? {
                    names[number] = names.count
                    return names.count - 1
                }()
        }
        func add(_ attempt: Attempt, _ table: LeaseTable) {
            hasher.combine(name(attempt.value))
            hasher.combine(name(attempt.session))
            hasher.combine(attempt.isReplacement)
            hasher.combine(attempt.generation == table.claimGeneration)
            hasher.combine(isOwned(attempt.claim, by: table))
            switch attempt.phase {
            case .write(let value): hasher.combine(10 + name(value))
            case .read: hasher.combine(1)
            case .made: hasher.combine(2)
            case .heldByOther: hasher.combine(3)
            case .sessionEnded: hasher.combine(4)
            case .replacedByOther: hasher.combine(5)
            }
        }
        func add(_ entry: Entry?) {
            hasher.combine(entry?.host)
            hasher.combine(name(entry?.value))
            hasher.combine(name(entry?.session))
        }
        add(entry)
        for host in hosts {
            hasher.combine(name(host.session))
            for value in host.held?.values ?? [] { hasher.combine(name(value)) }
            hasher.combine(name(host.held?.session))
            hasher.combine(host.known != nil)
            hasher.combine(host.held != nil && host.isConfirmed)
            hasher.combine(host.inbox.count)
            for entry in host.inbox { add(entry) }
            hasher.combine([host.isWoken, host.isUnchecked, host.isObsolete, host.isLossReported, host.attempt != nil])
            if let attempt = host.attempt { add(attempt, host.table) }
            switch host.cleanup {
            case nil: hasher.combine(0)
            case .read(let value): hasher.combine(10 + name(value))
            case .delete(let value): hasher.combine(1000 + name(value))
            }
            combine(host.table, into: &hasher)
        }
        for (index, client) in clients.enumerated() {
            switch client {
            case .idle: hasher.combine(0)
            case .waiting: hasher.combine(1)
            case .granted: hasher.combine(2)
            case .calling: hasher.combine(3)
            }
            hasher.combine(requests[index])
            let (host, holder) = holders[index]
            hasher.combine(hosts[host].table.ended.lost(on: [target], of: holder.key) != nil)
        }
        // The order of waiting clients.
        hasher.combine(
            clients.indices.filter { if case .waiting = clients[$0] { true } else { false } }
                .sorted { ticket(of: $0) < ticket(of: $1) }
        )
        hasher.combine([lapses, losses, passes, calls, withdrawals])
        hasher.combine(sessions.map { "\(name($0.key)) \($0.value)" }.sorted())
        for ghost in ghosts {
            hasher.combine(ghost.host)
            add(ghost.attempt, hosts[ghost.host].table)
        }
        return hasher.finalize()
    }

    private func ticket(of client: Int) -> UInt64 {
        if case .waiting(let ticket) = clients[client] { ticket } else { 0 }
    }

    private func combine(_ table: LeaseTable, into hasher: inout Hasher) {
        for lease in table.entries.values.sorted(by: { $0.number < $1.number }) {
            hasher.combine(lease.holder.key)
            hasher.combine(lease.isPending)
            hasher.combine(lease.end - now)
        }
        hasher.combine(table.claims?.held[target] != nil)
        hasher.combine(isOwned(table.claims?.held[target], by: table))
    }

    /// True if a claim is that of the lease of the phone.
    private func isOwned(_ claim: LeaseClaim?, by table: LeaseTable) -> Bool {
        claim?.lease == table.owners[target].flatMap { table.entries[$0]?.id }
    }
}
