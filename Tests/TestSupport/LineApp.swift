/// An app with MCP in lines over TCP, as `_mcp._tcp` has it: `lineapp.py`.
package final class LineApp: Sendable {
    /// Whose habits it has.
    package enum Habits: String, Sendable, CaseIterable {
        case swiftMCP = "swiftmcp"
        case iMCP = "imcp"
    }

    package let port: UInt16
    /// Says "greeted: METHOD" for each session, and "call: TOOL" when a tool is run.
    package let program: Program
    private let habits: Habits
    private let version: String

    /// Returns when it listens: on a host at all its addresses, else on loopback. It may have one client only, which the next
    /// one replaces.
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
                "\(RigFolder.sources)/lineapp.py", "--address", host == nil ? "127.0.0.1" : "0.0.0.0", "--port",
                "\(port)", "--version", version, "--like", model.rawValue,
            ] + (isSingle ? ["--single"] : []),
            in: scratch,
            namespace: host?.namespace
        )
        let line = try await program.waitForLine("listening on ")
        guard let port = UInt16(line.dropFirst("listening on ".count)) else {
            throw RigError("the app in lines said “\(line)” where its port should be")
        }
        self.port = port
    }

    /// Advertises it: SwiftMCP's with what it is, iMCP's with nothing.
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

    /// The app quits.
    package func quit() async throws {
        program.kill()
        _ = try await program.exitStatus()
    }
}
