/// An app that serves newline-delimited MCP over TCP, advertised as `_mcp._tcp`: `lineapp.py`.
package final class LineApp: Sendable {
    /// The product whose behavior the app imitates.
    package enum Habits: String, Sendable, CaseIterable {
        case swiftMCP = "swiftmcp"
        case iMCP = "imcp"
    }

    package let port: UInt16
    /// The server process. Prints "greeted: METHOD" for each session and "call: TOOL" for each tool call.
    package let program: Program
    private let habits: Habits
    private let version: String

    /// Starts the app and returns when it listens: on all addresses of the host, or on loopback without one. An app
    /// with only one client replaces it with the next one.
    package init(
        like model: Habits,
        version: String = "3.2.0",
        port: UInt16 = 0,
        isSingle: Bool = false,
        on host: AvahiHost? = nil,
        in scratch: ScratchFolder
    ) async throws {
        (habits, self.version) = (model, version)
        program = try await Program(
            "python3",
            [
                "\(TestSupportFolder.sources)/lineapp.py", "--address", host == nil ? "127.0.0.1" : "0.0.0.0", "--port",
                "\(port)", "--version", version, "--like", model.rawValue,
            ] + (isSingle ? ["--single"] : []),
            in: scratch,
            namespace: host?.namespace
        )
        let line = try await program.waitForLine("listening on ")
        guard let port = UInt16(line.dropFirst("listening on ".count)) else {
            throw TestSupportError("the app in lines said “\(line)” where its port should be")
        }
        self.port = port
    }

    /// Advertises the app: SwiftMCP with a TXT record, iMCP without.
    ///
    /// - Returns: The program that holds the advertisement; kill it to withdraw it.
    package func advertise(through host: AvahiHost) async throws -> Program {
        let txt = ["txtvers=1", "name=Shop", "ver=\(version)", "proto=2026-07-28"]
        let publisher = try await host.start(
            "avahi-publish-service",
            ["Shop", "_mcp._tcp", "\(port)"] + (habits == .swiftMCP ? txt : [])
        )
        try await publisher.waitForLine("Established under name")
        return publisher
    }

    /// Stops the app.
    package func quit() async throws {
        program.kill()
        _ = try await program.exitStatus()
    }
}
