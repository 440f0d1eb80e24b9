import FoundationEssentials
import TestSupport

/// The address of a running broker and a grant to use it.
struct AgentBroker {
    private struct Token: Decodable {
        let token: String
    }

    let port: UInt16
    let grant: String

    static func configuration(port: UInt16) -> String { "[api]\nport = \(port)\n" }

    /// A configuration with an app as the endpoint `shop`.
    static func configuration(port: UInt16, shop app: SampleApp) -> String {
        configuration(port: port)
            + "[[endpoint]]\nname = \"shop\"\nkind = \"appreveal\"\naddress = \"127.0.0.1\"\nport = \(app.port)\n"
    }

    /// Creates a grant at the broker with this socket and port.
    init(socket: String, port: UInt16, namespace: NetworkNamespace? = nil, in scratch: ScratchFolder) async throws {
        func post(_ path: String, _ body: String) async throws -> String {
            let words = ["-sS", "--fail-with-body", "--unix-socket", socket, "-H", "Content-Type: application/json"]
            let answer = try await Program.run(
                "curl",
                words + ["-d", body, "http://localhost/v1/\(path)"],
                in: scratch,
                namespace: namespace
            )
            return try JSONDecoder().decode(Token.self, from: Data(answer.joined().utf8)).token
        }
        self.port = port
        let scopes = #"["registry.read", "endpoint.call", "secret.use"]"#
        let invite = try await post("invites", #"{"permissions": {"scopes": \#(scopes), "selector": "all"}}"#)
        let client = String(repeating: "k", count: 32)
        grant = try await post("invites/redeem", #"{"token": "\#(invite)", "client": "\#(client)", "name": "tests"}"#)
    }

    func url(of endpoint: String) -> String { "http://127.0.0.1:\(port)/e/\(endpoint)/mcp" }
}
