/// The state of an app's change stream, and the step that follows each event. Performs no I/O.
///
/// A stream that was cut is opened again with backoff, because an app that is back on its port within seconds causes no
/// other event. The changes between the cut and the next opening are unknown.
struct ChangeStreamState: Sendable {
    enum Phase: Hashable, Sendable {
        /// The stream is being opened.
        case opening
        case connected(since: Duration)
        /// The stream ended, or could not be opened. It is opened again after a pause.
        case cut
        /// The app has no such stream, or cannot be reached now. A change of the app's state starts the next attempt.
        case unsupported
    }

    /// The end of a stream, or of an attempt to open it.
    enum End: Hashable, Sendable {
        /// The connection ended, the launch ended, or the app did not answer.
        case cut
        /// The reader ended the stream itself, to open it with other resources or to detect a lost device.
        case renewed
        /// The app announces no changes, or has no such stream.
        case unsupported
        /// The app has no route, no approval or no valid token. The end of that state is an event.
        case unavailable
    }

    /// The next step. A change of the app's state shortens the pause, but not below `shortestPause`.
    enum Step: Hashable, Sendable {
        case open
        case openAfter(Duration)
        case waitForStateChange
    }

    /// The pause after the first cut and the longest one, in seconds. The pause doubles with each cut.
    static let shortestPause = Duration.milliseconds(250)
    static let longestPause = Duration.seconds(30)

    private(set) var phase = Phase.opening
    private var pause = shortestPause
    private var hasMissedChanges = false

    /// Handles an opened stream.
    ///
    /// - Returns: Whether changes may have been missed since the last stream.
    mutating func opened(at now: Duration) -> Bool {
        phase = .connected(since: now)
        defer { hasMissedChanges = false }
        return hasMissedChanges
    }

    /// Handles the end of a stream or of an attempt.
    mutating func ended(_ end: End, at now: Duration) -> Step {
        // A server that ends each stream at once must not be asked at the shortest pause for ever.
        if case .connected(let since) = phase, now - since >= Self.longestPause { pause = Self.shortestPause }
        switch end {
        case .renewed:
            phase = .opening
            return .open
        case .unsupported, .unavailable:
            phase = .unsupported
            hasMissedChanges = true
            pause = Self.shortestPause
            return .waitForStateChange
        case .cut:
            phase = .cut
            hasMissedChanges = true
            defer { pause = min(Self.longestPause, pause * 2) }
            return .openAfter(pause)
        }
    }
}
