import Glibc

/// Limits the number of tests that run programs at the same time, in first-come order.
///
/// Swift Testing starts every test at once. A hundred daemons on two cores would exceed all deadlines.
actor StartLimiter {
    static let shared = StartLimiter(slots: max(4, 2 * sysconf(CInt(_SC_NPROCESSORS_ONLN))))

    private var slots: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(slots: Int) { self.slots = slots }

    func enter() async {
        guard slots == 0 else {
            slots -= 1
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    /// Passes the slot to the longest waiting test.
    func leave() {
        if waiting.isEmpty {
            slots += 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}
