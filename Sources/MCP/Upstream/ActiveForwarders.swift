import Synchronization

/// Whose requests run on a line that is one caller's alone: what the app asks beside them, on the stream of its own, is for
/// one of these.
final class ActiveForwarders: Sendable {
    private struct State {
        var all: [ClientRequestForwarder] = []
        /// For what is asked beside the requests, while any of them runs.
        var common: ClientRequestForwarder?
    }

    private let state = Mutex(State())

    var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

    func enter(_ inquirer: ClientRequestForwarder) { state.withLock { $0.all.append(inquirer) } }

    /// With the last of the requests, what was asked beside them is over.
    func leave(_ inquirer: ClientRequestForwarder) {
        let common = state.withLock { state -> ClientRequestForwarder? in
            state.all.removeAll { $0 === inquirer }
            guard state.all.isEmpty else { return nil }
            defer { state.common = nil }
            return state.common
        }
        common?.end()
    }

    /// Who is asked beside the requests: they are all the same client's. Nil where nothing runs.
    var common: ClientRequestForwarder? {
        state.withLock { state in
            guard let last = state.all.last else { return nil }
            let common = state.common ?? last.unbound
            state.common = common
            return common
        }
    }

    /// For how long an answer is held up by what is asked beside the requests.
    var pause: ClientRequestForwarder.Pause { state.withLock { $0.common }?.pause ?? ClientRequestForwarder.Pause() }
}
