import FoundationEssentials
import JSON
import Model

/// One message of an app: a state, the action that led to it, and a picture of the screen.
///
/// The bytes stay as received, because a replayed state must be the state that the app has sent. A message is megabytes
/// large, and mostly a picture. So only the outermost object is parsed here, and a value when it is used.
struct DebugMessage: Sendable {
    /// The size limit of an action's text in bytes. A longer text is truncated.
    private static let actionLimit = 1_000

    private var bytes: [UInt8]
    private var stateRange: Range<Int>
    /// The range of the picture's base64 text with its quotes.
    private var pictureRange: Range<Int>?
    /// The action; nil if the app sent none.
    let action: SanitizedText?

    /// Parses the content of a frame.
    init(parsing bytes: [UInt8]) throws(DebugLinkError) {
        let members = try Self.members(of: bytes)
        guard let state = members["state"] else { throw .invalidMessage("it has no member \"state\"") }
        self.bytes = bytes
        stateRange = state
        pictureRange = (members["imageData"] ?? members["png"]).flatMap {
            // An empty text is no picture.
            bytes[$0.lowerBound] == UInt8(ascii: "\"") && $0.count > 2 ? $0 : nil
        }
        action = members["action"].flatMap { range in
            guard let json = try? JSON(parsing: bytes[range]), !json.isNull else { return nil }
            return SanitizedText(json.string ?? json.text, limit: Self.actionLimit)
        }
    }

    /// Returns the ranges of the values of the outermost object by name.
    private static func members(of bytes: [UInt8]) throws(DebugLinkError) -> [String: Range<Int>] {
        let found = bytes.withUnsafeBufferPointer { buffer in
            var scanner = JSONScanner(buffer)
            return scanner.members()
        }
        guard let found else { throw .invalidMessage("it is not one JSON object") }
        let named = found.map { (String(decoding: bytes[$0.name], as: UTF8.self), $0.value) }
        return Dictionary(named) { _, last in last }
    }

    /// The state as received.
    var state: ArraySlice<UInt8> { bytes[stateRange] }
    /// The size of the picture in bytes as received; nil if there is none.
    var pictureSize: Int? { pictureRange?.count }
    /// The memory that the message needs in bytes.
    var size: Int { bytes.count }

    /// Decodes the picture.
    ///
    /// - Returns: A PNG file as the app sent it; nil if there is none, or if it is not valid base64.
    func picture() -> [UInt8]? {
        // Apple's encoder writes a slash as `\/`, so the text must be parsed as JSON first.
        guard let range = pictureRange, let text = (try? JSON(parsing: bytes[range]))?.string else { return nil }
        return Data(base64Encoded: text).map { Array($0) }
    }

    /// Releases the memory of everything but the state.
    mutating func dropPicture() {
        bytes = Array(state)
        (stateRange, pictureRange) = (bytes.indices, nil)
    }
}
