import Crypto
import FoundationEssentials

/// The open authorizations, in memory only: pages that wait for an owner, and codes that wait for their clients.
///
/// A page and a code are found by the digest of their secret, so the time of an answer tells nothing of a secret.
struct OAuthAuthorizations: Sendable {
    /// Lifetime of a code in seconds (RFC 6749, section 4.1.2, allows ten minutes).
    static let codeLifetime = 60
    /// Seconds for which a used code is remembered.
    static let replayWindow = 3_600
    /// Maximum number of pages, and of codes. `AccessRequestQueue` limits the pages of each client.
    static let limit = 1_024

    /// An authorization whose browser waits for an owner.
    struct Page: Sendable {
        let request: AuthorizationRequest
        /// The browser's user or address.
        let requester: AccessRequestQueue.Requester
        let userCode: String
        /// The invite that an approval creates.
        let invite: Token
        let expires: MonotonicTime
    }

    private struct Code: Sendable {
        let request: AuthorizationRequest
        let invite: Token
        let expires: MonotonicTime
        var isUsed = false
        /// The grant that it gave.
        var grant: String?
    }

    /// The answer to a client that shows a code.
    enum Exchange {
        /// Redeem the invite. The code is used up.
        case accepted(AuthorizationRequest, invite: Token)
        /// The reason, for the audit log. A code that was shown wrongly is used up too.
        case refused(String)
        /// The code was used before, so one of the two clients has stolen it. End the grant that it gave.
        case replayed(grant: String?)
    }

    private var pages: [Data: Page] = [:]
    private var codes: [Data: Code] = [:]

    /// Adds a page, with a secret that only its browser gets.
    ///
    /// - Throws: `AccessError.limit`.
    mutating func add(_ page: Page, secret: String, at now: MonotonicTime) throws(AccessError) {
        expire(at: now)
        guard pages.count < Self.limit else { throw .limit("too many clients ask for access; try again later") }
        pages[Self.digest(of: secret)] = page
    }

    /// Returns the page with a secret; nil if there is none.
    mutating func page(_ secret: String, at now: MonotonicTime) -> Page? {
        expire(at: now)
        return pages[Self.digest(of: secret)]
    }

    /// Removes an answered page.
    mutating func remove(_ secret: String) { pages[Self.digest(of: secret)] = nil }

    /// Removes the page with the same request, which its browser has loaded again. Another user may have read the address
    /// of the page in the list of processes.
    ///
    /// - Returns: Its user code.
    mutating func remove(_ request: AuthorizationRequest, of requester: AccessRequestQueue.Requester) -> String? {
        let isSame = { (page: Page) in page.request == request && page.requester == requester }
        guard let (key, page) = pages.first(where: { isSame($0.value) }) else { return nil }
        pages[key] = nil
        return page.userCode
    }

    /// Replaces an approved page by a code.
    mutating func issue(_ code: String, for page: Page, secret: String, at now: MonotonicTime) throws(AccessError) {
        guard codes.count < Self.limit else { throw .limit("too many codes are open; try again later") }
        remove(secret)
        codes[Self.digest(of: code)] = Code(
            request: page.request,
            invite: page.invite,
            expires: now + Self.codeLifetime
        )
    }

    /// Takes a code, which works once and only for the client, the redirect URI, the PKCE secret and the resource of its
    /// request.
    ///
    /// - Parameters:
    ///   - code: The code.
    ///   - client: The client's ID.
    ///   - parameters: The parameters of the token request.
    ///   - now: The time.
    /// - Returns: What follows.
    mutating func exchange(
        _ code: String,
        client: String,
        parameters: [String: String],
        at now: MonotonicTime
    ) -> Exchange {
        expire(at: now)
        let key = Self.digest(of: code)
        guard let entry = codes[key] else { return .refused("an unknown authorization code") }
        guard !entry.isUsed else { return .replayed(grant: entry.grant) }
        codes[key]?.isUsed = true
        let request = entry.request
        guard now < entry.expires else { return .refused("an expired authorization code") }
        guard client == request.client.id else { return .refused("an authorization code of another client") }
        // OAuth 2.1 leaves this parameter out, because PKCE proves more. A client that sends it must send the same.
        guard parameters["redirect_uri"].map({ $0 == request.redirect.text }) ?? true else {
            return .refused("an authorization code for another redirect URI")
        }
        guard request.isAnswered(by: parameters["code_verifier"] ?? "") else {
            return .refused("an authorization code without its PKCE secret")
        }
        guard request.resource.isNamed(by: parameters["resource"]) else {
            return .refused("an authorization code for another resource")
        }
        return .accepted(request, invite: entry.invite)
    }

    /// Remembers the grant that a code gave.
    mutating func record(grant: String, from code: String) { codes[Self.digest(of: code)]?.grant = grant }

    private mutating func expire(at now: MonotonicTime) {
        pages = pages.filter { now < $0.value.expires }
        codes = codes.filter { now < $0.value.expires + ($0.value.isUsed ? Self.replayWindow : 0) }
    }

    private static func digest(of secret: String) -> Data {
        Data(SHA256.hash(data: Data("patchbay authorization v1\0\(secret)".utf8)))
    }
}
