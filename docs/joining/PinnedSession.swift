#if canImport(Security)
import CryptoKit
import Foundation

/// A session for requests to one broker. It sends no request if the broker has another key.
final class PinnedSession: NSObject, URLSessionDelegate {
    private let pin: [UInt8]
    private lazy var session = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: nil)

    /// - Parameter pin: The pin in the pairing string, decoded: `PairingCode.pin`.
    init(pin: [UInt8]) { self.pin = pin }

    func send(_ request: URLRequest) async throws -> (Data, URLResponse) { try await session.data(for: request) }

    func urlSession(
        _ session: URLSession,
        didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        guard let trust = challenge.protectionSpace.serverTrust else { return (.performDefaultHandling, nil) }
        return matches(trust) ? (.useCredential, URLCredential(trust: trust)) : (.cancelAuthenticationChallenge, nil)
    }

    /// Compares the SHA-256 of the SubjectPublicKeyInfo. `P256` rejects keys of other types.
    private func matches(_ trust: SecTrust) -> Bool {
        guard let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate], let leaf = chain.first,
            let key = SecCertificateCopyKey(leaf), let point = SecKeyCopyExternalRepresentation(key, nil) as Data?,
            let publicKey = try? P256.Signing.PublicKey(x963Representation: point)
        else { return false }
        return Array(SHA256.hash(data: publicKey.derRepresentation)) == pin
    }
}
#endif
