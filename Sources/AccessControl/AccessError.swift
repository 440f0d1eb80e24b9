package import Model
import SystemIO

/// A reason why an access control operation failed.
package enum AccessError: Error, Hashable, Sendable {
    /// The token is unknown, wrong, spent, expired, idle or revoked. The error is the same for all of them, so a
    /// guesser learns nothing.
    case refused
    /// The secret of the invite is right, and the invite has ended: the sentence says when and why. A client with a
    /// wrong secret gets `refused`.
    case inviteEnded(String)
    /// Too many wrong attempts came from this client. `retryAfter` is in seconds.
    case tooManyAttempts(retryAfter: Int)
    case notAToken
    /// The caller is authenticated and asked for more than the invite, grant or role allows.
    case tooWide(String)
    /// The invite is for clients with a TLS key, and the client has none. The invite stays unspent.
    case keyRequired
    /// The invite is for apps, and the client has a TLS key, as `patchbay join` has. The invite stays unspent.
    case appRequired
    case outOfRange(String)
    case limit(String)
    /// Another client has the lease.
    case leased(LeaseConflict)
    /// The client is neither the holder of the lease nor an owner.
    case notLeaseHolder(LeaseConflict)
    /// The registry of the team did not store the claim of a phone, which a lease of that phone needs.
    case claimNotStored(String, reason: String)
    /// A grant for read-only tools requested a lease.
    case leaseNeedsChangingTools
    case notFound(String)
    /// No grant or invite of the caller has this ID.
    case noSuchGrant(String)
    /// The client polled too early. `seconds` is the required interval (RFC 8628, section 3.5).
    case slowDown(seconds: Int)
    /// Too many wrong user codes were entered. No request can be approved until an owner reopens requests.
    case requestsClosed
    /// The requesting process has exited, and the kernel may have given its PID to another process.
    case requesterExited(code: String)
    case secretNotPresentable(endpoint: EndpointID, why: String)
    /// Other users can read or write this file or folder.
    case exposed(path: String, what: String)
    case inUse(path: String)
    case keyMissing(path: String)
    case keyChanged(path: String)
    /// The change is not saved. Either nothing was committed, or the change is committed and its audit entry is written
    /// later.
    case notSaved(path: String, reason: String)
    case notRead(path: String, reason: String)
}

extension AccessError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused:
            // One message for every reason, so that a guesser learns nothing.
            "the token is missing, wrong, used, expired or revoked"
        case .inviteEnded(let what): what
        case .tooManyAttempts(let seconds): "too many wrong tokens from this client; try again in \(seconds) s"
        case .notAToken: "this is not a Patchbay token, or it is mistyped or incomplete; copy the whole token"
        case .tooWide(let what): "the request exceeds what may be granted: \(what)"
        case .keyRequired:
            "the invite is for clients with a TLS key, and this client has none; the invite is still valid"
        case .appRequired:
            "the invite is for an app that registers itself, and this client is none; the invite is still valid"
        case .outOfRange(let what): what
        case .limit(let what): what
        case .leased(let conflict): conflict.description
        case .notLeaseHolder(let conflict): "only its holder and an owner may end a lease: \(conflict)"
        case .claimNotStored(let phone, let reason):
            "\(phone) cannot be leased now, because the registry of the team is not available: \(reason); calls without a "
                + "lease work; see `patchbay team status`"
        case .leaseNeedsChangingTools: "a grant for read-only tools cannot take a lease"
        case .notFound(let what): what
        case .noSuchGrant(let id): "no grant or invite has the ID \"\(SanitizedText(id))\""
        case .slowDown(let seconds): "polled too early; poll every \(seconds) s"
        case .requestsClosed:
            "too many wrong codes were entered, so requests are closed; reopen them: patchbay requests unlock"
        case .requesterExited(let code):
            "the process that requested access with \(code) has exited; let it request access again"
        case .secretNotPresentable(let endpoint, let why): "the secret of \(endpoint) is not sent: \(why)"
        case .exposed(let path, let what): "\(path) \(what); Patchbay stores nothing there until this is corrected"
        case .inUse(let path):
            "\(path) is in use by another broker; stop that broker, or give this one its own state folder"
        case .keyMissing(let path):
            "\(path) is not there, and access.sqlite was written with it; put the key back, or move access.sqlite away"
                + " and pair all clients again"
        case .keyChanged(let path):
            "\(path) is not the key that access.sqlite was written with; put that one back, or move access.sqlite away"
                + " and pair all clients again"
        case .notSaved(let path, let reason):
            "\(path) could not be written: \(reason); make room or correct the folder's owner, and try again"
        case .notRead(let path, let reason):
            "\(path) could not be read: \(reason); nothing was changed; correct that and try again"
        }
    }
}

/// The files of access control: the database, its key, and the audit log.
typealias PrivateFile = SystemIO.PrivateFile<AccessError>

extension AccessError: PrivateFileError {
    package static var remedyForOpenFile: String { "chmod 600 it, and pair all clients again if it was opened" }
}
