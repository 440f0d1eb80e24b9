import Hummingbird
import HummingbirdCore
import Synchronization

/// An answer that decides by itself when its head is sent, and which: a document when it is short, a stream when something
/// is to be told first. A route leaves it here and returns an empty response, which is not sent.
final class DeferredResponse: Sendable {
    typealias Answer = @Sendable (consuming ResponseWriter) async throws -> Void

    private let answer = Mutex<Answer?>(nil)

    func set(_ new: @escaping Answer) { answer.withLock { $0 = new } }

    func take() -> Answer? {
        answer.withLock { answer in
            defer { answer = nil }
            return answer
        }
    }
}
