import FoundationEssentials
import Model
import Testing

@testable import API

/// `GET /health` and the schema of its response.
@Suite struct HealthTests {
    private func json(_ parts: [BrokerPart]) throws -> JSON {
        try JSON(parsing: Array(JSONCoding.encoder().encode(StatusRoutes.Health(parts))))
    }

    @Test(arguments: BrokerPart.allCases) func `health names each degraded part`(part: BrokerPart) throws {
        let health = try json([part])

        #expect(health["status"] == "degraded" && health["degraded"] == [.string(part.rawValue)])
        #expect(health["detail"]?.string?.contains(part.rawValue) == true)
    }

    @Test func `a broker without a degraded part is ok`() throws {
        let health = try json([])

        #expect(health["status"] == "ok" && health["degraded"] == [] && health["detail"] == nil)
    }

    @Test func `the schema has every part`() throws {
        let document = try JSON(parsing: Array(OpenAPIDocument.text.utf8))
        let schema = document["components"]?["schemas"]?["Health"]?["properties"]?["degraded"]?["items"]?["enum"]
        #expect(schema?.array?.compactMap(\.string) == BrokerPart.allCases.map(\.rawValue))
    }
}
