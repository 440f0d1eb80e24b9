import Model
import Testing

@testable import Apps

@Suite struct Base64ReplacerTests {
    private let swap = Base64Replacer(text: "iVBOR/w0KG==", uri: "patchbay://artifact/1")

    @Test func `copies are replaced at any place, and everything else is unchanged`() throws {
        let json = try JSON(parsing: #"{"a":1.0,"shots":[{"png":"iVBOR/w0KG=="},"iVBOR"],"all":"xiVBOR/w0KG==y"}"#)

        #expect(
            swap.applied(to: json).text
                == #"{"a":1.0,"shots":[{"png":"patchbay://artifact/1"},"iVBOR"],"all":"xpatchbay://artifact/1y"}"#
        )
    }

    @Test func `each data URL is replaced as a whole`() {
        let once = "data:image/png;base64,iVBOR/w0KG=="

        #expect(swap.applied(toText: "see \(once) and \(once).") == "see \(swap.uri) and \(swap.uri).")
    }

    @Test func `JSON text with escaped slashes is handled`() {
        #expect(swap.applied(toText: #" { "png" : "iVBOR\/w0KG==" }"#) == #"{"png":"patchbay://artifact/1"}"#)
        #expect(swap.applied(toText: #" { "png" : "another one" }"#) == #" { "png" : "another one" }"#)
        #expect(swap.applied(toText: "{not JSON iVBOR/w0KG==") == "{not JSON patchbay://artifact/1")
    }
}
