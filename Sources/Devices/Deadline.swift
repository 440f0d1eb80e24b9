import SystemIO

/// Ends work that takes too long. usbmuxd has no time limits of its own and can hang (libimobiledevice/usbmuxd#114), so
/// everything that is asked of it has one here.
struct Deadline: Sendable {
    let limit: Duration
    let clock: any Clock<Duration>

    /// - Throws: What `body` throws, `UsbmuxError.timedOut` for the request named, or `CancellationError`.
    func run<Value: Sendable>(
        _ request: String,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let value = try await withDeadline(limit, clock: clock, body) else {
            throw UsbmuxError.timedOut(request: request, limit: limit)
        }
        return value
    }
}
