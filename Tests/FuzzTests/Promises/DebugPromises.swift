import Model

@testable import Apps

/// Promises for the state debugger: frames do not depend on how bytes are split, and a message is what JSON says.
enum DebugPromises {
    private static let limit = 4_096

    static func check(_ input: [UInt8]) throws(Violation) {
        try decode(input)
        try message(input)

        var choices = Choices(input)
        let framing = choices.one(of: DebugFraming.allCases)
        let contents = (0..<choices.number(below: 4)).map { _ in
            Array(#"{"state":"#.utf8) + JSON.string(String(decoding: choices.run(), as: UTF8.self)).bytes + [0x7D]
        }
        let stream = contents.flatMap { framing.frame($0) }
        try decode(stream + choices.remainder())
        let frames = received(from: [stream])
        try promise("a frame that was written is read", frames.contents == contents && frames.error == nil)
        for content in contents { try message(content) }
    }

    /// Returns the contents of all frames, the error, and the framing.
    private static func received(
        from chunks: [[UInt8]]
    ) -> (contents: [[UInt8]], error: DebugLinkError?, framing: DebugFraming?) {
        var decoder = DebugFrameDecoder(limit: limit)
        var contents: [[UInt8]] = []
        for chunk in chunks {
            decoder.append(chunk)
            do throws(DebugLinkError) {
                while let content = try decoder.next() { contents.append(content) }
            } catch { return (contents, error, decoder.framing) }
        }
        return (contents, nil, decoder.framing)
    }

    private static func decode(_ stream: [UInt8]) throws(Violation) {
        let whole = received(from: [stream])
        let single = received(from: stream.map { [$0] })
        try promise(
            "how the bytes are split changes nothing",
            whole.contents == single.contents && whole.error == single.error
        )
        let written = whole.contents.flatMap { whole.framing?.frame($0) ?? [] }
        try promise("a frame is what came", stream.starts(with: written))
        for content in whole.contents { try message(content) }
    }

    /// The fast scan of a message agrees with the parser.
    private static func message(_ content: [UInt8]) throws(Violation) {
        let message = try? DebugMessage(parsing: content)
        // The scan takes names as they are written. An app's encoder does not escape them.
        guard let json = try? JSON(parsing: content), !content.contains(UInt8(ascii: "\\")) else { return }
        guard let state = json["state"], json.object?.members.count ?? 0 <= 64 else {
            return try promise("a message has a state", message == nil)
        }
        let isSame = message.map { (try? JSON(parsing: $0.state)) == state } ?? false
        try promise("the state is what the parser reads", isSame)
        let picture = json["imageData"] ?? json["png"]
        let hasPicture = message.map { $0.pictureSize != nil || $0.hasInvalidPicture } ?? false
        try promise("a picture is a text", hasPicture == (picture?.string?.isEmpty == false))
        try promise("an action is read", (message?.action != nil) == (json["action"].map { !$0.isNull } ?? false))
    }
}
