import SystemIO
import Synchronization

/// A gate for each phone, there as long as somebody stands at it.
///
/// Why one for each: a Connect waits for the phone, not for usbmuxd. Were there only one gate, a phone that never answers
/// would hold it against all others.
final class PerDeviceLimiter: Sendable {
    private struct Entry {
        let gate: AsyncSemaphore
        var users: Int
    }

    private let places: Int
    private let entries = Mutex<[UInt32: Entry]>([:])

    init(places: Int) { self.places = places }

    func hold<Value: Sendable>(_ deviceID: UInt32, while body: () async throws -> Value) async throws -> Value {
        let gate = entries.withLock { entries in
            entries[deviceID, default: Entry(gate: AsyncSemaphore(places: places), users: 0)].users += 1
            return entries[deviceID]?.gate
        }
        defer {
            entries.withLock { entries in
                entries[deviceID]?.users -= 1
                if entries[deviceID]?.users == 0 { entries[deviceID] = nil }
            }
        }
        let permit = try await gate?.enter()
        defer { permit?.giveBack() }
        return try await body()
    }
}
