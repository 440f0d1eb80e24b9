import Model
import Samples
import Testing

@testable import Apps

@Suite struct AppErrorTests {
    private static let id = EndpointID("shop")
    private static let all: [AppError] = [
        .unreachable(DialError(.refused, "nothing listens there")), .notApproved, .denied,
        .mismatch(.network(NetworkRoute(address: "127.0.0.1", port: 5_000)), found: SanitizedText("bank")),
        .tokenRequired(.missing), .forbidden(.secretUse), .forbidden(.endpointCall), .notMCP, .busy,
        .noHandshake(seconds: 5), .permissionChanged, .accessEnded, .timedOut(seconds: 15), .responseLost,
        .invalidResponse("status 500"),
    ]

    @Test(arguments: all) func `each message has the error and a next step that its audience can take`(
        failure: AppError
    ) throws {
        let id = Self.id
        for audience in AppError.Audience.allCases {
            let message = failure.message(for: audience, at: id)
            #expect(message.hasPrefix("\(failure.description(at: id)): ") && message.contains("shop"))
            guard audience != .brokerAgent else { continue }
            // Only agents of the broker have its tools.
            #expect(!message.contains("endpoint_") && !message.contains("port_forward"))
        }
    }

    @Test func `a hint for a person is a command`() throws {
        let id = Self.id
        func hint(_ error: AppError, _ audience: AppError.Audience) -> String { error.hint(for: audience, at: id) }

        #expect(hint(.tokenRequired(.rejected), .human) == "patchbay secret set shop")
        #expect(hint(.notApproved, .human) == "patchbay approve shop")
        #expect([.human, .appAgent, .brokerAgent].allSatisfy { !hint(.denied, $0).contains("approve") })
        #expect(hint(.notMCP, .human) == "patchbay forward tcp:0 --endpoint shop --detach")
        #expect(hint(.tokenRequired(.outdated), .brokerAgent).contains("endpoint_pair"))
        #expect(hint(Self.all[0], .brokerAgent).contains("endpoint_wait"))
    }

    @Test func `an unreachable app is described by the reason of its route`() throws {
        let id = Self.id
        let refused = DialError(.refused, "nothing listens on 127.0.0.1:9; start the app there, or check the port")
        let absent = DialError(.deviceAbsent, "phone X is not plugged in; connect it by cable")

        let refusal = AppError.unreachable(refused).message(for: .human, at: id)
        let cable = AppError.unreachable(absent).message(for: .human, at: id)

        #expect(refusal.hasPrefix("shop was not reached: nothing listens on 127.0.0.1:9; start the app there"))
        #expect(!refusal.contains("plug") && cable.contains("not plugged in"))
    }

    @Test func `the end of a caller's own time limit is reported with that limit`() {
        let limit = Duration.seconds(3)

        #expect(AppError.timedOut(seconds: 2, cause: "x").reporting(limit: limit) == .timedOut(seconds: 3, cause: "x"))
        #expect(AppError.noHandshake(seconds: 2).reporting(limit: limit) == .noHandshake(seconds: 3))
        #expect(AppError.busy.reporting(limit: limit) == .busy)
    }

    @Test(arguments: AppError.Audience.allCases)
    func `a timeout is explained by the profile of the server, if it has one`(audience: AppError.Audience) throws {
        let id = Self.id
        for error in [AppError.timedOut(seconds: 15, cause: "it sleeps"), .noHandshake(seconds: 5, cause: "it sleeps")]
        { #expect(error.message(for: audience, at: id) == "\(error.description(at: id)): it sleeps") }
    }

    @Test func `only errors after delivery count as delivered`() {
        #expect(
            Self.all.filter(\.isDelivered).map(\.code)
                == ["access-ended", "timeout", "response-lost", "invalid-response"]
        )
    }
}
