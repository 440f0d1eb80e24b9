import Synchronization

/// Whose requests run on a line that is one caller's alone: what the app asks beside them, on the stream of its own, is for
/// one of these.
final class Inquirers: Sendable {
    private struct State {
        var all: [Inquirer] = []
        /// For what is asked beside the requests, while any of them runs.
        var common: Inquirer?
    }

    private let state = Mutex(State())

    var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

    func enter(_ inquirer: Inquirer) { state.withLock { $0.all.append(inquirer) } }

    /// With the last of the requests, what was asked beside them is over.
    func leave(_ inquirer: Inquirer) {
        let common = state.withLock { state -> Inquirer? in
            state.all.removeAll { $0 === inquirer }
            guard state.all.isEmpty else { return nil }
            defer { state.common = nil }
            return state.common
        }
        common?.end()
    }

    /// Who is asked beside the requests: they are all the same client's. Nil where nothing runs.
    var common: Inquirer? {
        state.withLock { state in
            guard let last = state.all.last else { return nil }
            let common = state.common ?? last.unbound
            state.common = common
            return common
        }
    }

    /// For how long an answer is held up by what is asked beside the requests.
    var pause: Inquirer.Pause { state.withLock { $0.common }?.pause ?? Inquirer.Pause() }
}
