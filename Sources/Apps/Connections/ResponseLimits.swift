/// The time and size limits of one response. Each message to an app has its own.
package struct ResponseLimits: Hashable, Sendable {
    /// The idle timeout: without bytes of a response and without a message on its stream.
    package var idle: Duration
    /// The total timeout, progress notifications included.
    package var total: Duration
    /// The maximum size of a response in bytes.
    package var bytes: Int

    package init(idle: Duration = .seconds(15), total: Duration = .seconds(120), bytes: Int = 32 * 1_048_576) {
        self.idle = idle
        self.total = total
        self.bytes = bytes
    }
}

/// The delay of a response by requests of the app to its client, which does not count for the limits.
package struct ClientDelay: Hashable, Sendable {
    package var isActive = false
    /// The sum of all delays so far.
    package var duration = Duration.zero
    /// The end of the last delay; the current time during one.
    package var until = Duration.zero

    package init(isActive: Bool = false, duration: Duration = .zero, until: Duration = .zero) {
        self.isActive = isActive
        self.duration = duration
        self.until = until
    }

    /// Returns the delay after its begin, continuation or end at this time.
    func updated(isActive: Bool, at now: Duration) -> ClientDelay {
        guard isActive || self.isActive else { return self }
        let added = self.isActive ? now - until : .zero
        return ClientDelay(isActive: isActive, duration: duration + added, until: now)
    }

    package func merged(with other: ClientDelay) -> ClientDelay {
        ClientDelay(
            isActive: isActive || other.isActive,
            duration: duration + other.duration,
            until: max(until, other.until)
        )
    }
}

extension Duration {
    /// The number of seconds, rounded to the nearest, for messages.
    package var roundedSeconds: Int { Int((self / .seconds(1)).rounded()) }
}
