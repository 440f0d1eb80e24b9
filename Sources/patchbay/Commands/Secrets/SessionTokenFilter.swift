/// Removes session tokens from a byte stream and passes all other bytes through without delay.
///
/// AppReveal logs `http://127.0.0.1:<port>/?appreveal_session_token=<hex>`, and programs log the headers with the token.
/// The surrounding text differs by platform and version and is ignored. A marker precedes the token (`TokenMarker`), so
/// no byte before the token has to be held back. The token after every marker is replaced by `[redacted]`. A token is
/// reported only for an http or https URL with 64 hexadecimal digits.
///
/// ECMA-48 control sequences (colors) can occur anywhere, also in a token; they are passed through and ignored by the
/// matching. Escapes are decoded for the matching, also those of control sequences.
struct SessionTokenFilter {
    static let mark = Array("[redacted]".utf8)

    private enum Control {
        case none
        /// After ESC.
        case begun
        /// After `ESC [`, up to the final byte.
        case sequence
    }

    private var search = TokenMarkerSearch()
    private var escape = EscapeDecoder()
    private var control = Control.none
    /// The current token; nil outside of a token.
    private var token: PartialToken?
    /// The token that may continue in this line; nil if there is none.
    private var wrapped: WrappedToken?
    private var found: [SessionURL] = []
    private var passed: [UInt8] = []
    /// The number of removed tokens.
    private(set) var redactions = 0

    /// Processes the next bytes of the stream.
    ///
    /// - Returns: The bytes to write, and the sessions whose tokens ended in this input.
    mutating func feed(_ bytes: some Collection<UInt8>) -> (passed: [UInt8], found: [SessionURL]) {
        passed.reserveCapacity(bytes.count + Self.mark.count)
        for byte in bytes { read(byte) }
        return takeResult()
    }

    /// Ends the stream. Returns the rest of its bytes, and the session of a token at its end.
    mutating func finish() -> (passed: [UInt8], found: [SessionURL]) {
        while !escape.isIdle { replayEscape() }
        endToken(before: nil)
        endWrappedRun(before: nil)
        return takeResult()
    }

    private mutating func takeResult() -> (passed: [UInt8], found: [SessionURL]) {
        defer { (passed, found) = ([], []) }
        return (passed, found)
    }

    private mutating func read(_ byte: UInt8) {
        // `ESC \` ends a control string, for example a hyperlink.
        let beginsEscape = EscapeDecoder.isFirst(byte) && control != .begun
        guard beginsEscape || !escape.isIdle else { return readCharacter(byte, CollectionOfOne(byte)) }
        switch escape.read(byte) {
        case .incomplete: break
        case .plain: replayEscape()
        case .decoded(let characters):
            var raw = escape.take()
            for character in characters {
                readCharacter(character, raw)
                raw = []
            }
        }
    }

    /// Reads bytes again that are no escape.
    private mutating func replayEscape() {
        let (character, raw, rest) = escape.takeFirst()
        readCharacter(character, raw)
        for byte in rest { read(byte) }
    }

    /// Reads a character, and the bytes of the stream that stand for it.
    private mutating func readCharacter(_ character: UInt8, _ raw: some Collection<UInt8>) {
        if character == 0x1B {
            control = .begun
            return passControl(raw)
        }
        switch control {
        // The other half of a character of UTF-16.
        case .begun where character == 0, .sequence where character == 0: return passControl(raw)
        case .begun where character == UInt8(ascii: "["):
            control = .sequence
            return passControl(raw)
        case .sequence where (0x20...0x7E).contains(character):
            if character >= 0x40 { control = .none }
            return passControl(raw)
        case .begun:
            // Any other escape sequence (hyperlink, title) ends the token.
            endToken(before: character)
        case .none, .sequence: break
        }
        control = .none
        readText(character, raw)
    }

    /// Passes on a part of a control sequence, behind what was held back before it.
    private mutating func passControl(_ raw: some Collection<UInt8>) {
        if let bytes = token?.append(control: raw) {
            passed += bytes
            if token?.isCertain == true { remove() }
            return
        }
        if wrapped?.append(control: raw) == true { return }
        if wrapped?.held.isEmpty == false { endWrappedRun(before: 0x1B) }
        passed += raw
    }

    private mutating func readText(_ character: UInt8, _ raw: some Collection<UInt8>) {
        if token != nil {
            if continueToken(character, raw) { return }
            endToken(before: character)
        }
        switch wrapped?.append(character, raw) {
        case .held: return
        case .passed: return pass(character, raw)
        case .ended: endWrappedRun(before: character)
        case nil: break
        }
        if let match = search.takeMatch(before: character) {
            token = PartialToken(match)
            _ = continueToken(character, raw)
            return
        }
        if character == UInt8(ascii: "\n"), let match = search.matchAtLineEnd {
            wrapped = WrappedToken(of: PartialToken(match))
        }
        pass(character, raw)
    }

    private mutating func pass(_ character: UInt8, _ raw: some Collection<UInt8>) {
        passed += raw
        search.read(character)
    }

    /// Returns false if the character does not belong to the token.
    private mutating func continueToken(_ character: UInt8, _ raw: some Collection<UInt8>) -> Bool {
        guard token?.append(character, raw) == true else { return false }
        if token?.isCertain == true { remove() }
        return true
    }

    /// Replaces the current token by the mark.
    private mutating func remove() {
        guard let token, !token.isRemoved else { return }
        passed += token.mark + token.controls
        redactions += 1
        self.token?.isRemoved = true
    }

    private mutating func endToken(before next: UInt8?) {
        if token?.isToken(before: next) == true { remove() }
        guard let ended = token else { return }
        token = nil
        if ended.isRemoved {
            passed += ended.insertion
        } else {
            passed += ended.held + ended.insertion
            for character in ended.bytes { search.read(character) }
            if ended.isName(before: next) {
                var match = ended.match
                (match.isAfterName, match.isInNextLine) = (true, false)
                search.resume(match)
            }
        }
        if let session = ended.session {
            found.append(session)
        } else if next == UInt8(ascii: "\n") || next == UInt8(ascii: "\r"), ended.mayContinue {
            wrapped = WrappedToken(of: ended)
        }
    }

    private mutating func endWrappedRun(before next: UInt8?) {
        guard let ended = wrapped else { return }
        wrapped = nil
        guard let whole = ended.whole(before: next) else {
            passed += ended.held
            for character in ended.characters { search.read(character) }
            if let next, var match = ended.match, match.marker.hasNames, "\"'-".utf8.contains(next) {
                match.isInNextLine = true
                search.resume(match)
            }
            return
        }
        if ended.isFirst {
            // In UTF-16 the run ends with a zero byte, and the mark has none at its end.
            passed += whole.mark + (ended.held.last == 0 ? [0] : [])
            redactions += 1
        }
        passed += ended.controls
        if let session = whole.session {
            found.append(session)
        } else if next == UInt8(ascii: "\n") || next == UInt8(ascii: "\r") {
            wrapped = WrappedToken(of: whole)
        }
    }
}
