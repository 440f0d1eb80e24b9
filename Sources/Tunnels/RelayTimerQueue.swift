/// Connections whose end depends on time, in the order in which they are to be looked at again.
///
/// Each waits its own interval: looked at together, those that end within one interval would end in one burst, and who
/// connects at that moment would wait for all of them.
struct RelayTimerQueue {
    /// One look, at whoever has this place and this generation by then.
    struct Look {
        let index: Int
        let generation: UInt32
        let due: ContinuousClock.Instant
    }

    private var looks: [Look] = []
    private var first = 0

    /// When the next one is due; nil when nobody waits.
    var next: ContinuousClock.Instant? { first < looks.count ? looks[first].due : nil }

    /// Places that are taken, by those who were looked at too.
    var room: Int { looks.count }

    /// - Parameter look: Not due before any that waits already.
    mutating func append(_ look: Look) {
        looks.append(look)
    }

    /// The next one that is due by now, if there is one.
    mutating func takeDue(by now: ContinuousClock.Instant) -> Look? {
        guard let next, next <= now else { return nil }
        defer { advance() }
        return looks[first]
    }

    private mutating func advance() {
        first += 1
        if first == looks.count {
            looks.removeAll(keepingCapacity: looks.count <= 1_024)
            first = 0
        } else if first >= 1_024, first * 2 >= looks.count {
            looks.removeFirst(first)
            first = 0
        }
    }
}
