import FoundationEssentials
import Model
import Samples
import Testing

@testable import patchbay

@Suite struct VMServiceTextTests {
    private func endpoint(_ kind: EndpointKind, _ approval: Endpoint.Approval = .approved) throws -> Endpoint {
        .sample("shop-rig", kind: kind, app: "shop", name: "shop", approval: approval)
    }

    @Test func `show prints both forms of the URL, or the reason why it does not`() {
        let service = DartVMService(at: "127.0.0.1:8181", authCode: "a=")

        #expect(
            VMServiceText.facts(.success(service)).map(\.1)
                == ["http://127.0.0.1:8181/a=/", "ws://127.0.0.1:8181/a=/ws"]
        )
        #expect(VMServiceText.facts(.failure(Problem(.forbidden, "no"))).map(\.1) == ["not shown: no"])
        #expect(VMServiceText.facts(nil).isEmpty)
    }

    @Test func `show says that a URL has no code`() {
        let facts = VMServiceText.facts(.success(DartVMService(at: "127.0.0.1:8181", authCode: nil)))

        #expect(facts.last?.1?.hasPrefix("without an authentication code") == true)
    }

    @Test func `list has a hint for the URL of an approved Dart VM service only`() throws {
        #expect(VMServiceText.hint(for: [try endpoint(.mcp), try endpoint(.dartVM, .pending)]) == nil)
        #expect(VMServiceText.hint(for: [try endpoint(.dartVM)])?.hasSuffix("patchbay show shop-rig") == true)
    }

    @Test func `the JSON of show has the VM service beside the members of the endpoint`() throws {
        let service = DartVMService(at: "127.0.0.1:8181", authCode: "a=")
        let document = VMServiceText.Document(endpoint: try endpoint(.dartVM), vmService: service, webPages: nil)

        let data = try JSONCoding.encoder().encode(document)

        let json = String(decoding: data, as: UTF8.self)
        #expect(json.contains(#""vmService":{"authCode":"a=","http":"http:"#) && json.contains(#""id":"shop-rig""#))
        #expect(try JSONCoding.decoder().decode(Endpoint.self, from: data) == document.endpoint)
    }
}
