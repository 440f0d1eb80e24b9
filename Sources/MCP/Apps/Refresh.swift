/// When it is looked at again what an app says has changed: at once, and the more seldom the more often it says so.
struct Refresh: Sendable {
    /// Between two looks: at first, and at most. An app that was quiet for that long is looked at at once again.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(60)

    private var isPending = false
    private var isAnnounced = false
    private var last: Duration?
    private var pause = Duration.zero

    /// It is to be looked at; `isAnnounced` where the app itself says that something has changed.
    ///
    /// - Returns: In how long it is to be looked at; nil where that is pending already.
    mutating func request(isAnnounced: Bool, at now: Duration) -> Duration? {
        if isAnnounced { self.isAnnounced = true }
        guard !isPending else { return nil }
        isPending = true
        return last.map { max(.zero, $0 + pause - now) } ?? .zero
    }

    /// It is looked at now.
    ///
    /// - Returns: Whether the app has said that something has changed.
    mutating func begin(at now: Duration) -> Bool {
        let isCalm = last.map { now - $0 >= pause + Self.longest } ?? true
        pause = isCalm ? Self.shortest : min(Self.longest, pause * 2)
        last = now
        defer { (isPending, isAnnounced) = (false, false) }
        return isAnnounced
    }

    /// It is not looked at after all.
    mutating func giveUp() { isPending = false }
}
