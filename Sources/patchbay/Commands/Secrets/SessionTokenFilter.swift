/// Removes session tokens from a byte stream and passes all other bytes through without delay.
///
/// AppReveal logs `http://127.0.0.1:<port>/?appreveal_session_token=<hex>`, and programs log the headers with the token.
/// The surrounding text differs by platform and version and is ignored. A marker precedes the token (`TokenMarker`), so
/// no byte before the token has to be held back. The token after every marker is replaced by `[redacted]`. A token is
/// reported only for an http or https URL with 64 hexadecimal digits.
///
/// ECMA-48 control sequences (colors) can occur anywhere; they are passed through and ignored by the matching.
struct SessionTokenFilter {
    static let mark = Array("[redacted]".utf8)
    /// AppReveal's tokens: 32 bytes in hexadecimal.
    static let tokenLength = 64

    private enum Escape {
        case none
        /// After ESC.
        case begun
        /// After `ESC [`, up to the final byte.
        case sequence
    }

    private var search = TokenMarkerSearch()
    private var escape = Escape.none
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
        for byte in bytes { process(byte) }
        return takeResult()
    }

    /// Ends the stream. Returns the rest of its bytes, and the session of a token at its end.
    mutating func finish() -> (passed: [UInt8], found: [SessionURL]) {
        endToken(before: nil)
        endWrappedRun(before: nil)
        return takeResult()
    }

    private mutating func takeResult() -> (passed: [UInt8], found: [SessionURL]) {
        defer { (passed, found) = ([], []) }
        return (passed, found)
    }

    private mutating func process(_ byte: UInt8) {
        if byte == 0x1B {
            escape = .begun
            beginEscape()
            return passed.append(byte)
        }
        switch escape {
        case .begun where byte == UInt8(ascii: "["):
            escape = .sequence
            token?.isInterrupted = true
            return passed.append(byte)
        case .sequence where (0x20...0x7E).contains(byte):
            if byte >= 0x40 { escape = .none }
            return passed.append(byte)
        case .begun:
            // Any other escape sequence (hyperlink, title) ends the token.
            endToken(before: byte)
        case .none, .sequence: break
        }
        escape = .none
        processText(byte)
    }

    /// Passes on what was held back, so that the control sequence stays behind it.
    private mutating func beginEscape() {
        if wrapped?.run.isEmpty == false { endWrappedRun(before: 0x1B) }
        if let token, !token.isRemoved, !token.bytes.isEmpty { endToken(before: 0x1B) }
        if let insertion = token?.takeInsertion() { passed += insertion }
    }

    private mutating func processText(_ byte: UInt8) {
        if token != nil {
            if continueToken(byte) { return }
            endToken(before: byte)
        }
        if wrapped != nil {
            if continueWrappedRun(byte) { return }
            endWrappedRun(before: byte)
        }
        if let match = search.takeMatch(before: byte) {
            token = PartialToken(match)
            _ = continueToken(byte)
            return
        }
        if byte == UInt8(ascii: "\n"), let match = search.matchAtLineEnd {
            wrapped = WrappedToken(of: PartialToken(match))
        }
        pass(byte)
    }

    private mutating func pass(_ byte: UInt8) {
        passed.append(byte)
        search.read(byte)
    }

    /// Returns false if the byte does not belong to the token.
    private mutating func continueToken(_ byte: UInt8) -> Bool {
        guard token?.append(byte) == true else { return false }
        if token?.isCertain == true { remove() }
        return true
    }

    /// Replaces the current token by the mark.
    private mutating func remove() {
        guard let token, !token.isRemoved else { return }
        passed += token.mark
        redactions += 1
        self.token?.isRemoved = true
    }

    private mutating func endToken(before next: UInt8?) {
        guard let ended = token else { return }
        if ended.isToken(before: next) { remove() }
        let isRemoved = token?.isRemoved == true
        token = nil
        guard isRemoved else {
            for byte in ended.held + ended.insertion { pass(byte) }
            return
        }
        passed += ended.insertion
        if let session = ended.session {
            found.append(session)
        } else if next == UInt8(ascii: "\n") || next == UInt8(ascii: "\r"), ended.mayContinue {
            wrapped = WrappedToken(of: ended)
        }
    }

    /// Returns false if the byte ends the digits at the beginning of the line.
    private mutating func continueWrappedRun(_ byte: UInt8) -> Bool {
        switch wrapped?.append(byte) {
        case .held: return true
        case .passed:
            pass(byte)
            return true
        case .ended, nil: return false
        }
    }

    private mutating func endWrappedRun(before next: UInt8?) {
        guard let ended = wrapped else { return }
        wrapped = nil
        guard let whole = ended.whole(before: next) else {
            for byte in ended.run { pass(byte) }
            return
        }
        if ended.isFirst {
            passed += whole.mark
            redactions += 1
        }
        if let session = whole.session {
            found.append(session)
        } else if next == UInt8(ascii: "\n") || next == UInt8(ascii: "\r") {
            wrapped = WrappedToken(of: whole)
        }
    }
}
