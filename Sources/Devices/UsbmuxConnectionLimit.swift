import SystemIO

/// Counts the streams through usbmuxd, so that Patchbay is never the reason for its end.
///
/// usbmuxd exits when it runs out of descriptors, at about 1,019 clients with the usual limit of 1,024. The few sockets
/// for listening and listing (at most 6) are not counted here.
package final class UsbmuxConnectionLimit: Sendable {
    /// Half of what would end usbmuxd: there are other clients.
    package static let standard = 512

    package let limit: Int
    private let gate: AsyncSemaphore

    /// - Parameter limit: Streams at once; as many more may wait for a place.
    package init(limit: Int = UsbmuxConnectionLimit.standard) {
        self.limit = limit
        gate = AsyncSemaphore(places: limit)
    }

    /// Streams open or being opened.
    package var used: Int { limit - gate.free }

    /// Streams that wait for a place.
    var waiting: Int { gate.waiting }

    /// Waits for a place. It is given back when the last reference to the permit goes.
    ///
    /// - Throws: `UsbmuxError.limit` when none is free in time, or when as many wait already as there are places;
    ///   `CancellationError`.
    func lease(within patience: Duration, clock: any Clock<Duration>) async throws -> Permit {
        if let permit = gate.enterNow() { return permit }
        guard gate.waiting < limit else { throw UsbmuxError.limit(limit) }
        guard let permit = try await withDeadline(patience, clock: clock, { [gate] in try await gate.enter() }) else {
            throw UsbmuxError.limit(limit)
        }
        return permit
    }
}
