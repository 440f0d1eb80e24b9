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

    @Test(arguments: ["/mcp", "/e/{id}/mcp", "/all/mcp"], ["post", "get", "delete"])
    func `an error of an MCP server is a JSON-RPC message or a problem`(path: String, method: String) throws {
        let document = try JSON(parsing: OpenAPIDocument.text)

        let content = document["paths"]?[path]?[method]?["responses"]?["default"]?["content"]?.object

        #expect(content?.members.map(\.name) == ["application/json", "application/problem+json"])
    }

    @Test func `the answer while Bonjour is turned off is described`() throws {
        let paths = try JSON(parsing: OpenAPIDocument.text)["paths"]

        for (path, method) in [("/v1/advertisements", "post"), ("/v1/advertisements/ephemeral", "post")] {
            let response = paths?[path]?[method]?["responses"]?["503"]
            #expect(response?["content"]?["application/problem+json"] != nil, "\(method) \(path)")
        }
    }
}
