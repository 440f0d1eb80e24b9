import ArgumentParser
import Client
import Model

struct Deny: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say no: to a program that asks for access, or to an endpoint that was approved.",
        discussion: """
            An endpoint loses its approval and its secret, and what runs to it through the network is cut. What was \
            already given to a program ends with `patchbay revoke`.

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
        if let code = ShortCodeArgument.code(subject) {
            do {
                let request = try await client.denyRequest(code)
                return try output.line("Denied \(request.code): \"\(request.name)\" (\(Words.caller(request.asker))).")
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                let list = try await client.endpoints().endpoints
                try AccessSubject.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try AccessSubject.endpoint(subject, command: "patchbay deny", among: list.endpoints)
        try await client.withdrawApproval(of: endpoint.id)
        // Its cable, or that it is written down, may be a yes still.
        let stands = (try? await client.endpoint(endpoint.id))?.approval == .approved
        try output.line(
            stands
                ? "The secret of \(endpoint.id) is forgotten. It needs nobody's yes on a cable or added by hand, and can be called still."
                : "\(endpoint.id) is not approved any more, and its secret is forgotten."
        )
    }
}
