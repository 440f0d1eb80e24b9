/// An app with a debug server in it: what AppReveal looks like from outside.
///
/// The server is `sampleapp.py`. On a phone of `PhoneRig` it is reached at the same port as here.
package final class SampleApp: Sendable {
    package let bundle: String
    package let version: String
    package let port: UInt16
    /// What it wants to see with every request, new at each launch; nil where it wants nothing.
    package let token: String?
    /// What it logs at its launch, in AppReveal's words; nil where it wants no token.
    package let sessionURL: String?
    /// The launch that its health and its advert report; empty where they report none.
    package let boot: String
    /// Says "request: …" for each one it gets, and "call: TOOL" when a tool is run.
    package let program: Program

    /// Returns when it listens.
    ///
    /// It answers its first `shy` calls with an error, as one does that is still starting. A token is made up where none is
    /// given and the mode wants one; `screen` is the size of its screenshots, `1290x2796`.
    /// Port 0 is any that is free; give one to relaunch an app where it was. With a host it runs there and listens at all
    /// its addresses, else in the test's own network, on loopback.
    package init(
        _ bundle: String = "com.example.shop",
        version: String = "3.2.0",
        mode: SampleMode = .ios09,
        token: String? = nil,
        screen: String = "60x130",
        boot: String = "",
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
                "\(RigFolder.sources)/sampleapp.py", "--address", address, "--port", "\(port)", "--bundle", bundle,
                "--version", version, "--shy", "\(shy)", "--mode", mode.rawValue, "--screen", screen,
                "--boot", boot,
            ] + (token.map { ["--token", $0] } ?? []),
            in: scratch,
            namespace: host?.namespace
        )
        let line = try await program.waitForLine("listening on ")
        guard let port = UInt16(line.dropFirst("listening on ".count)) else {
            throw RigError("the sample app said “\(line)” where its port should be")
        }
        self.port = port
        sessionURL = program.output.first { $0.contains("[AppReveal] Session URL") }
        self.token = sessionURL.flatMap { $0.split(separator: "=").last.map(String.init) }
    }

    /// Advertises it as AppReveal does; returns when the name is established.
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

    /// The app quits.
    package func quit() async throws {
        program.kill()
        _ = try await program.exitStatus()
    }
}
