import SystemIO
import Testing

@testable import Tunnels

/// Tries every order of events before the handover, until no new state appears.
@Suite struct ConnectionStateSearchTests {
    @Test(arguments: [true, false])
    func `every connection ends or is relayed once, at any order of events`(inspects: Bool) {
        let first = ConnectionStateModel(inspects: inspects, start: .now)
        // The description has every stored value.
        var known: Set = ["\(first)"]
        var open: [(model: ConnectionStateModel, history: [String])] = [(first, [])]
        var ended = 0
        while let (model, history) = open.popLast() {
            guard endsInSilence(model) else {
                Issue.record("a connection is forgotten after \(history)")
                return
            }
            for choice in model.choices {
                var next = model
                let events = history + ["\(choice.event)"]
                if let promise = next.handle(choice) ?? next.promiseBrokenAfterEnd() {
                    Issue.record("not kept: \(promise), after \(events)")
                    return
                }
                if next.isOver { ended += 1 } else if known.insert("\(next)").inserted { open.append((next, events)) }
            }
        }
        // The search saw the retries, the race, the fallback and the ends of them.
        #expect(known.count > 2_000 && ended > 2_000, "\(known.count) states, \(ended) ends")
    }

    private func endsInSilence(_ model: ConnectionStateModel) -> Bool {
        var model = model
        for _ in 0..<100 {
            guard let choice = model.certainChoice, model.handle(choice) == nil else { return false }
            if model.isOver { return true }
        }
        return false
    }
}
