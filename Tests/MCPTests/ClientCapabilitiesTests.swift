import JSON
import Testing

@testable import MCP

@Suite struct ClientCapabilitiesTests {
    @Test(
        arguments: [
            ["roots": [:]], ["sampling": [:]], ["sampling": ["tools": [:], "context": [:]]], ["elicitation": [:]],
            ["elicitation": ["url": [:]]], ["roots": [:], "elicitation": ["form": [:], "url": [:]]], [:],
        ] as [JSONObject]
    )
    func `what a client can be asked survives a session's id`(capabilities: JSONObject) {
        let key = SessionIDSigner()

        let id = key.makeID(for: .november2025, ClientCapabilities(capabilities))

        #expect(key.agreement(of: id)?.faculties.capabilities == capabilities)
        #expect(key.revision(of: id) == .november2025)
        #expect(id.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    }

    @Test func `an id whose faculties were changed is nobody's`() {
        let key = SessionIDSigner()
        let (id, bare) = (key.makeID(for: .november2025, [.forms]), key.makeID(for: .november2025))

        #expect(id.contains("~10."))
        #expect(key.agreement(of: id.replacing("~10.", with: "~3f.")) == nil)
        #expect(key.agreement(of: id.replacing("~10.", with: ".")) == nil)
        #expect(key.agreement(of: bare.replacing("2025-11-25", with: "2025-11-25~10")) == nil)
        #expect(key.agreement(of: id.replacing("~10.", with: "~ff.")) == nil)
    }

    @Test func `nothing is asked but what a client said`() {
        let some: ClientCapabilities = [.sampling, .forms]

        #expect(some.allow("elicitation/create", ["mode": "form"]) && some.allow("elicitation/create", [:]))
        #expect(!some.allow("elicitation/create", ["mode": "url"]))
        #expect(some.allow("sampling/createMessage", [:]))
        #expect(!some.allow("sampling/createMessage", ["tools": []]))
        #expect(!some.allow("roots/list", nil))
        #expect(!some.allow("tools/call", nil))
    }
}
