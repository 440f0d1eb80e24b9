import ArgumentParser
import FoundationEssentials
import Logging
import Model

@main
struct Patchbayd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "patchbayd",
        abstract: "The Patchbay broker: finds debug servers, reaches them, and shows one list of them all.",
        discussion: """
            Runs in the foreground until SIGTERM or Ctrl-C. It starts without a configuration file, without Avahi and \
            without usbmuxd, says what is missing, and picks each up when it appears.

            Use `patchbay status` in another terminal to see how it is.
            """,
        version: Version.text
    )

    @Option(name: .long, help: "The configuration file (see patchbay.example.toml for every key).")
    var config: String?

    @Option(name: .long, help: "The unix socket to listen on, instead of the configured or usual one.")
    var socket: String?

    @Option(name: .long, help: "The folder for what must outlive a restart.")
    var stateDir: String?

    @Flag(name: .long, help: "Read the configuration, say whether it is right, and exit.")
    var checkConfig = false

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let configuration: Configuration
        do {
            configuration = try Configuration.load(explicit: config, environment: environment)
            if checkConfig {
                _ = try configuration.facadePath(environment)
                print("\(configuration.file ?? "no configuration file, so every key is at its default"): all right")
                return
            }
            let daemon = try await Daemon(
                configuration: configuration,
                socket: socket,
                stateDirectory: stateDir,
                environment: environment
            )
            try await daemon.run()
        } catch let error as ConfigurationError {
            complain(error.description)
            throw ExitCode(78)
        } catch let error as DaemonError {
            complain(error.description)
            throw ExitCode(1)
        }
    }

    private func complain(_ text: String) {
        FileHandleOutput.standardError.write("error: \(text)\n")
    }
}
