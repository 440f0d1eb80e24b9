import Model
import Testing

@testable import MCP

@Suite struct AppErrorTests {
    private static let id = EndpointID("shop")
    private static let all: [AppError] =
        id.map { id in
            [
                .away(id), .notApproved(id), .needsSecret(id), .notPermitted(id, .secretUse),
                .notPermitted(id, .endpointCall), .noTools(id), .tooSlow(id, seconds: 15), .mute(id, seconds: 5),
                .unclear(id, "status 500"),
                .lostAfterDelivery(id), .busy(id),
            ]
        } ?? []

    @Test(arguments: all) func `everybody is told what happened, and what to do with the means they have`(
        failure: AppError
    ) {
        let tools = BrokerTool.allCases.map(\.rawValue)
        for reader in AppError.Reader.allCases {
            let sentence = failure.sentence(for: reader)
            #expect(sentence.hasPrefix("\(failure): ") && sentence.contains("shop"))
            guard reader != .agent else { continue }
            #expect(!tools.contains { sentence.contains($0) }, "\(sentence)")
        }
    }

    @Test func `a person is told the command itself`() throws {
        let id = try #require(Self.id)

        #expect(AppError.needsSecret(id).next(for: .person) == "patchbay secret set shop")
        #expect(AppError.notApproved(id).next(for: .person) == "patchbay approve shop")
        #expect(AppError.noTools(id).next(for: .person) == "patchbay forward tcp:0 --endpoint shop")
        #expect(AppError.needsSecret(id).next(for: .agent).contains("endpoint_pair"))
        #expect(AppError.away(id).next(for: .agent).contains("endpoint_wait"))
    }

    @Test func `only what the app has got is a result, because it may have been done`() {
        #expect(Self.all.filter(\.isDelivered).map(\.code) == ["too-slow", "unclear", "lost-after-delivery"])
    }
}
