import Model
import SystemIO
import TestSupport
import Testing

@testable import Agents
@testable import Apps

/// Requests to the client of a session.
@Suite struct SessionStoreRequestTests {
    private static let session = SessionStore.Session(id: "s", holder: "uid:7")

    private let sessions = SessionStore(key: SessionIDSigner())

    /// Returns the message of the error that the client's session returns.
    private func error(_ write: @Sendable (RPCMessage) async -> Bool) async -> String? {
        guard
            case .failure(let error) = await sessions.ask(
                SuspendedRequest("roots/list"),
                of: Self.session,
                write: write
            )
        else {
            return nil
        }
        return error.message
    }

    @Test func `a request to a client without a stream fails at once`() async {
        #expect(await error { _ in false } == "the client does not read its stream")
    }

    @Test func `a request fails at once if the client's own request has ended`() async {
        let inFlight = InFlightRequest(
            TransportFixture.call(TransportFixture.request("tools/call", [:])),
            KeepAliveTimer(clock: ManualClock())
        )
        inFlight.end(with: .cancelled)

        #expect(await error { inFlight.send($0) } == "the client does not read its stream")
    }

    @Test func `a client has at most 16 unanswered requests`() async throws {
        let sent = Replay<RPCMessage>()
        await withTaskGroup(of: Void.self) { group in
            for count in 1...SessionStore.serverRequestLimit {
                group.addTask {
                    _ = await error {
                        sent.say($0); return true
                    }
                }
                _ = try? await eventually("request \(count) is sent") { sent.soFar.count >= count }
            }
            #expect(await error { _ in true } == "the client has 16 unanswered requests already")
            group.cancelAll()
        }
        #expect(await error { _ in false } == "the client does not read its stream")
    }
}
