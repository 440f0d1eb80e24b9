/// Why a text is not JSON that we take.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    package enum Reason: String, Sendable {
        case unexpected = "there is something else than JSON allows"
        case unfinished = "it ends in the middle"
        case tooDeep = "arrays and objects are nested deeper than 128"
        case twice = "a name comes twice in one object"
        case notText = "a string is not UTF-8"
    }

    package let reason: Reason
    /// Where, in bytes from the beginning.
    package let offset: Int

    package init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    package var description: String { "this is not JSON: \(reason.rawValue), at byte \(offset)" }
}
