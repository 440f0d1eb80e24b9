import Synchronization

/// Counts the streams through usbmuxd, so that Patchbay is never the reason for its end.
///
/// usbmuxd exits when it runs out of descriptors, at about 1,019 clients with the usual limit of 1,024. The few sockets
/// for listening and listing (at most 6) are not counted here.
package final class MuxBudget: Sendable {
    /// Half of what would end usbmuxd: there are other clients.
    package static let standard = 512

    package let limit: Int
    private let count = Mutex(0)

    package init(limit: Int = MuxBudget.standard) { self.limit = limit }

    /// Streams open or being opened.
    package var used: Int { count.withLock { $0 } }

    /// - Throws: `UsbmuxError.limit` when all places are taken.
    func lease() throws(UsbmuxError) -> MuxLease {
        let isTaken = count.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
        guard isTaken else { throw .limit(limit) }
        return MuxLease(of: self)
    }

    fileprivate func giveBack() { count.withLock { $0 -= 1 } }
}

/// One place of a budget, given back when the last reference goes.
final class MuxLease: Sendable {
    private let budget: MuxBudget

    fileprivate init(of budget: MuxBudget) { self.budget = budget }

    deinit { budget.giveBack() }
}
