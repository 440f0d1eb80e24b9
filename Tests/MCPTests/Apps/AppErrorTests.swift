import Model
import Testing

@testable import MCP

@Suite struct AppErrorTests {
    private static let id = EndpointID("shop")
    private static let all: [AppError] =
        id.map { id in
            [
                .unavailable(id), .notApproved(id), .tokenRequired(id), .forbidden(id, .secretUse),
                .forbidden(id, .endpointCall), .notMCP(id), .timedOut(id, seconds: 15), .noHandshake(id, seconds: 5),
                .invalidResponse(id, "status 500"),
                .responseLost(id), .busy(id),
            ]
        } ?? []

    @Test(arguments: all) func `each message has the error and a next step that its audience can take`(
        failure: AppError
    ) {
        let tools = BrokerTool.allCases.map(\.rawValue)
        for audience in AppError.Audience.allCases {
            let message = failure.message(for: audience)
            #expect(message.hasPrefix("\(failure): ") && message.contains("shop"))
            guard audience != .brokerAgent else { continue }
            #expect(!tools.contains { message.contains($0) }, "\(message)")
        }
    }

    @Test func `a hint for a person is a command`() throws {
        let id = try #require(Self.id)

        #expect(AppError.tokenRequired(id).hint(for: .human) == "patchbay secret set shop")
        #expect(AppError.notApproved(id).hint(for: .human) == "patchbay approve shop")
        #expect(AppError.notMCP(id).hint(for: .human) == "patchbay forward tcp:0 --endpoint shop --detach")
        #expect(AppError.tokenRequired(id).hint(for: .brokerAgent).contains("endpoint_pair"))
        #expect(AppError.unavailable(id).hint(for: .brokerAgent).contains("endpoint_wait"))
    }

    @Test func `only errors after delivery count as delivered`() {
        #expect(Self.all.filter(\.isDelivered).map(\.code) == ["timeout", "invalid-response", "response-lost"])
    }
}
