import SystemIO

/// Runs commands of one phone's shell that end by themselves.
struct PhoneShell: Sendable {
    /// Opens a service of the phone by its current attachment.
    typealias Opener = @Sendable (ADBRequest) async throws -> ADBConnection

    private static let chunk = 64 << 10
    /// The maximum size of the output of a command in bytes: that of about 1,700 sockets.
    private static let outputLimit = 256 << 10

    let open: Opener
    /// The maximum time for a command.
    var timeout = Duration.seconds(5)
    var clock: any Clock<Duration> = PollerClock()

    /// Returns the output of a command.
    ///
    /// - Throws: `ADBError`, also for more than 256 KiB; `DialError`; `CancellationError`.
    func output(of command: String) async throws -> [UInt8] {
        let output = try await withTimeout(timeout, clock: clock) { [open] in
            let connection = try await open(.shell(command))
            var output: [UInt8] = []
            while output.count <= Self.outputLimit {
                do { output += try await connection.receive(atMost: Self.chunk) } catch ADBError.closed {
                    return output
                }
            }
            throw ADBError.malformedAnswer("more than 256 KiB of the command \(command)")
        }
        guard let output else { throw ADBError.timedOut(request: command, limit: timeout) }
        return output
    }
}
