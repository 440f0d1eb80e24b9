import ArgumentParser
import Client
import Model

struct SecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secret",
        abstract: "Give the broker an app's session token, to keep sealed and to present.",
        discussion: """
            An app's token changes at each launch. The broker shows it to that app alone; agents use the app without it.

              patchbay secret set shop-test-iphone
              xcrun devicectl … | patchbay secret scan
              patchbay secret rm shop-test-iphone
            """,
        subcommands: [SecretSetCommand.self, SecretScanCommand.self, SecretRemoveCommand.self]
    )
}

struct SecretSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set",
        abstract: "Give the broker an endpoint's secret: from standard input, or typed without echo.",
        discussion: """
            AppReveal's session URL may be given whole, also before the broker has seen the launch that it is of. An endpoint
            on the network has to be approved first.

              patchbay secret set shop-test-iphone
              patchbay secret set shop-test-iphone < token.txt
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @Argument(help: .hidden)
    var rest: [String] = []
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let command = "patchbay secret set \(SanitizedText(selector))"
        try SecretInput.refuse(arguments: rest, what: "a secret", command: command)
        let client = try options.client
        let list = try await client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay secret set").choose(
            among: list.endpoints
        )
        let text = try await SecretInput.line("Secret of \(endpoint.id) (not shown): ", command: command)
        let pasted = try Self.pasted(text, command: command)
        try await client.setSecret(pasted.token, of: endpoint.id, on: pasted.port)
        try options.output.line("The broker has the secret of \(endpoint.id).")
    }

    /// The secret in what was pasted: AppReveal prints it at the end of a URL, whose port says for which launch it is.
    static func pasted(_ text: String, command: String) throws(CLIError) -> SessionTokenInput {
        let pasted = SessionTokenInput(text)
        guard pasted.token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .usage(
                "a secret is one word of printable ASCII, and this has something else in it: a blank, perhaps",
                try: "\(command), and paste the secret alone, or the line with the session URL"
            )
        }
        guard (1...4_096).contains(pasted.token.utf8.count) else {
            throw .usage("a secret has 1 to 4096 characters, and this has \(pasted.token.utf8.count)", try: command)
        }
        return pasted
    }
}

struct SecretRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Let the broker forget an endpoint's secret.",
        discussion: "  patchbay secret rm shop-test-iphone"
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let list = try await client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay secret rm").choose(among: list.endpoints)
        let wasThere = try await client.forgetSecret(of: endpoint.id)
        try options.output.line(
            wasThere
                ? "The broker has forgotten the secret of \(endpoint.id)."
                : "The broker held no secret of \(endpoint.id), so there was nothing to forget."
        )
    }
}
