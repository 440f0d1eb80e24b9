import ArgumentParser
import Client
import Model

struct Approve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Say yes: to a program that asks for access, or to an endpoint found on the network.",
        discussion: """
            A word like WDJB-MJHT is the code of a request; look at `patchbay requests` first. Anything else is an \
            endpoint: it is approved where it is now, and has to be again when it turns up on another host.

              patchbay approve WDJB-MJHT
              patchbay approve shop-test-iphone
            """
    )

    @Argument(help: ArgumentHelp("The code of a request, or an endpoint.", valueName: "code|endpoint"))
    var subject: String
    @OptionGroup var format: JSONOption
    @OptionGroup var options: GlobalOptions

    func run() async throws {
        let client = try options.client
        let output = options.output
        if let code = ShortCodeArgument.code(subject) {
            do {
                let request = try await client.approveRequest(code)
                if format.json { return try output.document(request) }
                return try output.line(
                    "Approved \(request.code): \"\(request.name)\" (\(Words.caller(request.asker))) may "
                        + "\(Words.scopes(request.permissions)) on \(Words.selector(request.permissions.selector))."
                )
            } catch ClientError.refused(let problem) where problem.code == .notFound {
                // An endpoint may be called like a code, but only by its whole id: a mistyped code approves nothing else.
                let list = try await client.endpoints().endpoints
                try AccessSubject.check(subject, named: problem, among: list)
            }
        }
        let list = try await client.endpoints()
        let endpoint = try AccessSubject.endpoint(subject, command: "patchbay approve", among: list.endpoints)
        let approval = try await client.approve(endpoint.id)
        if format.json { return try output.document(approval) }
        try output.line("Approved \(approval.endpoint) \(Words.place(approval.place)).")
    }
}
