import FoundationEssentials
import Glibc
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
    /// Indicates whether the app sent something else than a PNG or JPEG file in base64 as its picture.
    private(set) var hasInvalidPicture = false

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
        if pictureRange != nil, picture() == nil {
            hasInvalidPicture = true
            dropPicture()
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
    /// - Returns: A PNG or JPEG file as the app sent it; nil if there is none.
    func picture() -> [UInt8]? {
        guard let range = pictureRange else { return nil }
        let text = bytes[range].dropFirst().dropLast()
        // Apple's encoder writes a slash as `\/`. Only such a text must be parsed, which takes longer.
        let isEscaped = text.withUnsafeBytes { text in
            text.baseAddress.map { memchr($0, CInt(UInt8(ascii: "\\")), text.count) != nil } ?? false
        }
        let data =
            isEscaped
            ? (try? JSON(parsing: bytes[range]))?.string.flatMap { Data(base64Encoded: $0) }
            : Data(base64Encoded: Data(text))
        guard let data, Self.beginsPicture(data) else { return nil }
        return Array(data)
    }

    /// Returns whether a file begins as a PNG or JPEG file does.
    private static func beginsPicture(_ file: Data) -> Bool {
        file.starts(with: [0x89, 0x50, 0x4E, 0x47]) || file.starts(with: [0xFF, 0xD8])
    }

    /// Releases the memory of everything but the state.
    mutating func dropPicture() {
        bytes = Array(state)
        (stateRange, pictureRange) = (bytes.indices, nil)
    }
}
