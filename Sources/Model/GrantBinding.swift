/// Who, beside holding the token, one must be to use a grant.
package enum GrantBinding: Hashable, Sendable, Codable {
    /// Nobody else: whoever has the token.
    case bearer
    /// A process of this user, on the unix socket.
    case user(UInt32)
    /// Whoever proved to have this key: the SHA-256 of its SubjectPublicKeyInfo, in lower-case hexadecimal.
    case key(String)
}
