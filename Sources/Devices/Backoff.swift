/// How long to wait between two attempts to reach usbmuxd: short at first, a second in the long run.
///
/// Short at first, because a socket appears in its directory when it is bound, a moment before it listens.
struct Backoff: Sendable {
    private static let first = Duration.milliseconds(5)
    private static let last = Duration.seconds(1)

    private(set) var length = first

    mutating func reset() { length = Self.first }

    /// Waits, each time twice as long; true when the watch told of a change before that. Ends early when cancelled.
    mutating func wait(orChangeOf watch: DirectoryWatcher?, clock: any Clock<Duration>) async -> Bool {
        let length = length
        self.length = min(length * 2, Self.last)
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                try? await clock.sleep(for: length)
                return false
            }
            if let watch {
                group.addTask {
                    do {
                        try await watch.change()
                        return true
                    } catch {
                        return false
                    }
                }
            }
            defer { group.cancelAll() }
            return await group.next() ?? false
        }
    }
}
