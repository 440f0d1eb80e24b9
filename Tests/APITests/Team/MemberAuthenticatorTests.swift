import AccessControl
import FoundationEssentials
import HTTPTypes
import Model
import NIOCore
import NIOEmbedded
import Samples
import Synchronization
import Testing

@testable import API
@testable import Team

/// The clients of the team listener.
@Suite struct MemberAuthenticatorTests {
    /// The members of a team, which a test changes.
    private final class Members: MemberDirectory {
        private let keys: Mutex<[HostName: KeyPin]>

        init(_ keys: [HostName: KeyPin]) { self.keys = Mutex(keys) }

        func accepts(_ host: HostName, key: KeyPin) -> Bool { keys.withLock { $0[host] == key } }
        func remove(_ host: HostName) { keys.withLock { $0[host] = nil } }
    }

    private struct Security: MemberTransportSecurity {
        let peer: (host: HostName, key: KeyPin)?

        func host(of channel: any Channel) -> (host: HostName, key: KeyPin)? { peer }
    }

    private static let joinPath = "/v1/team/members"

    private let lab1: HostName
    private let key: KeyPin
    private let otherKey: KeyPin
    private let members: Members
    private let connections = MemberConnections()

    init() throws {
        lab1 = HostName("lab1")
        key = try #require(KeyPin(String(repeating: "A", count: 52)))
        otherKey = try #require(KeyPin("B" + String(repeating: "A", count: 51)))
        members = Members([lab1: key])
    }

    private func authenticator(_ peer: (host: HostName, key: KeyPin)?) -> MemberAuthenticator {
        MemberAuthenticator(Security(peer: peer), members: members, connections: connections)
    }

    private func request(_ fields: (String, String)..., for path: String = "/v1/status") -> HTTPRequest {
        let method: HTTPRequest.Method = path == Self.joinPath ? .post : .get
        var request = HTTPRequest(method: method, scheme: nil, authority: "lab2", path: path)
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { request.headerFields.append(HTTPField(name: name, value: value)) }
        }
        return request
    }

    private func header(_ scopes: Set<Scope>, isAgent: Bool = false) throws -> (String, String) {
        let caller = TeamCaller(
            holder: "uid:1000",
            name: SanitizedText("user 1000"),
            isAgent: isAgent,
            permissions: Permissions(scopes, on: .all)
        )
        return (TeamCaller.header, try #require(caller.headerValue))
    }

    @Test func `a client of a member has the asserted permissions, and never those of an owner`() async throws {
        let principal = try await authenticator((lab1, key)).authenticate(
            request(try header(Set(Scope.allCases))),
            on: NIOAsyncTestingChannel()
        )
        #expect(!principal.isOwner && principal.isRemote && principal.member?.host == lab1)
        for scope in Scope.allCases { #expect(principal.may(scope) == !scope.isHostOnly, "\(scope)") }
        #expect(principal.holder == "host:lab1/uid:1000")
        #expect(principal.leaseHolder.name.text == "user 1000 on lab1")
        #expect(principal.leaseHolder.agentKey == "host:lab1/uid:1000")
        #expect(principal.actor == .member(host: lab1, client: SanitizedText("user 1000")))
    }

    @Test func `a request without a caller may only renew the certificate of its host`() async throws {
        let principal = try await authenticator((lab1, key)).authenticate(request(), on: NIOAsyncTestingChannel())
        for scope in Scope.allCases { #expect(!principal.may(scope)) }
        let open = RouteTable.all.filter { (try? $0.authorize(principal)) != nil }
        #expect(open.map(\.path) == ["/v1/team/members/renewal"])
    }

    @Test func `a client of another host uses only the routes for apps, streams, leases and artifacts`() async throws {
        let principal = try await authenticator((lab1, key)).authenticate(
            request(try header(Set(Scope.allCases))),
            on: NIOAsyncTestingChannel()
        )
        let open = RouteTable.all.filter { (try? $0.authorize(principal)) != nil }
        #expect(
            Set(open.map { "\($0.method) \($0.path)" }) == [
                "GET /v1/endpoints/{id}/screen", "GET /v1/endpoints/{id}/screen/picture",
                "POST /v1/endpoints/{id}/screen/input", "GET /v1/endpoints/{id}/log",
                "GET /e/{id}/mcp", "POST /e/{id}/mcp", "DELETE /e/{id}/mcp", "GET /v1/endpoints/{id}/tools",
                "POST /v1/endpoints/{id}/call", "POST /v1/endpoints/{id}/probe", "GET /v1/streams",
                "GET /v1/leases", "POST /v1/leases", "DELETE /v1/leases/{id}", "GET /v1/artifacts/{sha}",
            ]
        )
    }

    @Test func `without a certificate a caller is ignored`() async throws {
        let principal = try await authenticator(nil).authenticate(
            request(try header([.registryRead]), for: Self.joinPath),
            on: NIOAsyncTestingChannel()
        )
        guard case .anonymous = principal.role else { return #expect(Bool(false), "\(principal.role)") }
        #expect(!principal.may(.registryRead))
    }

    @Test func `a client without a certificate may only join`() async throws {
        let others = RouteTable.all.filter { $0.method != .post || $0.path != Self.joinPath }
        #expect(others.count == RouteTable.all.count - 1)
        let targets =
            others.map { ($0.method, $0.path) } + [
                (.post, "\(Self.joinPath)/"), (.post, "\(Self.joinPath)?x=1"), (.post, "/v1/team/members/lab1"),
            ]
        for (method, path) in targets {
            let request = HTTPRequest(method: method, scheme: nil, authority: "lab2", path: path)
            let problem = await #expect(throws: Problem.self, "\(method) \(path)") {
                try await authenticator(nil).authenticate(request, on: NIOAsyncTestingChannel())
            }
            #expect(problem?.code == .unauthorized && problem?.detail.contains("no certificate") == true)
        }
    }

    @Test func `a host with another key, or of another name, is refused`() async throws {
        let lab3: HostName = "lab3"
        for peer in [(lab1, otherKey), (lab3, key)] {
            let problem = await #expect(throws: Problem.self) {
                try await authenticator(peer).authenticate(
                    request(try header([.registryRead])),
                    on: NIOAsyncTestingChannel()
                )
            }
            #expect(problem?.code == .forbidden)
        }
    }

    @Test func `a removed host is refused at its next request, and its connection is closed`() async throws {
        let channel = NIOAsyncTestingChannel()
        try await channel.connect(to: SocketAddress(ipAddress: "10.0.0.1", port: 1))
        let authenticator = authenticator((lab1, key))
        _ = try await authenticator.authenticate(request(try header([.registryRead])), on: channel)
        #expect(connections.count == 1)
        #expect(await connections.closeRefused(by: members).isEmpty && channel.isActive)

        members.remove(lab1)

        await #expect(throws: Problem.self) {
            try await authenticator.authenticate(request(try header([.registryRead])), on: channel)
        }
        #expect(await connections.closeRefused(by: members) == [lab1])
        #expect(!channel.isActive && connections.count == 0)
    }

    @Test func `connections from and to a removed host are closed, and those of other hosts stay`() async throws {
        let lab3: HostName = "lab3"
        let members = Members([lab1: key, lab3: otherKey])
        let channels = [NIOAsyncTestingChannel(), NIOAsyncTestingChannel(), NIOAsyncTestingChannel()]
        for channel in channels { try await channel.connect(to: SocketAddress(ipAddress: "10.0.0.1", port: 1)) }
        connections.add(channels[0], of: lab1, key: key)
        for (channel, host, key) in [(channels[1], lab1, key), (channels[2], lab3, otherKey)] {
            try await channel.eventLoop.submit { [connections] in
                try connections.addOutgoing(channel, to: host, key: key)
            }.get()
        }

        members.remove(lab1)

        #expect(await connections.closeRefused(by: members) == [lab1])
        #expect(channels.map(\.isActive) == [false, false, true] && connections.count == 1)
    }

    @Test func `an invalid caller, two callers and a token are refused`() async throws {
        let caller = try header([.registryRead])
        for fields in [[(TeamCaller.header, "e30")], [caller, caller], [caller, ("Authorization", "Bearer x")]] {
            var request = request()
            for (name, value) in fields {
                request.headerFields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
            }
            let problem = await #expect(throws: Problem.self) {
                try await authenticator((lab1, key)).authenticate(request, on: NIOAsyncTestingChannel())
            }
            #expect(problem?.code == .badRequest)
        }
    }

    @Test func `a client of another host sees the endpoints of this host only`() async throws {
        let principal = try await authenticator((lab1, key)).authenticate(
            request(try header([.registryRead])),
            on: NIOAsyncTestingChannel()
        )
        #expect(principal.canSee("shop", approvedApp: nil))
        #expect(!principal.canSee("shop.lab3", approvedApp: nil))
    }

    @Test func `a client of another host uses no route of owners, processes and grants`() async throws {
        let principal = try await authenticator((lab1, key)).authenticate(
            request(try header(Set(Scope.allCases))),
            on: NIOAsyncTestingChannel()
        )
        for route in RouteTable.all where [.owner, .localProcess].contains(route.permission) {
            #expect(throws: Problem.self, "\(route.path)") { try route.permission.authorize(principal) }
        }
        #expect(throws: Problem.self) { try RoutePermission.scope(.inviteCreate).authorize(principal) }
        try RoutePermission.scope(.endpointCall).authorize(principal)
        try RoutePermission.grantHolder.authorize(principal)
    }
}

/// The headers that pass from a client to the broker of another host.
@Suite struct TeamProxyTests {
    @Test func `no header with a credential or of the connection is passed on`() {
        let names = [
            "Authorization", "Cookie", "Patchbay-Caller", "Origin", "Host", "Connection", "Transfer-Encoding",
            "Content-Length",
            "Upgrade", "Expect", "Sec-Fetch-Site", "X-Anything",
        ]
        let fields = HTTPFields(names.compactMap { HTTPField.Name($0).map { HTTPField(name: $0, value: "x") } })
        #expect(TeamProxy.forwarded(fields).isEmpty)
    }

    /// A response with a body of one part.
    private final class Answer: HostResponse {
        let status: Int
        let headers: [(name: String, value: String)] = []
        private let body: Mutex<ByteBuffer?>
        private let closed = Mutex(false)

        init(_ status: Int, _ body: String = "") {
            self.status = status
            self.body = Mutex(ByteBuffer(string: body))
        }

        var isClosed: Bool { closed.withLock { $0 } }

        func next() async throws -> ByteBuffer? {
            body.withLock { body in
                defer { body = nil }
                return body
            }
        }

        func close() { closed.withLock { $0 = true } }
    }

    @Test func `a status that is none of HTTP is a problem that names the host`() throws {
        let host: HostName = "lab2"
        for status in [-1, 0, 99, 100, 101, 199, 600, 999, 1_000, Int.max] {
            let answer = Answer(status)
            let problem = #expect(throws: Problem.self) { try TeamProxy.requireStatus(of: answer, from: host) }
            #expect(problem?.detail == "the host lab2 answers with the invalid status \(status)")
            #expect(answer.isClosed)
        }
        for status in [200, 204, 304, 404, 599] { try TeamProxy.requireStatus(of: Answer(status), from: host) }
    }

    @Test func `the texts of another broker have no characters with an effect, and a limited length`() async throws {
        let host: HostName = "lab2"
        let bad = Problem(.conflict, "a\u{1B}[2J\n" + String(repeating: "x", count: 5_000), hint: "\u{202E}b")
        let text = String(decoding: try JSONCoding.encoder().encode(bad), as: UTF8.self)

        let problem = await #expect(throws: Problem.self) {
            try await TeamProxy.bytes(of: Answer(409, text), from: host)
        }

        let detail = try #require(problem?.detail)
        #expect(detail.hasPrefix("on the host lab2: a\u{FFFD}[2J\u{FFFD}xxx") && detail.utf8.count < 1_100)
        #expect(problem?.hint == "on lab2: \u{FFFD}b" && problem?.code == .conflict)
    }

    @Test func `the headers of MCP are passed on`() {
        let names = [
            "Accept", "Content-Type", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "Mcp-Method",
            "traceparent", "tracestate",
        ]
        let fields = HTTPFields(names.compactMap { HTTPField.Name($0).map { HTTPField(name: $0, value: "x") } })
        #expect(TeamProxy.forwarded(fields).map(\.name) == names)
    }

    @Test func `every route for an endpoint says how it serves one of another host`() {
        for route in RouteTable.all where route.path.contains("{id}") {
            switch route.path {
            case "/e/{id}/mcp": #expect(route.otherHosts == .forwarded(.mcp))
            case "/v1/endpoints/{id}/tools", "/v1/endpoints/{id}/screen", "/v1/endpoints/{id}/screen/picture",
                "/v1/endpoints/{id}/screen/input", "/v1/endpoints/{id}/log":
                #expect(route.otherHosts == .forwarded(.tools))
            case "/v1/endpoints/{id}/call": #expect(route.otherHosts == .forwarded(.call))
            case "/v1/endpoints/{id}/approval", "/v1/endpoints/{id}/denial", "/v1/endpoints/{id}/secret",
                "/v1/endpoints/{id}/vm-service", "/v1/endpoints/{id}/pages":
                #expect(route.otherHosts == .refused, "\(route.path)")
            case "/v1/endpoints/{id}": #expect(route.otherHosts == (route.method == .delete ? .refused : .here))
            case "/v1/endpoints/{id}/probe", "/v1/leases/{id}": #expect(route.otherHosts == .asked, "\(route.path)")
            default: #expect(route.otherHosts == .here, "\(route.path)")
            }
        }
        // No other request of another host is served.
        let paths = RouteTable.all.filter { $0.otherHosts == .asked }.map(\.path)
        #expect(
            paths == [
                "/v1/endpoints/{id}/probe", "/v1/streams", "/v1/leases", "/v1/leases", "/v1/leases/{id}",
                "/v1/team/members/renewal", "/v1/artifacts/{sha}",
            ]
        )
    }
}
