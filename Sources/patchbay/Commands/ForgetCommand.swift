import ArgumentParser
import Client
import Model

struct ForgetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "forget",
        abstract: "Strike an endpoint off the list, and its id with it.",
        discussion: """
            For endpoints that are offline for good, and for static ones. Something that still announces itself comes \
            back as a new endpoint.

              patchbay forget shop-old-iphone
            """
    )

    @Argument(help: ArgumentHelp("Which endpoint.", valueName: "endpoint"))
    var selector: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let list = try await options.client.endpoints()
        let endpoint = try EndpointSelector(text: selector, command: "patchbay forget").choose(among: list.endpoints)
        try await options.client.forget(endpoint.id)
        try options.output.line("Forgot \(endpoint.id).")
        let left = try await options.client.tunnels().tunnels.filter { $0.spec.target == .endpoint(endpoint.id) }
        guard !left.isEmpty else { return }
        let ids = left.map(\.id).joined(separator: " ")
        try options.output.line(
            "Still leading to it: \(ids). `patchbay tunnels rm \(ids)` removes \(left.count == 1 ? "it" : "them")."
        )
    }
}
