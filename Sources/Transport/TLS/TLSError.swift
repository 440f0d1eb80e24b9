import SystemIO

/// A reason why a key, a certificate or its file was refused.
package enum TLSError: Error, Hashable, Sendable {
    /// Other users can read or replace the file.
    case exposed(path: String, what: String)
    /// The file is not a key of Patchbay with its certificate.
    case damaged(path: String, reason: String)
    case notRead(path: String, reason: String)
    case notSaved(path: String, reason: String)
    /// The library refused the key or the settings.
    case unusable(reason: String)
    /// The authority does not issue the requested certificate.
    case notIssued(reason: String)
    /// A certificate is not of the expected authority or peer, or is not the certificate of the key.
    case notAccepted(reason: String)
    /// A certificate of the owner's own, or its key, cannot be used.
    case refusedPair(path: String, reason: String)
}

extension TLSError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .exposed(let path, let what): "the key file \(path) \(what)"
        case .damaged(let path, let reason):
            "the key file \(path) is damaged: \(reason); restore it from a backup, or delete it and join or pair again"
        case .notRead(let path, let reason):
            "the key file \(path) could not be read: \(reason); correct that and try again"
        case .notSaved(let path, let reason):
            "the key file \(path) could not be written: \(reason); make room or correct the folder's owner, and try again"
        case .unusable(let reason): "TLS cannot be used: \(reason)"
        case .notIssued(let reason): "the certificate is not issued: \(reason)"
        case .notAccepted(let reason): "the certificate is not accepted: \(reason)"
        case .refusedPair(let path, let reason): "\(path): \(reason)"
        }
    }
}

/// The files of keys and certificates.
typealias PrivateFile = SystemIO.PrivateFile<TLSError>

extension TLSError: PrivateFileError {
    package static var remedyForOpenFile: String {
        "chmod 600 it, or delete it and pair all clients again if another user has read it"
    }
}
