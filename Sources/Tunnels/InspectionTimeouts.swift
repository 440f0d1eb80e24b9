/// How long a client's first bytes are waited for.
package struct InspectionTimeouts: Hashable, Sendable {
    /// For the first byte, before the target is dialled: clients of servers that speak first are silent.
    package let silence: Duration
    /// For the rest of a word that begins as a usual method of HTTP does.
    package let word: Duration
    /// For the whole head of an HTTP request, once it has begun.
    package let head: Duration
    /// For a client to take its refusal and close.
    package let farewell: Duration

    package init(
        silence: Duration = .milliseconds(20),
        word: Duration = .milliseconds(250),
        head: Duration = .seconds(5),
        farewell: Duration = .milliseconds(500)
    ) {
        self.silence = silence
        self.word = word
        self.head = head
        self.farewell = farewell
    }

    /// How long nothing more may come; browsers send a request line in one go. A word that may be anything is not waited
    /// for: protocols that begin with one would pay for it at every connection.
    func patience(at stage: RequestStage) -> Duration {
        switch stage {
        case .silent: silence
        case .possible: .zero
        case .likely: word
        case .begun: head
        }
    }
}
