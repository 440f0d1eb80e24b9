import Model
import Testing

@testable import Agents
@testable import Apps

@Suite struct ClientCapabilitiesTests {
    @Test(
        arguments: [
            ["roots": [:]], ["sampling": [:]], ["sampling": ["tools": [:], "context": [:]]], ["elicitation": [:]],
            ["elicitation": ["url": [:]]], ["roots": [:], "elicitation": ["form": [:], "url": [:]]], [:],
        ] as [JSONObject]
    )
    func `a session ID preserves the client's capabilities`(capabilities: JSONObject) {
        let key = SessionIDSigner()

        let id = key.makeID(for: .v2025_11_25, ClientCapabilities(capabilities))

        #expect(key.claims(of: id)?.capabilities.json == capabilities)
        #expect(key.version(of: id) == .v2025_11_25)
        #expect(id.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    }

    @Test func `an ID with changed capabilities is invalid`() {
        let key = SessionIDSigner()
        let (id, bare) = (key.makeID(for: .v2025_11_25, [.elicitationForm]), key.makeID(for: .v2025_11_25))

        #expect(id.contains("~10."))
        #expect(key.claims(of: id.replacing("~10.", with: "~3f.")) == nil)
        #expect(key.claims(of: id.replacing("~10.", with: ".")) == nil)
        #expect(key.claims(of: bare.replacing("2025-11-25", with: "2025-11-25~10")) == nil)
        #expect(key.claims(of: id.replacing("~10.", with: "~ff.")) == nil)
    }

    @Test func `only declared capabilities allow requests`() {
        let some: ClientCapabilities = [.sampling, .elicitationForm]

        #expect(some.allow("elicitation/create", ["mode": "form"]) && some.allow("elicitation/create", [:]))
        #expect(!some.allow("elicitation/create", ["mode": "url"]))
        #expect(some.allow("sampling/createMessage", [:]))
        #expect(!some.allow("sampling/createMessage", ["tools": []]))
        #expect(!some.allow("roots/list", nil))
        #expect(!some.allow("tools/call", nil))
    }
}
