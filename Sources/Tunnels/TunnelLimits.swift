/// How much a table of tunnels takes on.
package struct TunnelLimits: Hashable, Sendable {
    /// Connections through all tunnels together; one more is reset and counted as `limit`.
    package let connections: Int
    /// Dials under way for one listening socket. More clients wait in the kernel's queue, where they cost nothing: a burst
    /// is served in turn and nobody of it is refused.
    package let dials: Int
    /// Tunnels that stand at once.
    package let tunnels: Int
    /// How long to wait before a local address that was not to be had is tried again.
    package let retry: Duration
    /// How long to wait before accepting again when the process is out of descriptors.
    package let pause: Duration
    /// The longest pause before a listening socket that takes no clients is tried again.
    package let longestPause: Duration
    package let screen: InspectionTimeouts

    package init(
        connections: Int = 2_000,
        dials: Int = 128,
        tunnels: Int = 1_024,
        retry: Duration = .seconds(2),
        pause: Duration = .milliseconds(100),
        longestPause: Duration = .seconds(10),
        screen: InspectionTimeouts = InspectionTimeouts()
    ) {
        self.connections = connections
        self.dials = dials
        self.tunnels = tunnels
        self.retry = retry
        self.pause = pause
        self.longestPause = longestPause
        self.screen = screen
    }
}

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
