import ArgumentParser

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
