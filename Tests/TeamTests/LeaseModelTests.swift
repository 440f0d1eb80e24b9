import Model
import Testing

@testable import AccessControl

/// An exhaustive search over all orders of steps of two hosts that lease one phone.
@Suite struct LeaseModelTests {
    /// What may happen in a search, once each.
    enum Event: CaseIterable { case call, lapse, lostAnswer, expiry }

    private static func model(with event: Event) throws -> LeaseModel {
        let holders = (0...1).map { host in
            let key = "grant:\(host)"
            return (host, LeaseHolder(key: key, name: SanitizedText(key), isAgent: true))
        }
        return LeaseModel(
            holders,
            .device(try Values.udid(1)),
            try Values.id("shop"),
            requests: [1, 1],
            lapses: event == .lapse ? 1 : 0,
            losses: event == .lostAnswer ? 1 : 0,
            passes: event == .expiry ? 1 : 0,
            calls: event == .call || event == .expiry ? 1 : 0,
            withdrawals: event == .call ? 1 : 0
        )
    }

    @Test(arguments: Event.allCases)
    func `two hosts never hold the lease of a phone at once, and no client waits while nobody has it`(
        event: Event
    ) throws {
        let search = LeaseSearch(try Self.model(with: event))

        #expect(search.violation == nil, "after \(search.path)")
        #expect(search.count > 5_000 && search.restCount > 20)
    }
}

/// A search through all states of a model.
struct LeaseSearch {
    /// The first broken promise, and the steps to it.
    private(set) var violation: String?
    private(set) var path: [LeaseModel.Step] = []
    /// The number of states, and of those in which the protocol has nothing to do.
    private(set) var count = 0
    private(set) var restCount = 0

    private var states: [LeaseModel]
    /// The number of the state before each one, and the step from it.
    private var origins: [(state: Int, step: LeaseModel.Step)?] = [nil]

    init(_ start: LeaseModel) {
        states = [start]
        search()
    }

    private mutating func search() {
        var known: Set<Int> = [states[0].fingerprint]
        while count < states.count {
            let number = count
            var state = states[number]
            count += 1
            let steps = state.steps
            if !steps.contains(where: \.isOfProtocol) {
                restCount += 1
                state.checkRest()
                if let found = state.violation { return end(found, at: number) }
            }
            for step in steps {
                var next = state
                next.take(step)
                guard known.insert(next.fingerprint).inserted || next.violation != nil else { continue }
                states.append(next)
                origins.append((number, step))
                if let found = next.violation { return end(found, at: states.count - 1) }
            }
        }
    }

    private mutating func end(_ found: String, at number: Int) {
        violation = found
        var number = number
        while let origin = origins[number] {
            path.insert(origin.step, at: 0)
            number = origin.state
        }
    }
}
