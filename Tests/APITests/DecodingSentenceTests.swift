import FoundationEssentials
import Model
import Testing

@testable import API

/// Error messages for documents that cannot be decoded.
@Suite struct DecodingSentenceTests {
    private func message<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> String {
        let bytes = Array(text.utf8)
        do {
            _ = try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError { return error.userMessage(for: bytes) }
        return "decoded"
    }

    @Test(arguments: [
        ("{", "the body cannot be read: this is not JSON: unexpected end, at byte 1"),
        ("[]", "the body must be an object, not a list"), ("17", "the body must be an object, not a number"),
        ("{}", #"the body lacks "permissions""#),
        (#"{"permissions":17}"#, #""permissions" must be an object, not a number"#),
        (#"{"permissions":{"scopes":"admin","selector":"all"}}"#, #""permissions.scopes" must be a list, not a text"#),
        (
            #"{"permissions":{"scopes":["registry.read","x"],"selector":"all"}}"#,
            #""permissions.scopes[1]" must be one of its allowed values"#
        ),
        (
            #"{"permissions":{"scopes":[],"selector":"all"},"maxUses":"geheim"}"#,
            #""maxUses" must be a whole number, not a text"#
        ),
        (
            #"{"permissions":{"scopes":[],"selector":"all"},"maxUses":true}"#,
            #""maxUses" must be a whole number, not true"#
        ),
        (
            #"{"permissions":{"scopes":[],"selector":"all"},"maxUses":1.5}"#,
            #""maxUses" must be a whole number in its range, not 1.5"#
        ),
    ])
    func `the message names the member, the expected type and the type found`(body: String, expected: String) throws {
        #expect(try message(InviteSpec.self, body) == expected)
    }

    @Test(arguments: [
        (#"{"secret":17}"#, #""secret" must be a text, not a number"#),
        (#"{"secret":null}"#, #""secret" must be a text, not null"#),
        (#"{"secret":"x","port":70000}"#, #""port" must be a whole number in its range, not 70000"#),
        (#"{"secret":["geheim"]}"#, #""secret" must be a text, not a list"#),
    ])
    func `the message does not repeat a secret of the wrong type`(body: String, expected: String) throws {
        #expect(try message(EndpointSecretSpec.self, body) == expected)
    }
}
