import FoundationEssentials
import Model
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import AccessControl

@Suite(.scratchFolder) struct ClientMetadataTests {
    private let scratch = ScratchFolder.current
    private static let id = "https://app.example/oauth/client.json"

    private static func document(_ changes: [String: JSON?] = [:]) -> [UInt8] {
        var document: JSONObject = [
            "client_id": .string(id), "client_name": "App", "redirect_uris": [.string(OAuthFixture.callback)],
            "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"],
        ]
        for (name, value) in changes { document[name] = value }
        return Array(JSON.object(document).bytes)
    }

    private func client(_ document: [UInt8]) throws -> OAuthClient {
        try OAuthClient(metadata: document, at: ClientMetadataURL(Self.id))
    }

    @Test(arguments: [
        "https://app.example/client.json", "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://a.b/",
        "https://xn--bcher-kva.example/a%20b",
    ])
    func `the URL of a client is https, with a host name and a path`(text: String) throws {
        let url = try ClientMetadataURL(text)
        #expect(url.text == text && text == "https://\(url.host)\(url.path)")
    }

    @Test(arguments: [
        "http://app.example/c", "https://app.example", "https://localhost/c", "https://127.0.0.1/c", "https://0x7f.1/c",
        "https://2130706433/c", "https://[::1]/c", "https://app.example:443/c", "https://app.example:22/c",
        "https://user@app.example/c", "https://app.example/c?x=1", "https://app.example/c#x", "https://App.example/c",
        "https://app.example/../c", "https://app.example/a/%2E%2e/c", "https://app.example/./c",
        "https://app..example/c",
        "https://.example/c", "https://app.example./c", "https://app.example/a b", "https://app.example/\r\nHost: x",
        "https://bücher.example/c", "https://app.example\\@evil.example/c",
        "https://app.example/" + String(repeating: "a", count: 500),
    ])
    func `any other URL of a client is refused`(text: String) {
        #expect(throws: OAuthError.self) { try ClientMetadataURL(text) }
    }

    @Test(
        arguments: [
            ["client_id": "https://app.example/other.json"], ["client_id": nil],
            ["client_id": "https://APP.example/oauth/client.json"], ["client_name": nil], ["client_name": 1],
            ["redirect_uris": nil], ["redirect_uris": []], ["redirect_uris": [1]],
            ["redirect_uris": "https://app.example/"],
            ["redirect_uris": ["https://app.example/", "javascript:alert(1)"]], ["client_secret": "x"],
            ["client_secret_expires_at": 0], ["token_endpoint_auth_method": "client_secret_basic"],
            ["token_endpoint_auth_method": "private_key_jwt"], ["grant_types": ["implicit"]],
            ["response_types": ["token"]],
        ] as [[String: JSON?]]
    )
    func `a document with another ID, a secret or a wrong redirect URI is refused`(changes: [String: JSON?]) {
        #expect(throws: OAuthError.self) { try client(Self.document(changes)) }
    }

    @Test(arguments: ["", "[]", "{", "null", #"{"client_id":"a","client_id":"b"}"#])
    func `what is no JSON object is no document`(text: String) {
        #expect(throws: OAuthError.self) { try client(Array(text.utf8)) }
    }

    @Test func `an owner sees the host that vouches for the redirect URI, and the code is for the URL`() async throws {
        let flow = try OAuthFixture(try Fixture.store(in: scratch))
        let documents = ClientMetadataCache { _ in Self.document() }
        var query = flow.query
        query["client_id"] = Self.id
        let (request, secret) = try await flow.store.oauth.begin(
            query,
            issuer: OAuthFixture.issuer,
            from: flow.source,
            user: 1_001,
            documents: documents
        )
        #expect(request.name.text == "App" && request.authorization?.host == "app.example")
        #expect(request.authorization?.asker.hasSuffix("with the client ID of app.example") == true)
        _ = try await flow.store.requests.approve(request.userCode)
        let code = try #require(try await flow.answer(secret)["code"])

        let tokens = try await flow.exchange(code, ["client_id": Self.id])

        #expect(await flow.isValid(try await flow.refresh(tokens.refresh, ["client_id": Self.id]).access))
        query["redirect_uri"] = "https://evil.example/callback"
        let code2 = await oauthError {
            try await flow.store.oauth.begin(
                query,
                issuer: OAuthFixture.issuer,
                from: flow.source,
                user: 1_001,
                documents: documents
            )
        }
        #expect(code2 == .invalidRedirectURI)
    }

    @Test func `a document is kept for ten minutes, an error never, and 64 documents at most`() async throws {
        let time = Mutex(ContinuousClock.now)
        let fetches = Mutex(0)
        let cache = ClientMetadataCache(now: { time.withLock { $0 } }) { url in
            let number = fetches.withLock { count in
                count += 1
                return count
            }
            if number == 1 { throw OAuthError(.invalidClient, "away") }
            return Self.document(["client_id": .string(url.text)])
        }
        func get(_ number: Int = 0) async throws {
            _ = try await cache.client(at: ClientMetadataURL("https://app.example/\(number)"), for: .user(1))
        }
        await #expect(throws: OAuthError.self) { try await get() }
        for _ in 0..<3 { try await get() }
        #expect(fetches.withLock { $0 } == 2)
        time.withLock { $0 += .seconds(600) }
        try await get()
        #expect(fetches.withLock { $0 } == 3)
        for number in 1...64 {
            time.withLock { $0 += .milliseconds(1) }
            try await get(number)
        }
        try await get(64)
        #expect(fetches.withLock { $0 } == 67)
        try await get()
        #expect(fetches.withLock { $0 } == 68)
    }

    @Test func `a requester has two fetches at a time, and all have eight`() async throws {
        let (started, waiting) = AsyncStream.makeStream(of: Void.self)
        let end = Mutex([Promise<Void>]())
        let cache = ClientMetadataCache { url in
            let promise = Promise<Void>()
            end.withLock { $0.append(promise) }
            waiting.yield()
            try await promise.value()
            return Self.document(["client_id": .string(url.text)])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            func add(_ number: Int) throws {
                let url = try ClientMetadataURL("https://app.example/\(number)")
                group.addTask { _ = try await cache.client(at: url, for: .user(UInt32(number / 2))) }
            }
            var events = started.makeAsyncIterator()
            for number in 0..<2 { try add(number) }
            for _ in 0..<2 { _ = await events.next() }
            let other = try ClientMetadataURL("https://app.example/other")
            await #expect(throws: AccessError.self) { _ = try await cache.client(at: other, for: .user(0)) }
            for number in 2..<8 { try add(number) }
            for _ in 0..<6 { _ = await events.next() }
            await #expect(throws: AccessError.self) { _ = try await cache.client(at: other, for: .user(9)) }
            for promise in end.withLock({ $0 }) { promise.complete(.success(())) }
            try await group.waitForAll()
        }
    }
}
