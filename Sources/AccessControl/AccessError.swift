package import Model

/// Why pairing, or what hangs on it, was not done.
package enum AccessError: Error, Hashable, Sendable {
    /// One and the same for unknown, wrong, spent, expired, idle and revoked: a guesser learns nothing from it.
    case refused
    /// Too many wrong attempts from there; in how many seconds to try again.
    case tooManyAttempts(retryAfter: Int)
    case notAToken
    case notAPairingString(String)
    /// Asked for with a right secret, or by an owner, and more than may be given.
    case tooWide(String)
    case outOfRange(String)
    case limit(String)
    case notFound(String)
    /// Asked again too soon; ask every so many seconds.
    case slowDown(seconds: Int)
    /// Too many wrong codes were typed: nobody can be approved until an owner opens requests again.
    case requestsClosed
    /// The process that asked has ended, and its number may be somebody else's.
    case askerGone(code: String)
    case secretNotPresentable(endpoint: EndpointID, why: String)
    /// A folder or file that others could write or read.
    case exposed(path: String, what: String)
    case inUse(path: String)
    case keyMissing(path: String)
    case keyChanged(path: String)
    /// The operation did not happen, or will be said to have happened only when it is on the disk.
    case notSaved(path: String, reason: String)
    case notRead(path: String, reason: String)
}

extension AccessError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused:
            // The same words for all of them: who guesses learns nothing.
            "no token that counts was shown: it is missing, wrong, used, expired or revoked; ask an owner of this broker for an invite (patchbay pair)"
        case .tooManyAttempts(let seconds): "too many wrong tokens came from there; try again in \(seconds) s"
        case .notAToken: "that is no token of Patchbay's, or it is mistyped or cut off; copy it whole"
        case .notAPairingString(let why): "that is no pairing string: \(why)"
        case .tooWide(let what): "more was asked for than may be given: \(what)"
        case .outOfRange(let what): what
        case .limit(let what): what
        case .notFound(let what): what
        case .slowDown(let seconds): "asked again too soon; ask every \(seconds) s"
        case .requestsClosed:
            "too many wrong codes were typed, so requests are closed; open them again: patchbay requests --reopen"
        case .askerGone(let code): "the process that asked with \(code) has ended; let it ask again"
        case .secretNotPresentable(let endpoint, let why): "the secret of \(endpoint) is not sent: \(why)"
        case .exposed(let path, let what): "\(path) \(what); nothing is kept there until that is put right"
        case .inUse(let path): "\(path) is in use by another broker; stop that one, or give this one its own folder"
        case .keyMissing(let path):
            "\(path) is not there, and pairing.sqlite was written with it; put the key back, or move pairing.sqlite away"
                + " and pair everybody again"
        case .keyChanged(let path):
            "\(path) is not the key that pairing.sqlite was written with; put that one back, or move pairing.sqlite away"
                + " and pair everybody again"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); make room or correct the folder's owner, and try again"
        case .notRead(let path, let reason):
            "\(path) could not be read: \(reason); nothing was changed; correct that and try again"
        }
    }
}
