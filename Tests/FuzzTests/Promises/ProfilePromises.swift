import Apps
import Model
import TOML

/// Promises for profile files: each is a profile, or an error that a person can use.
enum ProfilePromises {
    static func check(_ input: [UInt8]) throws(Violation) {
        let text = String(decoding: input, as: UTF8.self)
        let lines = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
        do {
            let profile = try Profile(parsing: text, file: "fuzz.toml")
            try promise("a profile has something to call", !profile.tools.isEmpty || profile.functions != nil)
            let recognizer = ProfileRecognizer(profile)
            try promise("a profile has something to recognise", recognizer.nextRequest != nil)
        } catch let error as TOMLError {
            for single in error.errors {
                try promise(
                    "an error is safe to print",
                    single.description.unicodeScalars.allSatisfy(SanitizedText.isSafe)
                )
                guard case .syntax(_, let position, _) = single else {
                    guard case .invalid(_, let position, _) = single else { continue }
                    try promise("an error is at a place in the file", (1...lines).contains(position.line))
                    continue
                }
                try promise("a syntax error is at a place in the file", (1...lines).contains(position.line))
            }
        } catch let violation as Violation {
            throw violation
        } catch { throw Violation(promise: "there are no other errors") }
    }
}
