import Model

/// Finds the places in a stream where a session token begins, without holding a byte back.
///
/// The text before a token may be in upper case and wrapped to several lines with an indentation. NUL bytes are ignored, so
/// UTF-16 text in either byte order is found too.
struct TokenMarkerSearch {
    /// The text before a token.
    struct Match {
        let marker: TokenMarker
        /// The beginning of the URL that has the token as a parameter; nil if there is none.
        let origin: SessionURL.Origin?
        /// True in UTF-16 text.
        let isWide: Bool
        /// True after a separator that must precede a token.
        fileprivate(set) var isAssigned = false
        /// True if a name stood before the token.
        var isAfterName = false
        /// True if the line ended before the token.
        var isInNextLine = false
    }

    /// The number of bytes before the marker that are searched for the URL.
    private static let lineLimit = 512
    /// The URL schemes with their default ports (RFC 9110, section 4.2).
    private static let schemes: [(text: String, port: UInt16)] = [("http://", 80), ("https://", 443)]
    private static let firstBytes = Set(TokenMarker.all.map { $0.text[0] })

    /// The decoded end of the text, without line breaks and indentations.
    private var line: [UInt8] = []
    private var isAtLineStart = false
    /// The number of matched bytes of each marker.
    private var matched = [Int](repeating: 0, count: TokenMarker.all.count)
    private var isMatching = false
    /// The last character that was read.
    private var previous: UInt8 = 0
    private var isAfterNUL = false
    /// The number of characters in a row with a NUL byte before each.
    private var wideCount = 0
    /// The marker that ended before the current separators; nil outside of separators.
    private var match: Match?

    /// Returns the text before a token that begins with this byte, once; nil if no token begins here.
    mutating func takeMatch(before byte: UInt8) -> Match? {
        guard let match, match.isAssigned, byte != UInt8(ascii: "%"),
            !match.marker.isSeparator(byte, after: previous), match.marker.isOfToken(byte)
        else { return nil }
        self.match = nil
        return match
    }

    /// Returns the text before a token that is expected in the next line; nil if none is expected.
    var matchAtLineEnd: Match? {
        match.flatMap { $0.isAssigned || $0.marker.isAssignment(UInt8(ascii: "\n")) ? $0 : nil }
    }

    /// Continues the search for the token after a word that is none.
    mutating func resume(_ match: Match) {
        self.match = match
        self.match?.isAssigned = true
    }

    /// Reads a byte that belongs to no token.
    mutating func read(_ byte: UInt8) {
        if byte == 0 {
            isAfterNUL = true
            return
        }
        wideCount = isAfterNUL ? wideCount + 1 : 0
        isAfterNUL = false
        readCharacter(byte)
        previous = byte
    }

    private mutating func readCharacter(_ byte: UInt8) {
        if byte == UInt8(ascii: "\n") {
            isAtLineStart = true
            // The next line can begin with the token, which `WrappedToken` reads.
            if matchAtLineEnd != nil { match = nil }
            return
        }
        if byte == UInt8(ascii: "\r") || isAtLineStart && (byte == 0x20 || byte == 0x09) { return }
        isAtLineStart = false
        if line.count == 2 * Self.lineLimit { line.removeFirst(Self.lineLimit) }
        line.append(byte)
        if let match {
            // The next member of a list is another header.
            let isOther = match.isAfterName && byte == UInt8(ascii: ",")
            if !match.marker.isSeparator(byte, after: previous) || isOther {
                self.match = nil
            } else if match.marker.isAssignment(byte) {
                self.match?.isAssigned = true
            }
        }
        let folded = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
        guard isMatching || Self.firstBytes.contains(folded) else { return }
        advance(folded)
    }

    private mutating func advance(_ byte: UInt8) {
        isMatching = false
        for (index, marker) in TokenMarker.all.enumerated() {
            var count = matched[index]
            while count > 0, byte != marker.text[count] { count = marker.failures[count] }
            if byte == marker.text[count] { count += 1 }
            if count == marker.text.count {
                count = 0
                match = Match(
                    marker: marker,
                    origin: origin(before: marker),
                    isWide: wideCount >= marker.text.count - 1
                )
            }
            matched[index] = count
            if count > 0 { isMatching = true }
        }
    }

    /// Returns the origin of the URL that contains the marker; nil if the marker is not a parameter of a URL.
    private func origin(before marker: TokenMarker) -> SessionURL.Origin? {
        let text = String(decoding: line.dropLast(marker.text.count), as: UTF8.self)
        let word = text[(text.lastIndex { $0.isWhitespace }.map(text.index(after:)) ?? text.startIndex)...]
        let begins = Self.schemes.compactMap { scheme in word.ranges(of: scheme.text).last.map { ($0, scheme.port) } }
        guard word.last == "?" || word.last == "&",
            let (scheme, usual) = begins.max(by: { $0.0.lowerBound < $1.0.lowerBound })
        else { return nil }
        let authority = word[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let colon = authority.lastIndex(of: ":").flatMap { authority[$0...].contains("]") ? nil : $0 }
        let host = SessionURL.Origin.host(in: authority[..<(colon ?? authority.endIndex)])
        if let port = SessionTokenInput.port(in: word[scheme.lowerBound...]) {
            return SessionURL.Origin(host: host, port: port)
        }
        return colon == nil ? SessionURL.Origin(host: host, port: usual) : nil
    }
}
