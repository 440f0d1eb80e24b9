import ArgumentParser
import Client
import Model

struct DenyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deny",
        abstract: "Deny a program that asks for access, or revoke the approval of an endpoint.",
        discussion: """
            An endpoint loses the approval of its network addresses and its secret; its connections are closed. A \
            program that has access already loses it with `patchbay revoke`.

              patchbay deny WDJB-MJHT
              patchbay deny shop-test-iphone
            """
    )

    @Argument(help: ArgumentHelp("The code of a request, or an endpoint.", valueName: "code|endpoint"))
    var subject: String
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if let code = UserCodeArgument.code(subject) {
            do {
                let request = try await client.denyRequest(code)
                return try output.line(
                    "Denied \(request.code): \"\(request.name)\" (\(Formatting.caller(request.asker)))."
                )
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                let list = try await client.endpoints().endpoints
                try ApprovalTarget.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try ApprovalTarget.endpoint(subject, command: "patchbay deny", among: list.endpoints)
        try await client.withdrawApproval(of: endpoint.id)
        // A cable or a configured address needs no approval.
        let stands = (try? await client.endpoint(endpoint.id))?.approval == .approved
        try output.line(
            stands
                ? "The secret of \(endpoint.id) is forgotten. It can still be called: a cable and a configured address need no approval."
                : "\(endpoint.id) is not approved any more, and its secret is forgotten."
        )
    }
}
