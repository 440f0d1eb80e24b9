import ArgumentParser
import Client
import Model

struct SecretCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secret",
        abstract: "Store and delete the session tokens of apps.",
        discussion: """
            An app creates a new token at each launch. The broker stores the token encrypted and sends the token only \
            to that app; agents never see the token.

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
        abstract: "Store the secret of an endpoint, from standard input or a hidden prompt.",
        discussion: """
            Accepts a token or AppReveal's complete session URL, also before the broker has detected that launch. \
            Approve a network endpoint first.

              patchbay secret set shop-test-iphone
              patchbay secret set shop-test-iphone < token.txt
            """
    )

    @Argument(
        help: ArgumentHelp("Store the secret of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @Argument(help: .hidden)
    var rest: [String] = []
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let command = "patchbay secret set \(SanitizedText(selector))"
        try SecretInput.refuse(arguments: rest, what: "a secret", command: command)
        let client = try options.client
        let endpoint = try await EndpointSelector(text: selector, command: "patchbay secret set").choose(client)
        let text = try await SecretInput.line("Secret of \(endpoint.id) (not shown): ", command: command) {
            SessionURL.isToken(SessionTokenInput($0).token)
        }
        let pasted = try Self.pasted(text, command: command)
        let trial = try await client.secrets.set(pasted.token, of: endpoint.id, on: pasted.port)
        try options.output.line(Self.text(trial, of: endpoint.id))
    }

    /// Describes the stored secret and the answer of the app.
    static func text(_ trial: SecretTrial?, of id: EndpointID) -> String {
        let stored = "Stored the secret of \(id)"
        return switch trial {
        case .accepted: "\(stored). The app accepts it."
        case .rejected:
            "\(stored), but the running app rejects it. The broker tries it once more at the next launch. For the "
                + "running app, give the secret of that launch."
        case .untried: "\(stored). It was not tried at the app."
        case nil: "\(stored)."
        }
    }

    /// Extracts the token from the input. AppReveal prints the token at the end of a URL; the port identifies the launch.
    ///
    /// - Throws: `CLIError` for an invalid token.
    static func pasted(_ text: String, command: String) throws(CLIError) -> SessionTokenInput {
        let pasted = SessionTokenInput(text)
        guard pasted.token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .usage(
                "a secret is one word of printable ASCII; the input contains other characters, such as blanks",
                try: "\(command), then paste only the secret or the line with the session URL"
            )
        }
        guard (1...4_096).contains(pasted.token.utf8.count) else {
            throw .usage("a secret has 1 to 4096 characters; the input has \(pasted.token.utf8.count)", try: command)
        }
        return pasted
    }
}

struct SecretRemoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Delete the secret of an endpoint.",
        discussion: "  patchbay secret rm shop-test-iphone"
    )

    @Argument(
        help: ArgumentHelp("Delete the secret of this endpoint.", valueName: "endpoint"),
        completion: .objects(.endpoints)
    )
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let endpoint = try await EndpointSelector(text: selector, command: "patchbay secret rm").choose(client)
        let wasThere = try await client.secrets.delete(of: endpoint.id)
        try options.output.line(
            wasThere
                ? "Deleted the secret of \(endpoint.id)."
                : "No secret of \(endpoint.id) is stored."
        )
    }
}
