import FoundationEssentials
import Model

@testable import AccessControl

/// Two hosts with one phone, each with its real lease table, and a model of `TeamClaims`, `TeamSession` and the team registry.
///
/// One step is what happens at one place at one time, so the steps between a request to the registry and its answer are in
/// any order. The clock stands still except for `pass`.
struct LeaseModel {
    /// An entry of the registry. Its value is new for each attempt.
    struct Entry: Equatable {
        let host: Int
        let value: Int
        let session: Int
    }

    /// A request of `TeamClaims.acquire` or one that is left of it without an answer.
    struct Attempt {
        enum Phase: Equatable {
            /// The write is under way. It needs no entry, or one with this value.
            case write(over: Int?)
            /// Another entry was there, and is read next.
            case read
            case made, heldByOther, sessionEnded, replacedByOther
        }

        let claim: LeaseClaim
        let generation: UInt64
        let value: Int
        let session: Int
        let isReplacement: Bool
        var phase: Phase
    }

    /// A part of `TeamClaims.deleteUnheld`: the entry was read, or its deletion is under way.
    enum Cleanup: Equatable { case read(Int), delete(Int) }

    struct Host {
        var table = LeaseTable(needsClaims: true)
        /// The session lease before its local end.
        var session: Int? = 0
        /// The claim that `TeamClaims` holds.
        var held: (values: [Int], session: Int)?
        /// True if the watch has delivered the claim that is held.
        var isConfirmed = false
        /// The last claim of the other host that the watch has delivered.
        var known: TeamClaim?
        /// Changes of the entry that the watch has not delivered.
        var inbox: [Entry?] = []
        var isWoken = false
        /// True if the table gives back a claim that came too late, with its next steps.
        var isObsolete = false
        var isUnchecked = false
        var isLossReported = false
        var attempt: Attempt?
        var cleanup: Cleanup?

        var foreign: TeamClaim? { held != nil && !isConfirmed ? nil : known }

        func isHeld() -> Bool { held.map { $0.session == session } ?? false }
    }

    enum Client: Equatable {
        case idle
        case waiting(UInt64)
        case granted
        case calling(UInt64)
    }

    static let length = Duration.seconds(10)
    let holders: [(host: Int, holder: LeaseHolder)]
    let target: LeaseTarget
    let endpoint: EndpointID

    var hosts = [Host(), Host()]
    var clients: [Client]
    /// The requests that each client may still make.
    var requests: [Int]
    /// The session lease ends, and the answers are lost, so often at most.
    var lapses: Int
    var losses: Int
    var passes: Int
    /// The changing calls of all clients.
    var calls: Int
    /// The requests that clients withdraw.
    var withdrawals: Int
    var entry: Entry?
    /// The session leases in the registry, with their hosts.
    var sessions: [Int: Int]
    /// Writes that nobody waits for any more.
    var ghosts: [(host: Int, attempt: Attempt)] = []
    var now = Duration.zero
    var lastNumber = 10
    var violation: String?

    init(
        _ holders: [(host: Int, holder: LeaseHolder)],
        _ target: LeaseTarget,
        _ endpoint: EndpointID,
        requests: [Int],
        lapses: Int,
        losses: Int,
        passes: Int,
        calls: Int,
        withdrawals: Int
    ) {
        (self.holders, self.target, self.endpoint) = (holders, target, endpoint)
        (self.lapses, self.losses, self.passes) = (lapses, losses, passes)
        (self.calls, self.withdrawals) = (calls, withdrawals)
        clients = holders.map { _ in .idle }
        self.requests = requests
        sessions = [0: 0, 1: 1]
        hosts[1].session = 1
    }

    enum Step: Hashable {
        // Of clients and faults.
        case request(Int), withdraw(Int), call(Int), endCall(Int), unlease(Int), lapse(Int), loseAnswer(Int), pass
        // Of the protocol.
        case synchronize(Int), registry(Int), answer(Int), deliver(Int), check(Int), endHeld(Int), endLeases(Int)
        case newSession(Int), endSession(Int), ghost(Int), dropGhost(Int), expire(Int)

        var isOfProtocol: Bool {
            switch self {
            case .request, .withdraw, .call, .endCall, .unlease, .lapse, .loseAnswer, .pass: false
            default: true
            }
        }
    }
}

/// The steps that may come next.
extension LeaseModel {
    var steps: [Step] {
        var steps: [Step] = passes > 0 ? [.pass] : []
        for (index, client) in clients.enumerated() {
            switch client {
            case .idle: if requests[index] > 0 { steps.append(.request(index)) }
            case .waiting: if withdrawals > 0 { steps.append(.withdraw(index)) }
            case .granted: steps += calls > 0 ? [.call(index), .unlease(index)] : [.unlease(index)]
            case .calling: steps.append(.endCall(index))
            }
        }
        for (number, host) in hosts.enumerated() {
            if number == 0, host.held != nil, host.session != nil, lapses > 0 { steps.append(.lapse(number)) }
            if host.session == nil { steps.append(.newSession(number)) }
            if host.isWoken, host.attempt == nil { steps.append(.synchronize(number)) }
            switch host.attempt?.phase {
            case nil: break
            case .write, .read:
                steps.append(.registry(number))
                if losses > 0 { steps.append(.loseAnswer(number)) }
            default:
                steps.append(.answer(number))
                if losses > 0 { steps.append(.loseAnswer(number)) }
            }
            if !host.inbox.isEmpty { steps.append(.deliver(number)) }
            let mayCheck = host.isUnchecked && (host.attempt?.isReplacement ?? true)
            if host.cleanup != nil || mayCheck { steps.append(.check(number)) }
            if host.held != nil, !host.isHeld() { steps.append(.endHeld(number)) }
            if host.isLossReported { steps.append(.endLeases(number)) }
            if host.table.deadline.map({ $0 <= now }) ?? false { steps.append(.expire(number)) }
        }
        // The local end comes a second before that in the registry.
        for (session, host) in sessions where hosts[host].session != session { steps.append(.endSession(session)) }
        for index in ghosts.indices { steps += [.ghost(index), .dropGhost(index)] }
        return steps
    }
}
