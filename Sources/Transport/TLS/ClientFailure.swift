import NIOSSL

/// The reason why TLS ended a connection to a broker.
package enum ClientFailure: Hashable, Sendable {
    /// The broker has another key than the pinned one. Only the handshake was sent.
    case otherKey
    /// The broker refused the certificate of the client.
    case keyRefused
    /// This process no longer accepts the key of the broker. Nothing was sent.
    case notTrusted
    /// The connection closed without the end of TLS.
    case closed
    /// TLS failed in another way, for example because the server does not speak TLS.
    case failed(reason: String)

    /// - Returns: Nil for an error that is not of TLS.
    package init?(_ error: any Error) {
        let failure: BoringSSLError
        switch error {
        case NIOSSLError.uncleanShutdown:
            self = .closed
            return
        case NIOSSLError.handshakeFailed(let error): failure = error
        case let error as BoringSSLError: failure = error
        case is NIOSSLError:
            self = .failed(reason: "\(error)")
            return
        default: return nil
        }
        guard case .sslError(let stack) = failure else {
            self = failure == .zeroReturn ? .closed : .failed(reason: "\(failure)")
            return
        }
        self.init(stack)
    }

    /// Reads the names of the errors (SSL_R_… in BoringSSL's ssl.h). NIOSSL has no other access to them.
    private init(_ stack: NIOBoringSSLErrorStack) {
        if stack == [.eofDuringHandshake] {
            self = .closed
            return
        }
        let text = stack.map(\.description).joined(separator: "; ")
        if text.contains("CERTIFICATE_VERIFY_FAILED") {
            self = .otherKey
        } else if text.contains("_ALERT_"), Self.certificateAlerts.contains(where: text.contains) {
            self = .keyRefused
        } else {
            // `Error: 268435703 error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER at PATH:LINE`
            let name = text.split(separator: "OPENSSL_internal:").dropFirst().first?.prefix { $0 != " " }
            self = .failed(reason: name.map { $0.replacing("_", with: " ").lowercased() } ?? text)
        }
    }

    /// The alerts of a server that does not accept a certificate or its signature (RFC 8446, section 6.2).
    private static let certificateAlerts = ["CERTIFICATE", "UNKNOWN_CA", "ACCESS_DENIED", "DECRYPT_ERROR"]
}
