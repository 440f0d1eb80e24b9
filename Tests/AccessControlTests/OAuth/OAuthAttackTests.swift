import Model
import TestSupport
import Testing

@testable import AccessControl

/// The threats of docs/security.md, one test each.
@Suite(.scratchFolder) struct OAuthAttackTests {
    private let scratch = ScratchFolder.current

    private func flow(_ clock: TestClock = TestClock()) throws -> OAuthFixture {
        try OAuthFixture(try Fixture.store(in: scratch, clock: clock))
    }

    @Test(
        arguments: [
            (["code_challenge_method": "plain"], OAuthError.Code.invalidRequest),
            (["code_challenge_method": nil], .invalidRequest),
            (["code_challenge": nil], .invalidRequest),
            (["code_challenge": String(repeating: "a", count: 42)], .invalidRequest),
            (["response_type": "token"], .unsupportedResponseType),
            (["response_mode": "fragment"], .unsupportedResponseType),
            (["redirect_uri": "http://127.0.0.1:4000/other"], .invalidRedirectURI),
            (["redirect_uri": nil], .invalidRedirectURI),
            (["redirect_uri": "https://evil.example/callback"], .invalidRedirectURI),
            (["client_id": "x"], .invalidClient),
            (["client_id": nil], .invalidClient), (["resource": "x"], .invalidTarget),
            (["client_id": "https://client.example/id.json"], .invalidClient),
            (["resource": "http://evil.example/mcp"], .invalidTarget),
            (["resource": "http://127.0.0.1:7282"], .invalidTarget),
            (["resource": "http://127.0.0.1:7282/v1/grants"], .invalidTarget),
            (["resource": "http://127.0.0.1:7282/e/../mcp"], .invalidTarget),
            (["state": String(repeating: "s", count: 2_049)], .invalidRequest),
        ] as [([String: String?], OAuthError.Code)]
    )
    func `a request that downgrades PKCE, redirects elsewhere or names another server asks nobody`(
        changes: [String: String?],
        expected: OAuthError.Code
    ) async throws {
        let flow = try flow()

        #expect(await oauthError { try await flow.begin(changes) } == expected)
        #expect(await flow.store.requests.pending.isEmpty)
    }

    @Test func `a client ID with a changed registration is unknown`() async throws {
        let flow = try flow()
        let other = try flow.store.oauth.register(name: "x", redirectURIs: ["https://evil.example/"])
        let parts = (flow.client.id.split(separator: "."), other.id.split(separator: "."))

        let forged = "\(parts.1[0]).\(parts.0[1])"

        #expect(await oauthError { try await flow.begin(["client_id": forged]) } == .invalidClient)
        #expect(await oauthError { try await flow.begin(["client_id": flow.client.id + "="]) } == .invalidClient)
    }

    @Test(
        arguments: [
            ["code_verifier": String(repeating: "w", count: 43)], ["code_verifier": nil], ["code_verifier": "v"],
            ["redirect_uri": "http://127.0.0.1:4001/callback"], ["resource": "http://127.0.0.1:7282/all/mcp"],
            ["resource": "http://evil.example/mcp"], ["client_id": "another"],
        ] as [[String: String?]]
    )
    func `a stolen code is useless without the secret, the client, the URI and the resource of its request`(
        changes: [String: String?]
    ) async throws {
        let flow = try flow()
        let code = try #require(try await flow.approved()["code"])

        #expect(await oauthError { try await flow.exchange(code, changes) } == .invalidGrant)
        #expect(await oauthError { try await flow.exchange(code) } == .invalidGrant)
        #expect(await flow.store.grants.list.isEmpty)
    }

    @Test func `a code of one request is refused in the place of another one's`() async throws {
        let flow = try flow()
        let victim = try #require(try await flow.approved()["code"])
        let other = String(repeating: "o", count: 43)

        #expect(await oauthError { try await flow.exchange(victim, ["code_verifier": other]) } == .invalidGrant)
    }

    @Test func `a code that is used twice ends what it gave`() async throws {
        let flow = try flow()
        let code = try #require(try await flow.approved()["code"])
        let tokens = try await flow.exchange(code)
        #expect(await flow.isValid(tokens.access))

        #expect(await oauthError { try await flow.exchange(code) } == .invalidGrant)

        #expect(!(await flow.isValid(tokens.access)))
        #expect(await oauthError { try await flow.refresh(tokens.refresh) } == .invalidGrant)
        #expect(try Fixture.audit(in: scratch).map(\.event).contains { $0.action == .revoked && $0.alert == true })
    }

    @Test func `a code ends after 60 s`() async throws {
        let clock = TestClock()
        let flow = try flow(clock)
        let code = try #require(try await flow.approved()["code"])
        clock.pass(60)

        #expect(await oauthError { try await flow.exchange(code) } == .invalidGrant)
    }

    @Test func `an old refresh token ends its grant, with the tokens of the thief`() async throws {
        let flow = try flow()
        let stolen = try await flow.exchange(try #require(try await flow.approved()["code"]))
        var thief = stolen
        for _ in 0..<50 { thief = try await flow.refresh(thief.refresh) }
        #expect(await flow.isValid(thief.access))

        #expect(await oauthError { try await flow.refresh(stolen.refresh) } == .invalidGrant)

        #expect(!(await flow.isValid(thief.access)))
        #expect(await oauthError { try await flow.refresh(thief.refresh) } == .invalidGrant)
    }

    @Test func `a guess with the ID of a grant ends nothing`() async throws {
        let flow = try flow()
        let tokens = try await flow.exchange(try #require(try await flow.approved()["code"]))
        let guess = Token(.refresh, id: tokens.grant.id, secret: String(repeating: "0", count: 43))

        #expect(await oauthError { try await flow.refresh(guess) } == .invalidGrant)
        try await flow.store.oauth.revoke(guess.reveal(), from: Fixture.loopback)

        #expect(await flow.isValid(tokens.access))
    }

    @Test(arguments: [["client_id": "another"], ["resource": "http://127.0.0.1:7282/all/mcp"]])
    func `a refresh token is for its client and its resource`(changes: [String: String]) async throws {
        let flow = try flow()
        let tokens = try await flow.exchange(try #require(try await flow.approved()["code"]))

        #expect(await oauthError { try await flow.refresh(tokens.refresh, changes) } == .invalidGrant)
        #expect(await flow.isValid(try await flow.refresh(tokens.refresh).access))
    }

    @Test func `neither token is taken for the other`() async throws {
        let flow = try flow()
        let tokens = try await flow.exchange(try #require(try await flow.approved()["code"]))

        #expect(!(await flow.isValid(tokens.refresh)))
        #expect(await oauthError { try await flow.refresh(tokens.access) } == .invalidGrant)
    }

    @Test func `a user has 8 open requests, counted with those of programs, and a page that is loaded again has one`()
        async throws
    {
        let flow = try flow()
        let agent = AuditActor.process(uid: 1_001, pid: 77, executable: SanitizedText("/usr/bin/agent"))
        for _ in 0..<20 { _ = try await flow.begin() }
        #expect(await flow.store.requests.pending.count == 1)
        for _ in 0..<4 {
            _ = try await flow.store.requests.create(
                AccessRequestSpec(name: SanitizedText("agent"), permissions: Fixture.reader),
                by: agent
            )
        }
        for number in 0..<3 { _ = try await flow.begin(["state": "\(number)"]) }

        await #expect(throws: AccessError.self) { try await flow.begin(["state": "more"]) }
        #expect(await flow.store.requests.pending.count == 8)
        _ = try await flow.begin(["state": "another user"], user: 1_002)
    }

    @Test func `another user's browser with the same address takes nothing from a page`() async throws {
        let flow = try flow()
        let (request, secret) = try await flow.begin(user: 1_001)
        let (other, otherSecret) = try await flow.begin(user: 1_002)
        #expect(await Set(flow.store.requests.pending) == [request, other])
        _ = try await flow.store.requests.approve(request.userCode)

        #expect(try await flow.answer(otherSecret).isEmpty)
        let code = try #require(try await flow.answer(secret)["code"])

        #expect(await flow.isValid(try await flow.exchange(code).access))
        #expect(await flow.store.requests.pending == [other])
    }

    @Test func `each answer names its issuer, and a code is for the resource of its issuer alone`() async throws {
        let flow = try flow()
        for issuer in [OAuthFixture.issuer, "https://lab:7283"] {
            var query = flow.query
            query["resource"] = "\(issuer)/mcp"
            let (request, secret) = try await flow.store.oauth.begin(
                query,
                issuer: issuer,
                from: flow.source,
                user: 1_001
            )
            _ = try await flow.store.requests.approve(request.userCode)
            let answer = try await flow.answer(secret)
            #expect(answer["iss"] == issuer)
            let other = issuer == OAuthFixture.issuer ? "https://lab:7283/mcp" : "\(OAuthFixture.issuer)/mcp"
            let code = try #require(answer["code"])
            #expect(await oauthError { try await flow.exchange(code, ["resource": other]) } == .invalidGrant)
        }
        #expect(await flow.store.grants.list.isEmpty)
    }

    @Test func `a client with the name of another one is told apart by where its answer goes`() async throws {
        let flow = try flow()
        let evil = try flow.store.oauth.register(name: "Inspector", redirectURIs: ["https://evil.example/callback"])
        let (request, _) = try await flow.begin([
            "client_id": evil.id, "redirect_uri": "https://evil.example/callback",
        ])

        #expect(request.name == flow.client.name && evil.id != flow.client.id)
        #expect(request.authorization?.origin == "https://evil.example" && request.authorization?.host == nil)
        #expect(await oauthError { try await flow.begin(["client_id": evil.id]) } == .invalidRedirectURI)
    }

    @Test func `other machines together have 64 open requests`() async throws {
        var flow = try flow()
        var open = 0
        for number in 0..<100 {
            flow.source = .remote(address: "192.0.2.\(number)")
            if (try? await flow.begin(["state": "\(number)"])) != nil { open += 1 }
        }
        #expect(open == 64)
    }

    @Test func `guesses of user codes close the requests, also those of OAuth`() async throws {
        let flow = try flow()
        for _ in 0..<UserCodeAttemptLimiter.limit {
            _ = try? await flow.store.requests.approve("BBBB-BBBB")
        }

        await #expect(throws: AccessError.requestsClosed) { try await flow.begin() }
    }

    @Test func `wrong codes are slowed down`() async throws {
        let flow = try flow()
        for _ in 0..<FailedAttemptLimiter.limit { _ = await oauthError { try await flow.exchange("guess") } }

        await #expect(throws: AccessError.self) { try await flow.exchange("guess") }
        // A right one still counts.
        #expect(await flow.isValid(try await flow.exchange(try #require(try await flow.approved()["code"])).access))
    }

    @Test func `the name of a client is sanitized and short`() async throws {
        let flow = try flow()
        let client = try flow.store.oauth.register(
            name: "\u{202E}Claude\u{1B}[2J" + String(repeating: "x", count: 500),
            redirectURIs: ["https://a.example/"]
        )

        #expect(client.name.text.utf8.count <= 63)
        #expect(!client.name.text.unicodeScalars.contains { $0 == "\u{202E}" || $0 == "\u{1B}" })
        #expect(throws: OAuthError.self) {
            try flow.store.oauth.register(name: nil, redirectURIs: Array(repeating: "https://a.example/", count: 17))
        }
    }
}
