/// An app with a debug server that behaves like AppReveal.
///
/// The server is `sampleapp.py`. A phone of `UsbmuxdFixture` has the app at the same port.
package final class SampleApp: Sendable {
    package let bundle: String
    package let version: String
    package let port: UInt16
    /// The token that the app requires, new at each launch; nil if none is required.
    package let token: String?
    /// The line with the session URL that the app logs at its launch, as AppReveal does; nil without a token.
    package let sessionURL: String?
    /// The launch ID in its health response and advert; empty if there is none.
    package let boot: String
    /// The server process. Prints "request: …" for each request and "call: TOOL" for each tool call.
    package let program: Program

    /// Starts the app and returns when it listens.
    ///
    /// The app answers its first `shy` calls with an error, like an app that is still starting. If the mode requires a
    /// token and none is given, a random one is used. `screen` is the size of its screenshots, such as `1290x2796`.
    /// Port 0 selects a free port; a fixed port relaunches an app at the same place. With a host the app runs there on
    /// all addresses, otherwise on loopback in the test's network. If `isNamed`, its health response has its bundle.
    package init(
        _ bundle: String = "com.example.shop",
        version: String = "3.2.0",
        mode: SampleMode = .ios09,
        token: String? = nil,
        screen: String = "60x130",
        boot: String = "",
        isNamed: Bool = false,
        address: String = "127.0.0.1",
        port: UInt16 = 0,
        shy: Int = 0,
        on host: AvahiHost? = nil,
        in scratch: ScratchFolder
    ) async throws {
        (self.bundle, self.version, self.boot) = (bundle, version, boot)
        let address = host == nil ? address : "0.0.0.0"
        program = try await Program(
            "python3",
            [
                "\(TestSupportFolder.sources)/sampleapp.py", "--address", address, "--port", "\(port)", "--bundle",
                bundle,
                "--version", version, "--shy", "\(shy)", "--mode", mode.rawValue, "--screen", screen,
                "--boot", boot,
            ] + (token.map { ["--token", $0] } ?? []) + (isNamed ? ["--named"] : []),
            in: scratch,
            namespace: host?.namespace
        )
        let line = try await program.waitForLine("listening on ")
        guard let port = UInt16(line.dropFirst("listening on ".count)) else {
            throw TestSupportError("the sample app said “\(line)” where its port should be")
        }
        self.port = port
        sessionURL = program.output.first { $0.contains("appreveal_session_token=") }
        self.token = sessionURL.flatMap { $0.split(separator: "=").last.map(String.init) }
    }

    /// Advertises the app as AppReveal does; returns when the name is established.
    ///
    /// - Returns: The program that holds the advertisement; kill it to withdraw it.
    package func advertise(through host: AvahiHost) async throws -> Program {
        let publisher = try await host.start(
            "avahi-publish-service",
            [
                "AppReveal-\(bundle)", "_appreveal._tcp", "\(port)", "bundleId=\(bundle)", "version=\(version)",
                "transport=streamable-http",
            ] + (token == nil ? [] : ["auth=session-token"]) + (boot.isEmpty ? [] : ["boot=\(boot)"])
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
