import ArgumentParser
import Client
import Model

struct SecretRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rm",
        abstract: "Let the broker forget an endpoint's secret.",
        discussion: "  patchbay secret rm shop-test-iphone"
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay secret rm").choose(among: list.endpoints)
        try await options.client.forgetSecret(of: endpoint.id)
        try options.output.line("The broker holds no secret of \(endpoint.id).")
    }
}
