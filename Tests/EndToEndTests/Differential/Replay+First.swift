import TestSupport

extension Replay {
    /// Returns the first element, or nil if there is none within the limit.
    func first(within limit: Duration) async -> Element? {
        try? await withDeadline(limit, { "nothing was said" }) { [self] in
            for await element in elements() { return element }
            throw CancellationError()
        }
    }
}

extension Duration {
    /// The duration in seconds with one decimal.
    var formatted: String {
        let tenths = Int((self / .milliseconds(100)).rounded())
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
