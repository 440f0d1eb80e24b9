import Model
import Samples
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct OAuthFlowTests {
    private let scratch = ScratchFolder.current

    @Test func `an owner's approval gives a code, and the code a grant for one MCP server`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let (request, secret) = try await flow.begin()
        guard case .waiting = try await flow.store.oauth.answer(for: secret) else {
            Issue.record("it does not wait")
            return
        }
        #expect(await flow.store.requests.pending == [request])
        #expect(request.authorization?.asker == "a browser of user 1001, for http://127.0.0.1:4000")
        #expect(request.authorization?.origin == "http://127.0.0.1:4000")
        _ = try await flow.store.requests.approve(request.userCode, by: Fixture.owner, from: Fixture.socket)

        let answer = try await flow.answer(secret)
        #expect(answer["state"] == "the state" && answer["iss"] == OAuthFixture.issuer)
        let tokens = try await flow.exchange(try #require(answer["code"]))

        let grant = try await flow.store.grants.authenticate(tokens.access, from: Fixture.loopback)
        #expect(grant.resource == "http://127.0.0.1:7282/mcp" && grant.resourcePath == "/mcp")
        #expect(grant.permissions == Permissions([.registryRead, .endpointCall, .secretUse], on: .all))
        #expect(grant.name.text == "Inspector" && grant.remote != true)
        #expect(try await flow.answer(secret).isEmpty)
    }

    @Test func `a client that names no resource gets a token for /mcp`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let code = try #require(try await flow.approved(["resource": nil])["code"])

        let tokens = try await flow.exchange(code, ["resource": nil])

        #expect(tokens.grant.resource == "http://127.0.0.1:7282/mcp")
    }

    @Test func `an owner approves a part of the scopes and apps, and the client gets no more`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let (request, secret) = try await flow.begin(["scope": "registry.read endpoint.call tunnel.open"])
        let limits = AccessRequestLimits(selector: .bundles(["com.example.shop"]), tools: .readOnly)
        let approved = try await flow.store.requests.approve(
            request.userCode,
            limits: limits,
            by: Fixture.owner,
            from: Fixture.socket
        )

        let tokens = try await flow.exchange(try #require(try await flow.answer(secret)["code"]))

        let part = Permissions(
            [.registryRead, .endpointCall],
            on: .bundles(["com.example.shop"]),
            tools: .readOnly
        )
        #expect(approved.permissions == part && tokens.grant.permissions == part)
        let renewed = try await flow.refresh(tokens.refresh, ["scope": "registry.read endpoint.call tunnel.open"])
        #expect(renewed.grant.permissions == part)
    }

    @Test(
        arguments: [
            AccessRequestLimits(scopes: [.registryRead, .tunnelOpen]), AccessRequestLimits(scopes: [.admin]),
            AccessRequestLimits(scopes: []), AccessRequestLimits(selector: .all),
            AccessRequestLimits(selector: .endpoints(["shop", "bank"])),
            AccessRequestLimits(selector: .bundles(["com.example.shop"])),
        ]
    )
    func `an approval gives no more than was asked, and the request stays open`(limits: AccessRequestLimits)
        async throws
    {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let (request, secret) = try await flow.begin(["resource": "\(OAuthFixture.issuer)/e/shop/mcp"])

        await #expect(throws: AccessError.self) {
            try await flow.store.requests.approve(
                request.userCode,
                limits: limits,
                by: Fixture.owner,
                from: Fixture.socket
            )
        }

        #expect(await flow.store.requests.pending == [request])
        guard case .waiting = try await flow.store.oauth.answer(for: secret) else {
            Issue.record("it does not wait")
            return
        }
    }

    @Test func `a grant for an app's MCP server reaches no other app`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let resource = "HTTP://127.0.0.1:7282/e/shop-iphone/mcp"
        let code = try #require(
            try await flow.approved(["resource": resource, "scope": "registry.read admin x"])["code"]
        )

        let tokens = try await flow.exchange(code, ["resource": resource])

        let shop: EndpointID = "shop-iphone"
        #expect(tokens.grant.permissions == Permissions([.registryRead], on: .endpoints([shop])))
        #expect(tokens.grant.resource == "http://127.0.0.1:7282/e/shop-iphone/mcp")
    }

    @Test func `a denial sends the browser back without a code, and silence nowhere`() async throws {
        let clock = TestClock()
        let flow = try OAuthFixture(try Fixture.store(in: scratch, clock: clock))
        let (request, secret) = try await flow.begin()
        _ = try await flow.store.requests.deny(request.userCode)

        let answer = try await flow.answer(secret)
        #expect(answer == ["error": "access_denied", "state": "the state", "iss": OAuthFixture.issuer])

        let (_, silent) = try await flow.begin()
        clock.pass(301)
        #expect(try await flow.answer(silent).isEmpty)
        #expect(try await flow.answer("unknown").isEmpty)
    }

    @Test func `an approval at the remote listener counts there, and one on loopback does not`() async throws {
        var flow = try OAuthFixture(try Fixture.store(in: scratch))
        let local = try await flow.exchange(try #require(try await flow.approved()["code"]))
        flow.source = .remote(address: "192.0.2.7")
        let remote = try await flow.exchange(try #require(try await flow.approved()["code"]))

        #expect(!(await flow.isValid(local.access)))
        #expect(await oauthError { try await flow.refresh(local.refresh) } == .invalidGrant)
        #expect(await flow.isValid(remote.access))
        #expect(remote.grant.remote == true)
    }

    @Test func `a browser on loopback whose user is unknown gets no token for other machines`() async throws {
        var flow = try OAuthFixture(try Fixture.store(in: scratch))
        let (request, secret) = try await flow.begin(user: nil)
        #expect(request.authorization?.asker == "a browser on this machine, for http://127.0.0.1:4000")
        _ = try await flow.store.requests.approve(request.userCode)

        let tokens = try await flow.exchange(try #require(try await flow.answer(secret)["code"]))

        #expect(await flow.isValid(tokens.access))
        flow.source = .remote(address: "192.0.2.7")
        #expect(!(await flow.isValid(tokens.access)))
    }

    @Test func `an access token whose hour is over is no guess`() async throws {
        let clock = TestClock()
        let flow = try OAuthFixture(try Fixture.store(in: scratch, clock: clock))
        let tokens = try await flow.exchange(try #require(try await flow.approved()["code"]))
        clock.pass(3_600)

        for _ in 0..<20 {
            await #expect(throws: AccessError.refused) {
                try await flow.store.grants.authenticate(tokens.access, from: Fixture.loopback)
            }
        }
        #expect(try Fixture.audit(in: scratch).map(\.event.action).contains(.refused) == false)
        #expect(await flow.isValid(try await flow.refresh(tokens.refresh).access))
    }

    @Test func `a client of another broker is unknown`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let other = try AccessStore(in: try scratch.makeFolder("other"), logger: .quiet)
        let client = try other.oauth.register(name: "Inspector", redirectURIs: [OAuthFixture.callback])

        #expect(await oauthError { try await flow.begin(["client_id": client.id]) } == .invalidClient)
    }

    @Test func `a client ID works after a restart, and 10,000 registrations are kept nowhere`() async throws {
        var store = try Fixture.store(in: scratch)
        let flow = try OAuthFixture(store)
        for number in 0..<10_000 {
            _ = try store.oauth.register(name: "client \(number)", redirectURIs: [OAuthFixture.callback])
        }
        let before = await store.state
        #expect(before.grants.isEmpty && before.invites.isEmpty)
        try await store.close()
        store = try Fixture.store(in: scratch)

        let (request, _) = try await store.oauth.begin(
            flow.query,
            issuer: OAuthFixture.issuer,
            from: Fixture.loopback,
            user: nil
        )

        #expect(request.name.text == "Inspector")
    }

    @Test func `an access token ends after an hour, and is renewed with the refresh token`() async throws {
        let clock = TestClock()
        let flow = try OAuthFixture(try Fixture.store(in: scratch, clock: clock))
        let first = try await flow.exchange(try #require(try await flow.approved()["code"]))
        clock.pass(3_601)
        #expect(!(await flow.isValid(first.access)))

        let second = try await flow.refresh(first.refresh, ["resource": "\(OAuthFixture.issuer)/mcp"])

        #expect(await flow.isValid(second.access))
        #expect(!(await flow.isValid(first.access)))
        #expect(second.grant.id == first.grant.id && second.access.reveal() != first.access.reveal())
        clock.pass(3_601)
        let third = try await flow.refresh(second.refresh)
        #expect(await flow.isValid(third.access))
    }

    @Test func `a revocation ends the access token and the refresh token`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        for revoke in [true, false] {
            let tokens = try await flow.exchange(try #require(try await flow.approved()["code"]))
            if revoke {
                try await flow.store.grants.revoke(.one(tokens.grant.id), by: Fixture.owner, from: Fixture.socket)
            } else {
                try await flow.store.oauth.revoke(tokens.refresh.reveal(), from: Fixture.loopback)
            }
            #expect(!(await flow.isValid(tokens.access)))
            #expect(await oauthError { try await flow.refresh(tokens.refresh) } == .invalidGrant)
        }
    }

    @Test func `revoking everything ends an approval whose code is not used yet`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let code = try #require(try await flow.approved()["code"])
        try await flow.store.grants.revoke(.all, by: Fixture.owner, from: Fixture.socket)

        #expect(await oauthError { try await flow.exchange(code) } == .invalidGrant)
    }
}
