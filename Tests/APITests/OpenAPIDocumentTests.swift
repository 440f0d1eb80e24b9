import JSON
import Model
import Testing

@testable import API

@Suite struct OpenAPIDocumentTests {
    @Test func `the header with the app's answer to a token is described with its values`() throws {
        let document = try JSON(parsing: OpenAPIDocument.text)
        let path = document["paths"]?["/v1/endpoints/{id}/secret"]

        let header = path?["put"]?["responses"]?["204"]?["headers"]?["Patchbay-Secret"]

        #expect(header?["schema"]?["enum"] == ["accepted", "rejected", "untried"])
        #expect(path?["delete"]?["responses"]?["200"]?["headers"] == nil)
    }
}
