import FoundationEssentials
import Model
import Testing

@testable import API

/// What the writer of a document is told about it.
@Suite struct DecodingSentenceTests {
    private func sentence<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> String {
        let bytes = Array(text.utf8)
        do {
            _ = try JSONCoding.decoder().decode(type, from: Data(bytes))
        } catch let error as DecodingError {
            return error.sentence(about: bytes)
        }
        return "it was read"
    }

    @Test(arguments: [
        ("{", "the body cannot be read: this is not JSON: it ends in the middle, at byte 1"),
        ("[]", "the body must be an object, not a list"), ("17", "the body must be an object, not a number"),
        ("{}", #"the body lacks "permissions""#),
        (#"{"permissions":17}"#, #""permissions" must be an object, not a number"#),
        (#"{"permissions":{"scopes":"admin","selector":"all"}}"#, #""permissions.scopes" must be a list, not a text"#),
        (
            #"{"permissions":{"scopes":["registry.read","x"],"selector":"all"}}"#,
            #""permissions.scopes[1]" must be one of the words for it, and is another one"#
        ),
        (
            #"{"permissions":{"scopes":[],"selector":"all"},"uses":"geheim"}"#,
            #""uses" must be a whole number, not a text"#
        ),
        (#"{"permissions":{"scopes":[],"selector":"all"},"uses":true}"#, #""uses" must be a whole number, not true"#),
        (
            #"{"permissions":{"scopes":[],"selector":"all"},"uses":1.5}"#,
            #""uses" must be a whole number in its range, not 1.5"#
        ),
    ])
    func `an invite's member is named with what belongs there and what came`(body: String, what: String) throws {
        #expect(try sentence(InviteSpec.self, body) == what)
    }

    @Test(arguments: [
        (#"{"secret":17}"#, #""secret" must be a text, not a number"#),
        (#"{"secret":null}"#, #""secret" must be a text, not null"#),
        (#"{"secret":"x","port":70000}"#, #""port" must be a whole number in its range, not 70000"#),
        (#"{"secret":["geheim"]}"#, #""secret" must be a text, not a list"#),
    ])
    func `a secret in the wrong shape is not repeated`(body: String, what: String) throws {
        #expect(try sentence(EndpointSecretSpec.self, body) == what)
    }
}
