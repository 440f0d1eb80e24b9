import SystemIO

/// The pauses between attempts to reach usbmuxd.
extension Backoff {
    /// The pauses between two attempts to connect: 5 ms at first, and 10 s at most.
    ///
    /// The first pause is short because a bound socket appears in its directory a moment before it listens.
    static var reconnecting: Backoff { Backoff(from: .milliseconds(5), to: .seconds(10)) }

    /// The longest pause if no watcher reports a new socket.
    private static let unwatchedPause = Duration.seconds(1)

    /// Waits for the next pause or a change. Returns true if the watch reported a change. Ends early when cancelled.
    mutating func wait(orChangeOf watcher: DirectoryWatcher?, clock: any Clock<Duration>) async -> Bool {
        guard let watcher else {
            try? await clock.sleep(for: min(next(), Self.unwatchedPause))
            return false
        }
        let hasChanged = try? await withTimeout(next(), clock: clock) {
            try await watcher.change()
            return true
        }
        return hasChanged ?? false
    }
}
