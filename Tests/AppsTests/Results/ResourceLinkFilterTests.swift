import AccessControl
import Model
import Samples
import Testing

@testable import Apps

@Suite struct ResourceLinkFilterTests {
    /// Artifacts of one name.
    private struct Artifacts: ArtifactReader {
        func artifact(_ sha: String, for principal: Principal) async -> Artifact? {
            sha == "known" ? Artifact(bytes: [], mimeType: "video/mp4") : nil
        }
    }

    private static func link(_ uri: String) -> JSON { ["type": "resource_link", "uri": .string(uri), "name": "x"] }

    private static func filtered(_ uri: String) async throws -> [JSON] {
        let filter = ResourceLinkFilter(ownPort: 7_282)
        let before: JSON = ["type": "text", "text": "before"]
        let result = await filter.filtered(
            ["content": [before, link(uri)]],
            of: "shop-iphone",
            for: .sampleOwner,
            Artifacts()
        )
        let content = try #require(result["content"]?.array)
        #expect(content.first == before)
        return Array(content.dropFirst())
    }

    @Test(arguments: ["file:///etc/passwd", "FILE:/x", " file:///x"])
    func `a link to a file stays, with a note that the file is not one of the client`(uri: String) async throws {
        let content = try await Self.filtered(uri)

        #expect(content.count == 2 && content.first == Self.link(uri))
        let note = content.last?["text"]?.string ?? ""
        #expect(note.hasSuffix("is a resource of shop-iphone, not a file of this machine]"), "\(note)")
    }

    @Test(arguments: [
        "http://127.0.0.1:7282/v1/grants", "http://localhost:7282", "HTTP://LocalHost:7282/x", "http://[::1]:7282/",
        "http://127.1.2.3:7282", "http://user@127.0.0.1:7282/", #"http:\\127.0.0.1:7282\x"#,
        "ws://0.0.0.0:7282/e/x/mcp",
        "patchbay://endpoints", "patchbay://artifact/unknown", "PATCHBAY://artifact/known",
    ])
    func `a link to Patchbay itself is removed`(uri: String) async throws {
        let content = try await Self.filtered(uri)

        #expect(content.map { $0["type"] } == ["text"])
        #expect(content.first?["text"]?.string?.contains("to Patchbay itself was removed") == true)
    }

    @Test(arguments: [
        "https://example.com/a", "http://127.0.0.1:9876/x", "http://example.com:7282/", "screenshot://1", "data:,x",
        "x",
        "patchbay://artifact/known",
    ])
    func `other links and links to stored content are unchanged`(uri: String) async throws {
        #expect(try await Self.filtered(uri) == [Self.link(uri)])
    }

    @Test func `a result without links is unchanged`() async throws {
        let result: JSONObject = ["content": [["type": "text", "text": "file:///x"]], "structuredContent": ["a": 1]]
        let id: EndpointID = "shop"

        #expect(await ResourceLinkFilter().filtered(result, of: id, for: .sampleOwner, Artifacts()) == result)
    }
}
