import ArgumentParser
import Client
import FoundationEssentials
import Glibc
import Model

/// What every verb takes.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's socket.",
            discussion: "Default: $PATCHBAY_SOCKET, else the machine's broker, else your own.",
            valueName: "path"
        )
    )
    var socket: String?

    @Option(help: ArgumentHelp("Colours: auto, always or never.", valueName: "when"))
    var color = ColorChoice.auto

    var client: PatchbayClient { PatchbayClient(socketPath: Self.path(of: socket)) }
    var output: Output { Output.standard(color) }

    /// Where the broker is, given what `--socket` says; a relative path begins where the shell stands.
    static func path(of socket: String?) -> String {
        let explicit = socket.map { $0.hasPrefix("/") ? $0 : FileManager.default.currentDirectoryPath + "/" + $0 }
        return SocketPath.find(
            explicit: explicit,
            environment: ProcessInfo.processInfo.environment,
            userID: geteuid(),
            exists: { access($0, F_OK) == 0 }
        )
    }
}

/// For the verbs that show something.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print JSON instead of text: one document, or one per line where it goes on. This form is stable.")
    var json = false
}
