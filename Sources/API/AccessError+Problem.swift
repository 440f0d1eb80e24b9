import Model
import AccessControl

extension AccessError {
    /// As the HTTP API says it. Whatever is wrong with a token is one and the same answer, to the byte.
    var problem: Problem {
        switch self {
        case .refused, .notAToken: Problem(.unauthorized, AccessError.refused.description, next: "patchbay join -")
        case .tooManyAttempts: Problem(.limit, description)
        case .slowDown: Problem(.slowDown, description)
        case .limit: Problem(.limit, description)
        case .notAPairingString, .outOfRange: Problem(.badRequest, description)
        case .tooWide, .secretNotPresentable: Problem(.forbidden, description)
        case .requestsClosed: Problem(.forbidden, description, next: "patchbay requests --reopen")
        case .notFound: Problem(.notFound, description)
        case .askerGone: Problem(.conflict, description)
        case .notSaved: Problem(.unavailable, description, next: "make room on the disk, and try again")
        case .notRead: Problem(.unavailable, description, next: "patchbay doctor")
        case .exposed, .inUse, .keyMissing, .keyChanged: Problem(.internalError, description, next: "patchbay doctor")
        }
    }

    /// Seconds after which it is worth another try.
    var pause: Int? {
        switch self {
        case .tooManyAttempts(let seconds), .slowDown(let seconds): seconds
        default: nil
        }
    }
}
