import Model
import TestSupport
import Testing

@testable import MCP

@Suite struct ServerRequestSenderTests {
    private static let session = SessionStore.Session(id: "s", holder: "uid:7")

    private let sessions = SessionStore(key: SessionIDSigner())

    private func sender(during boundRequest: InFlightRequest?) -> ServerRequestSender {
        ServerRequestSender(sessions: sessions, session: Self.session, boundRequest: boundRequest)
    }

    /// Returns the message of the error that the sender returns.
    private func error(during boundRequest: InFlightRequest?) async -> String? {
        let outcome = await sender(during: boundRequest).send("roots/list", nil)
        guard case .failure(let error) = outcome else { return nil }
        return error.message
    }

    @Test func `a request to a client without a stream fails at once`() async {
        #expect(await error(during: nil) == "the client does not read its stream")
    }

    @Test func `a request fails at once if the client's own request has ended`() async {
        let inFlight = InFlightRequest(KeepAliveTimer(clock: ManualClock()))
        inFlight.completion.end(with: .cancelled)

        #expect(await error(during: inFlight) == "the client's request has ended")
    }

    @Test func `a client has at most 16 unanswered requests`() async throws {
        let inFlight = InFlightRequest(KeepAliveTimer(clock: ManualClock()))
        var ids: [RPCID] = []
        for _ in 1...SessionStore.serverRequestLimit {
            ids.append(try #require(await sessions.registerServerRequest(to: Self.session) { _ in }))
        }

        #expect(await error(during: inFlight) == "the client has 16 unanswered requests already")
        await sessions.cancelServerRequest(ids[0], of: Self.session)
        inFlight.completion.end(with: .cancelled)
        #expect(await error(during: inFlight) == "the client's request has ended")
    }
}
