/// An app with app-debug, which speaks plain HTTP: `appdebug.py`.
package final class AppDebugApp: Sendable {
    package let port: UInt16
    /// The server process. Prints "request: METHOD PATH BODY" for each request.
    package let program: Program

    /// Starts the app and returns when it listens. `videoSize` is the size of its recordings in bytes.
    package init(
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        videoSize: Int = 3_000_000,
        in scratch: ScratchFolder
    ) async throws {
        program = try await Program(
            "python3",
            [
                "\(TestSupportFolder.sources)/appdebug.py", "--address", address, "--port", "\(port)", "--video",
                "\(videoSize)",
            ],
            in: scratch,
            input: .pipe
        )
        let line = try await program.waitForLine("listening on ")
        guard let port = UInt16(line.dropFirst("listening on ".count)) else {
            throw TestSupportError("the app with app-debug said “\(line)” where its port should be")
        }
        self.port = port
    }

    /// The requests without those of the recognition, in order.
    package var calls: [String] {
        program.output.filter { $0.hasPrefix("request: ") }.map {
            $0.dropFirst("request: ".count).trimmingSpaces
        }.filter { $0 != "GET /patchbay-recognition" }
    }

    /// Stops the app as a breakpoint does.
    package func stopAtBreakpoint() throws { try program.write("break\n") }

    package func resume() throws { try program.write("continue\n") }

    /// Stops the app.
    package func quit() async throws {
        program.kill()
        _ = try await program.exitStatus()
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String { split(separator: " ").joined(separator: " ") }
}
