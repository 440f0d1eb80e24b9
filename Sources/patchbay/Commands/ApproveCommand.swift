import ArgumentParser
import Client
import Model

struct ApproveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve",
        abstract: "Approve a program that asks for access, or a network address of an endpoint.",
        discussion: """
            A word like WDJB-MJHT is the code of a request; look at `patchbay requests` first. Anything else is an \
            endpoint. Its preferred network address is approved and printed, or the one that --address names. Another \
            address, host or app needs another approval. Cables and configured endpoints need none.

              patchbay approve WDJB-MJHT
              patchbay approve shop-test-iphone
              patchbay approve shop-test-iphone --address 192.168.1.20
            """
    )

    @Argument(help: ArgumentHelp("The code of a request, or an endpoint.", valueName: "code|endpoint"))
    var subject: String
    @Option(help: ArgumentHelp("Which network address of the endpoint.", valueName: "ip"))
    var address: String?
    @Option(help: ArgumentHelp("The endpoint's port; must be named when it is below 1024.", valueName: "port"))
    var port: UInt16?
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if let code = UserCodeArgument.code(subject) {
            do {
                let request = try await client.approveRequest(code)
                if format.json { return try output.document(request) }
                return try output.line(
                    "Approved \(request.code): \"\(request.name)\" (\(Formatting.caller(request.asker))) may "
                        + "\(Formatting.scopes(request.permissions)) on \(Formatting.selector(request.permissions.selector))."
                )
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                // An endpoint may be called like a code, but only by its whole id: a mistyped code approves nothing else.
                let list = try await client.endpoints().endpoints
                try ApprovalTarget.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(subject, command: "patchbay approve", among: list.endpoints)
        // The address that was read here, and not one that is announced a moment later.
        let network = endpoint.routes.filter { $0.route.host != nil }
        let preferred = network.first { !$0.isApproved } ?? network.first
        let spec = ApprovalSpec(address: address ?? preferred?.route.address, port: port)
        let approved = try await client.approve(endpoint.id, spec)
        if format.json { return try output.document(approved) }
        guard let address = spec.address else {
            return try output.line("\(approved.id) needs no approval: its cable or its configured address is one.")
        }
        let route = approved.routes.first { $0.route.address == address && $0.isApproved }
        let place = route.map { "\($0.route.place), announced by \($0.route.host?.text ?? "?") as \($0.app)" }
        try output.line("Approved \(approved.id) at \(place ?? address).")
    }
}
